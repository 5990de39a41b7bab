"""What an agent did to its workspace: kept, and made again elsewhere."""

import os
import shutil
from pathlib import Path

import pytest
from support.projects_in_archives import write_archive

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.records import FileChange
from pytest_tfgrpo.core.scenarios import Attachment, WorkspaceArchive
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.sandbox import changes
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.sandbox.changes import changes_in, make_again
from pytest_tfgrpo.sandbox.workspace import Workspace


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
    (folder / "raw").chmod(0o755)
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


def test_what_is_just_within_the_limits_is_kept(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_FILES", 2)
    monkeypatch.setattr(changes, "MAX_BYTES", 100)
    for name in "ab":
        (workspace.path / name).write_text("x" * 50)
    found = changes_in(workspace)
    assert found is not None
    assert [change.name for change in found] == ["a", "b"]


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/../../x", "..", "a\nb"])
def test_a_hostile_name_is_refused(workspace: Workspace, name: str, tmp_path: Path) -> None:
    before = contents(tmp_path / "given")
    with pytest.raises(ProviderError, match="cannot restore the file"):
        make_again(workspace, (FileChange(name=name, text="x"),))
    assert contents(tmp_path / "given") == before


FILES = {
    "shop/cart.py": "total = 1\n",
    "shop/old.py": "gone = 1\n",
    "run": ArchiveEntry(name="run", data=b"#!/bin/sh\n", executable=True),
    "latest": ArchiveEntry(name="latest", link="shop/cart.py"),
    "packages": ArchiveEntry(name="packages", link="shop"),
    "odd": ArchiveEntry(name="odd\n\\\x1b\udce9", data=b"\xff"),
    "large.bin": ArchiveEntry(name="large.bin", data=bytes(5_000_000)),
    **{f"data/{n}.txt": str(n) for n in range(40)},
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceArchive:
    return write_archive(tmp_path_factory.mktemp("suite") / "archives" / "a.tar.gz", FILES)


def project(folder: Path, name: str, archive: WorkspaceArchive) -> Workspace:
    (folder / "attached").write_text("attached")
    attached = Attachment(name="data/in.csv", path=folder / "attached", sha256=stamp_bytes(b"attached"))
    workspace = Workspace(folder / name, (attached,), archive=archive)
    workspace.make()
    return workspace


def test_of_a_project_only_what_changed_counts(
    archive: WorkspaceArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_FILES", 5)
    assert changes_in(project(tmp_path, "work", archive)) == ()


def test_what_an_agent_did_to_a_project_is_made_again(archive: WorkspaceArchive, tmp_path: Path) -> None:
    workspace = project(tmp_path, "work", archive)
    folder = workspace.path
    (folder / "shop" / "cart.py").write_text("total = 2\n")
    (folder / "shop" / "old.py").unlink()
    (folder / "run").chmod(0o644)
    (folder / "data" / "1.txt").chmod(0o755)
    (folder / "latest").unlink()
    (folder / "latest").write_text("a file where a link was")
    (folder / "packages").unlink()
    (folder / "packages").mkdir()
    (folder / "packages" / "new.py").touch()
    (folder / "newest").symlink_to("packages/new.py")
    (folder / "data" / "2.txt").unlink()
    (folder / "data" / "2.txt").mkdir()
    (folder / "data" / "2.txt" / "deep").touch()
    (folder / ".git" / "HEAD").write_text("whatever")
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").symlink_to("/usr/bin/python3")
    found = changes_in(workspace)
    assert found is not None
    assert [(change.name, change.text, change.link, change.executable) for change in found] == [
        ("data/1.txt", "1", None, True),
        ("data/2.txt", None, None, False),
        ("data/2.txt/deep", "", None, False),
        ("latest", "a file where a link was", None, False),
        ("newest", None, "packages/new.py", False),
        ("packages", None, None, False),
        ("packages/new.py", "", None, False),
        ("run", "#!/bin/sh\n", None, False),
        ("shop/cart.py", "total = 2\n", None, False),
        ("shop/old.py", None, None, False),
    ]
    other = project(tmp_path, "other", archive)
    make_again(other, found)
    assert changes_in(other) == found


@pytest.mark.parametrize("kind", ["link out", "odd link", "odd name", "pipe", "odd one gone"])
def test_what_cannot_be_kept_of_a_project_is_said(
    archive: WorkspaceArchive, tmp_path: Path, kind: str
) -> None:
    workspace = project(tmp_path, "work", archive)
    folder = workspace.path
    match kind:
        case "link out":
            (folder / "link").symlink_to("../../etc")
        case "odd link":
            (folder / "link").symlink_to("\udcff")
        case "odd name":
            (folder / "a\nb").touch()
        case "pipe":
            os.mkfifo(folder / "run2")
        case "odd one gone":
            (folder / "odd\n\\\x1b\udce9").unlink()
    assert changes_in(workspace) is None


def test_times_hide_no_change(archive: WorkspaceArchive, tmp_path: Path) -> None:
    workspace = project(tmp_path, "work", archive)
    path = workspace.path / "shop" / "cart.py"
    before = path.stat()
    path.write_text("total = 2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = changes_in(workspace)
    assert found is not None
    assert [change.name for change in found] == ["shop/cart.py"]


def test_what_a_project_itself_keeps_in_such_folders_counts(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.tar.gz", {"web/node_modules/ours.js": "1"})
    workspace = Workspace(tmp_path / "work", archive=archive)
    (workspace.path / "web" / "node_modules" / "ours.js").write_text("2")
    found = changes_in(workspace)
    assert found is not None
    assert [change.name for change in found] == ["web/node_modules/ours.js"]


@pytest.mark.parametrize("link", ["/etc/passwd", "../x", "a/../../..", ".git/hooks"])
def test_a_recorded_link_that_leads_out_is_refused(workspace: Workspace, link: str) -> None:
    with pytest.raises(ProviderError, match="cannot restore the file 'x' of a recording"):
        make_again(workspace, (FileChange(name="x", link=link),))


def test_nothing_is_restored_through_a_link(archive: WorkspaceArchive, tmp_path: Path) -> None:
    workspace = project(tmp_path, "work", archive)
    make_again(workspace, (FileChange(name="packages/cart.py", text="x"), FileChange(name="latest/a")))
    assert (workspace.path / "shop" / "cart.py").read_text() == "total = 1\n"


def test_a_folder_becomes_a_file_again(archive: WorkspaceArchive, tmp_path: Path) -> None:
    workspace = project(tmp_path, "work", archive)
    shutil.rmtree(workspace.path / "shop")
    (workspace.path / "shop").write_text("a file")
    found = changes_in(workspace)
    assert found is not None
    other = project(tmp_path, "other", archive)
    make_again(other, found)
    assert changes_in(other) == found
    assert (other.path / "shop").read_text() == "a file"


def test_a_recorded_file_without_bytes_is_made(workspace: Workspace) -> None:
    make_again(workspace, (FileChange(name="x", hex=""), FileChange(name="y", text="")))
    assert [(workspace.path / name).read_bytes() for name in ("x", "y")] == [b"", b""]
