"""The Pythons of a machine: the running one first, then the PATH, then the newest patches of pyenv."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pytest_tfgrpo.harvest.recipe import machine_pythons


def test_each_minor_version_is_the_first_that_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, shims, pyenv = (tmp_path / name for name in ("one", "two", "shims", ".pyenv"))
    for folder, names in (
        (one, ("python3.9", "python3.10", "python3.9-config", "python3.7")),
        (two, ("python3.9",)),
        (shims, ("python3.8",)),
    ):
        folder.mkdir()
        for name in names:
            (folder / name).touch()
    for version in ("3.10.9", "3.8.2", "3.8.10", "3.8.9", "pypy3.8-7", "3.12-dev"):
        (pyenv / "versions" / version).mkdir(parents=True)

    def version_of(path: Path) -> str | None:
        if "one/python3.7" in str(path):
            return None
        found = path.parent.parent.name if path.is_relative_to(pyenv) else path.name.removeprefix("python")
        return ".".join(found.split(".")[:2]) if found.startswith("3.") else "3.99"

    monkeypatch.setattr(machine_pythons, "_version", version_of)
    search = os.pathsep.join(["relative", str(tmp_path / "absent"), str(shims), str(one), str(two)])
    found = machine_pythons.find_interpreters(search, pyenv)
    running = f"3.{sys.version_info.minor}"
    assert found.pop(running, None) or found.pop("3.99")
    wanted = {
        "3.8": pyenv / "versions/3.8.10/bin/python",
        "3.9": one / "python3.9",
        "3.10": one / "python3.10",
    }
    assert list(found.items()) == [(key, path) for key, path in wanted.items() if key != running]
