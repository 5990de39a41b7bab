"""Whatever an agent leaves is removed, without following a link; what is stuck is told, never raised."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.hostile_trees import TREES, removable

from pytest_tfgrpo.sandbox.removal import remove


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return a folder that is removed whatever is left in it."""
    with removable() as folder:
        yield folder


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that links lead to; nothing in it may change."""
    folder = tmp_path / "victim"
    (folder / "sub").mkdir(parents=True)
    (folder / "precious.txt").write_text("precious")
    (folder / "sub" / "more.txt").write_text("more")
    before = sorted(folder.rglob("*"))
    yield folder
    assert sorted(folder.rglob("*")) == before
    assert (folder / "precious.txt").read_text() == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("name", ["unreadable", "deep and unreadable", "links", "many kinds"])
def test_its_owner_needs_no_privilege(tmp_path: Path, name: str) -> None:
    shared = Path(f"/tmp/tfgrpo-test-{os.getpid()}")
    shared.mkdir()
    os.chown(shared, 65534, 65534)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            folder = shared / "tree"
            folder.mkdir()
            TREES[name](folder, shared)
            code = 0 if remove(folder) == "" and not os.path.lexists(folder) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    shutil.rmtree(shared)
    assert os.waitstatus_to_exitcode(status) == 0


def test_an_immutable_file_stays_and_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "fixed").touch()
    (folder / "other").touch()
    if subprocess.run(
        ["chattr", "+i", folder / "sub" / "fixed"], check=False, capture_output=True
    ).returncode:
        pytest.skip("this file system has no immutable files, or chattr is missing or not allowed")
    try:
        assert remove(folder) == "'fixed': Operation not permitted"
        assert not (folder / "other").exists()
    finally:
        subprocess.run(["chattr", "-R", "-i", folder], check=True)


def test_another_file_system_mounted_in_it_is_not_entered(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "tree" / "sub" / "mounted").mkdir(parents=True)
    (tmp_path / "tree" / "file").touch()
    mounted = tmp_path / "tree" / "sub" / "mounted"
    if subprocess.run(["mount", "--bind", victim, mounted], check=False, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        assert "busy" in remove(tmp_path / "tree")
        assert not (tmp_path / "tree" / "file").exists()
    finally:
        found = next((tmp_path / "tree").rglob("mounted"))
        subprocess.run(["umount", found], check=True)
