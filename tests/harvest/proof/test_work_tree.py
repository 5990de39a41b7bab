"""A folder that becomes one tree after another: as fresh as new each time, whatever tests did to it."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.harvest.proof.work_tree import WorkTree
from pytest_tfgrpo.sandbox.archives import ArchiveEntry


def tree_of(*entries):
    return {entry.name: entry for entry in entries}


TREE = tree_of(
    ArchiveEntry(name="a.py", data=b"a"),
    ArchiveEntry(name="run", data=b"#!", executable=True),
    ArchiveEntry(name="pkg/b.py", data=b"b"),
    ArchiveEntry(name="pkg/deep/c.py", data=b"c"),
    ArchiveEntry(name="link", link="pkg/b.py"),
)


def found(folder):
    """What lies in a folder, links not followed."""
    made = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            made[name] = ArchiveEntry(name=name, link=str(path.readlink()))
        elif path.is_file():
            executable = bool(path.stat().st_mode & 0o100)
            made[name] = ArchiveEntry(name=name, data=path.read_bytes(), executable=executable)
        else:
            assert any(other.startswith(f"{name}/") for other in TREE) or list(path.iterdir())
    return made


@pytest.fixture
def work(tmp_path):
    made = WorkTree(tmp_path / "work")
    made.become(TREE)
    assert found(made.folder) == TREE
    return made


def test_only_what_differs_is_written(work):
    before = {name: (work.folder / name).lstat().st_ino for name in TREE}
    other = {**TREE, "a.py": ArchiveEntry(name="a.py", data=b"A"), "new/d.py": ArchiveEntry(name="new/d.py")}
    del other["pkg/deep/c.py"]
    work.become(other)
    assert found(work.folder) == other
    assert all((work.folder / name).lstat().st_ino == before[name] for name in ("run", "pkg/b.py", "link"))


def rewrite(folder):
    (folder / "a.py").write_bytes(b"x")


def rewrite_as_it_was(folder):
    status = (folder / "a.py").stat()
    (folder / "a.py").write_bytes(b"x")
    os.utime(folder / "a.py", ns=(status.st_atime_ns, status.st_mtime_ns))


def change_mode(folder):
    (folder / "a.py").chmod(0o755)


def leave_caches(folder):
    (folder / "pkg/__pycache__").mkdir()
    (folder / "pkg/__pycache__/b.pyc").write_bytes(b"stale")
    (folder / "empty").mkdir()


def link_out(folder):
    shutil.rmtree(folder / "pkg")
    (folder / "pkg").symlink_to(folder.parent / "outside")


def link_a_file_out(folder):
    (folder / "a.py").unlink()
    (folder / "a.py").symlink_to(folder.parent / "outside" / "kept")


def swap_kinds(folder):
    shutil.rmtree(folder / "pkg")
    (folder / "pkg").write_bytes(b"")
    (folder / "a.py").unlink()
    (folder / "a.py").mkdir()


def close_a_folder(folder):
    (folder / "pkg/deep").chmod(0)
    (folder / "pkg").chmod(0o300)


def make_a_pipe(folder):
    (folder / "a.py").unlink()
    os.mkfifo(folder / "a.py")


def remove_all(folder):
    shutil.rmtree(folder)


def second_name(folder):
    os.link(folder / "a.py", folder / "other.py")
    (folder / "other.py").write_bytes(b"x")


@pytest.mark.parametrize(
    "harm",
    [
        rewrite, rewrite_as_it_was, change_mode, leave_caches, link_out, link_a_file_out, swap_kinds,
        close_a_folder, make_a_pipe, remove_all, second_name,
    ],
)  # fmt: skip
def test_the_tree_is_fresh_whatever_tests_did(work, harm, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_text("kept")
    harm(work.folder)
    work.become(TREE)
    assert found(work.folder) == TREE
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["kept"]
    assert (tmp_path / "outside" / "kept").read_text() == "kept"
    assert not (work.folder / "a.py").is_symlink()


def test_a_file_gives_way_to_a_folder_of_its_name(work):
    work.become({**TREE, "a.py/x.py": ArchiveEntry(name="a.py/x.py", data=b"x")})
    assert (work.folder / "a.py/x.py").read_bytes() == b"x"
    work.become(TREE)
    assert found(work.folder) == TREE


parts = st.sampled_from("abc")
names = st.lists(parts, min_size=1, max_size=3).map("/".join)
trees = st.dictionaries(names, st.binary(max_size=2), max_size=6)


@given(st.lists(trees, max_size=4))
def test_any_tree_follows_any_other(tmp_path_factory, several):
    work = WorkTree(tmp_path_factory.mktemp("trees") / "work")
    for tree in several:
        work.become({name: ArchiveEntry(name=name, data=data) for name, data in tree.items()})
        held = {name: data for name, data in tree.items() if not any(n.startswith(f"{name}/") for n in tree)}
        files = [path for path in Path(work.folder).rglob("*") if path.is_file()]
        assert {p.relative_to(work.folder).as_posix(): p.read_bytes() for p in files} == held
