"""Trees of commits as entries of archives."""

from pathlib import Path

import pytest
from support.repositories import Repository, everything, git, remove_object

from pytest_tfgrpo.core.errors import SnapshotError
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.history.tree_files import read_file, tree_files
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, pack, read_archive


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "project")


def files(repository: Repository, name: str = "main", **options: object) -> list[ArchiveEntry]:
    with GitObjects(repository.folder) as objects:
        return list(tree_files(objects, objects.resolve(name), **options))  # type: ignore[arg-type]


def test_files_links_and_modes_are_as_committed(repository: Repository) -> None:
    repository.commit(
        {"run": "#!x", "a/b": b"\0\xff\r\n", "l": "a/b", "sub": "1" * 40},
        modes={"run": "100755", "l": "120000", "sub": "160000"},
    )
    assert files(repository) == [
        ArchiveEntry(name="a/b", data=b"\0\xff\r\n"),
        ArchiveEntry(name="l", link="a/b"),
        ArchiveEntry(name="run", data=b"#!x", executable=True),
    ]


def test_attributes_and_filters_change_nothing(repository: Repository) -> None:
    repository.commit(
        {
            ".gitattributes": "* text eol=crlf ident export-ignore export-subst filter=x\n",
            "a": "$Id$ $Format:%H$\n",
        }
    )
    assert files(repository)[1] == ArchiveEntry(name="a", data=b"$Id$ $Format:%H$\n")


def test_some_paths_and_some_left_out(repository: Repository) -> None:
    repository.commit({"a": "1", "b/c": "2", "b/d": "3", "*": "4"})
    assert [e.name for e in files(repository, only=["b/c", "*", "absent"])] == ["*", "b/c"]
    assert files(repository, only=[]) == []
    assert [e.name for e in files(repository, leave_out=lambda path: path.startswith("b"))] == ["*", "a"]


def test_a_name_that_is_no_utf8_can_be_asked_for(repository: Repository) -> None:
    repository.commit({"a": "1", b"\xff": "3"})
    assert [e.data for e in files(repository, only=["\udcff"])] == [b"3"]


def test_odd_names_survive_an_archive(repository: Repository, tmp_path: Path) -> None:
    repository.commit({"a\nb": "1", '"q"\\': "2", b"\xff": "3", " ": "4"})
    entries = files(repository)
    (tmp_path / "x.tar.gz").write_bytes(pack(entries))
    assert list(read_archive(tmp_path / "x.tar.gz")) == sorted(entries, key=lambda e: e.name)


@pytest.mark.parametrize("target", ["/etc/passwd", "../out", "a/../../out", ".git/hooks"])
def test_a_link_that_leaves_the_tree_is_refused(repository: Repository, target: str) -> None:
    repository.commit({"l": target}, modes={"l": "120000"})
    with pytest.raises(SnapshotError, match="leads out of the tree"):
        files(repository)


@pytest.mark.parametrize("name", ["..", ".git", ".GIT", "."])
def test_a_tree_that_no_folder_can_hold_is_refused(repository: Repository, name: str) -> None:
    blob = git(repository.folder, "hash-object", "-w", "--stdin", given=b"evil")
    inner = b"100644 evil\0" + bytes.fromhex(blob)
    raw = f"40000 {name}\0".encode() + bytes.fromhex(hashed(repository, inner))
    commit = git(repository.folder, "commit-tree", hashed(repository, raw))
    with pytest.raises(SnapshotError, match="no folder can hold the tree"):
        files(repository, commit)


def hashed(repository: Repository, raw: bytes) -> str:
    return git(repository.folder, "hash-object", "-w", "--literally", "-t", "tree", "--stdin", given=raw)


def test_a_missing_file_is_said(repository: Repository) -> None:
    repository.commit({"a": "1", "b": "2"})
    remove_object(repository, "main:b")
    with pytest.raises(SnapshotError, match="is missing or damaged"):
        files(repository)


def test_a_damaged_file_is_said(repository: Repository) -> None:
    repository.commit({"a": "1" * 5000, "b": "2"})
    loose = remove_object(repository, "main:a")
    loose.write_bytes(b"x")
    with pytest.raises(SnapshotError, match="is missing or damaged"):
        files(repository)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_tfgrpo.harvest.history.tree_files.FILE_MAX", 10)
    repository.commit({"a": "1" * 11})
    with pytest.raises(SnapshotError, match=r"'a' in [0-9a-f]{40} has 11 bytes; leave it out"):
        files(repository)
    monkeypatch.setattr("pytest_tfgrpo.harvest.history.tree_files.FILE_MAX", 11)
    assert len(files(repository)) == 1


@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [
        ("MAX_FILES", 3, "has 3 files, more than 2; leave folders out"),
        ("MAX_BYTES", 6, "have 6 bytes, more than 5; leave folders out"),
    ],
)
def test_a_tree_that_is_too_large_is_refused_unless_parts_are_left_out(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, said: str
) -> None:
    repository.commit({"a": "1", "b": "12", "c": "123"})
    monkeypatch.setattr(f"pytest_tfgrpo.harvest.history.tree_files.{limit}", most)
    assert len(files(repository)) == 3
    monkeypatch.setattr(f"pytest_tfgrpo.harvest.history.tree_files.{limit}", most - 1)
    with pytest.raises(SnapshotError, match=said):
        files(repository)
    assert len(files(repository, leave_out=lambda path: path == "a")) == 2


def test_a_single_file_is_read_or_absent(repository: Repository) -> None:
    repository.commit({"a/b": "1", "a/[b]": "2", "big": "x" * 50})
    with GitObjects(repository.folder) as objects:
        commit = objects.resolve("main")
        assert read_file(objects, commit, "a/b") == b"1"
        assert read_file(objects, commit, "a/[b]") == b"2"
        assert [read_file(objects, commit, path) for path in ("a", "a/c", "", "..", "/", "a/../a/b")] == [
            None
        ] * 6
        assert read_file(objects, commit, "big", most=49) is None
        assert read_file(objects, commit, "big", most=50) == b"x" * 50


def test_a_submodule_is_no_file(repository: Repository) -> None:
    repository.commit({"a": "1", "sub": "1" * 40}, modes={"sub": "160000"})
    with GitObjects(repository.folder) as objects:
        assert read_file(objects, objects.resolve("main"), "sub") is None


def test_reading_leaves_the_repository_as_it_is(repository: Repository) -> None:
    repository.commit({f"d{n}/f": str(n) for n in range(300)})
    before = everything(repository.folder)
    assert len(files(repository)) == 300
    assert everything(repository.folder) == before
