"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_tfgrpo.core.files import write_atomic


def test_threads_that_write_one_file_at_once_leave_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "library.json"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: write_atomic(path, [b"%d" % n] * 1000), range(100)))
    text = path.read_bytes()
    assert text == text[: len(text) // 1000] * 1000
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_a_file_keeps_its_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_atomic(link, [b"new"])
    assert (link.is_symlink(), real.read_text(), real.stat().st_mode & 0o777) == (True, "new", 0o640)


def test_a_new_file_has_the_mode_that_any_new_file_has(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "a", [b"x"])
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    def torn() -> Iterator[bytes]:
        yield b"half"
        raise OSError("the disk is full")

    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(OSError, match="the disk is full"):
        write_atomic(path, torn())
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])
