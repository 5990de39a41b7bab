"""Files put below a folder: what was there gives way, also between two entries of one writer."""

import os
import stat
from pathlib import Path

import pytest

from pytest_tfgrpo.sandbox import tree_writer
from pytest_tfgrpo.sandbox.tree_writer import TreeWriter


def test_a_folder_that_was_deleted_is_made_again_for_the_next_file(tmp_path: Path) -> None:
    with TreeWriter(tmp_path) as writer:
        writer.file("a/b", b"1", executable=False)
        writer.delete("a")
        writer.delete("a/b")
        writer.file("a/c", b"2", executable=True)
        writer.link("a/c", "d")
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == ["a", "a/c"]
    assert (tmp_path / "a" / "c").readlink() == Path("d")


def test_modes_are_those_that_the_mask_of_the_process_leaves(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        with TreeWriter(tmp_path) as writer:
            writer.file("run", b"1", executable=True)
            writer.file("read", b"1", executable=False)
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("run", "read")] == [0o775, 0o664]


def test_a_file_is_whole_also_where_the_kernel_takes_it_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:3]))
    with TreeWriter(tmp_path) as writer:
        writer.file("a", b"0123456789", executable=False)
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_what_cannot_give_way_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.setattr(tree_writer, "remove_in", lambda _name, _within: "'x': it is stuck")
    with (
        TreeWriter(tmp_path) as writer,
        pytest.raises(OSError, match="'a' cannot be replaced: 'x': it is st"),
    ):
        writer.file("a", b"1", executable=False)
