"""What an agent did to its workspace: kept, and made again elsewhere."""

import os
from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.records import FileChange
from pytest_tfgrpo.core.scenarios import Attachment
from pytest_tfgrpo.core.stamp import stamp_bytes
from pytest_tfgrpo.harness.sandbox import changes
from pytest_tfgrpo.harness.sandbox.changes import changes_in, make_again
from pytest_tfgrpo.harness.sandbox.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return fresh(tmp_path, "work")


def fresh(folder: Path, name: str) -> Workspace:
    attachments = []
    for given in ("same.txt", "changed.txt", "sub/gone.txt"):
        path = folder / "given" / given
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(given)
        attachments.append(Attachment(name=given, path=path, sha256=stamp_bytes(given.encode())))
    return Workspace(folder / name, tuple(attachments))


def contents(folder: Path) -> dict[str, tuple[bytes, bool]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), os.access(path, os.X_OK))
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_what_changed_is_kept_and_made_again(workspace: Workspace, tmp_path: Path) -> None:
    folder = workspace.path
    (folder / "changed.txt").write_text("new\r\ntext é")
    (folder / "sub" / "gone.txt").unlink()
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "run").write_text("#!/bin/sh\n")
    (folder / "a" / "b" / "run").chmod(0o755)
    (folder / "raw").write_bytes(bytes(range(256)))
    (folder / "empty").touch()
    found = changes_in(workspace)
    assert found is not None
    assert [change.name for change in found] == ["a/b/run", "changed.txt", "empty", "raw", "sub/gone.txt"]
    other = fresh(tmp_path, "other")
    make_again(other, found)
    assert contents(other.path) == contents(folder)
    assert changes_in(other) == found


def test_an_untouched_workspace_has_no_changes(workspace: Workspace) -> None:
    assert changes_in(workspace) == ()


def test_what_programs_make_again_is_left_out(workspace: Workspace) -> None:
    cache = workspace.path / "pkg" / "__pycache__"
    cache.mkdir(parents=True)
    (cache / "x.pyc").touch()
    assert changes_in(workspace) == ()


@pytest.mark.parametrize("kind", ["link", "folder link", "pipe", "name", "size", "count"])
def test_what_cannot_be_kept_is_said(
    workspace: Workspace, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_FILES", 5)
    monkeypatch.setattr(changes, "MAX_BYTES", 100)
    folder = workspace.path
    match kind:
        case "link":
            (folder / "link").symlink_to("/etc/passwd")
        case "folder link":
            (folder / "link").symlink_to("/etc")
        case "pipe":
            os.mkfifo(folder / "pipe")
        case "name":
            Path(os.fsdecode(os.fsencode(folder) + b"/\xff")).touch()
        case "size":
            (folder / "a").write_text("x" * 60)
            (folder / "b").write_text("x" * 60)
        case "count":
            for n in range(7):
                (folder / str(n)).touch()
    assert changes_in(workspace) is None


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/../../x", "..", "a\nb", "sub"])
def test_a_hostile_name_is_refused(workspace: Workspace, name: str, tmp_path: Path) -> None:
    before = contents(tmp_path / "given")
    with pytest.raises(ProviderError, match="cannot restore the file"):
        make_again(workspace, (FileChange(name=name, text="x"),))
    assert contents(tmp_path / "given") == before
