"""Repositories of an example, made from a stream of ``git fast-import``."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from pytest_tfgrpo.core.errors import SettingError

STREAM = ".fast-import"
"""How the name of a stream ends; before it stands the name of its repository."""
STEPS = (
    ("init", "-q", "--initial-branch=main", "--template=", "."),
    ("fast-import", "--quiet"),
    ("reset", "-q", "--hard", "main"),
)


def require_git() -> str:
    """Return the program git; raises SettingError."""
    program = shutil.which("git")
    if program is None:
        raise SettingError(
            "git is not installed, or not on PATH; install it to make the example's repository"
        )
    return program


def make_repository(stream: bytes, folder: Path) -> None:
    """Make the repository `folder` with the commits of a stream, whole or not at all; raises SettingError."""
    program = require_git()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as made:
        environment = {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "HOME": made,
            "LC_ALL": "C",
            "PATH": f"{Path(program).parent}{os.pathsep}{os.defpath}",
        }
        for step in STEPS:
            done = subprocess.run(
                (program, *step),
                cwd=made,
                env=environment,
                input=stream if step[0] == "fast-import" else b"",
                capture_output=True,
            )
            if done.returncode:
                said = done.stderr.decode("utf-8", "replace").strip()
                raise SettingError(f"cannot make the repository {str(folder)!r}: git {step[0]}: {said}")
        whole = Path(made) / "whole"
        whole.mkdir()
        for name in list(Path(made).iterdir()):
            if name != whole:
                name.rename(whole / name.name)
        whole.rename(folder)
