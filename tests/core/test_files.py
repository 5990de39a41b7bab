"""Files that are written whole or not at all."""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest
from support.special_files import endless, folder, huge, listening, pipe
from support.syncs import Syncs

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.file_writing import write_json, write_text
from pytest_tfgrpo.core.files import (
    LARGEST,
    make_private,
    open_plain,
    read_plain,
    remove_leftovers,
    scenario_name,
    write_atomic,
)

NONE: dict[Callable[[Path], None], tuple[int, str]] = {
    pipe: (errno.EINVAL, "it is not a regular file"),
    endless: (errno.EINVAL, "it is not a regular file"),
    folder: (errno.EISDIR, os.strerror(errno.EISDIR)),
    listening: (errno.ENXIO, os.strerror(errno.ENXIO)),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("make", NONE)
@pytest.mark.parametrize("read", [open_plain, read_plain])
def test_what_is_no_regular_file_is_an_error_at_once_that_says_so(
    tmp_path: Path, read: Callable[[Path], object], make: Callable[[Path], None]
) -> None:
    path = tmp_path / "odd"
    make(path)
    with pytest.raises(OSError, match="odd") as refused:
        read(path)
    assert (refused.value.errno, refused.value.strerror) == NONE[make]


@pytest.mark.parametrize(("limit", "most"), [((), LARGEST), ((1000,), 1000)])
def test_a_file_that_is_too_large_is_an_error_that_says_how_large_it_may_be(
    tmp_path: Path, limit: tuple[int, ...], most: int
) -> None:
    path = tmp_path / "odd"
    huge(path)
    with pytest.raises(OSError, match=f"it has more than {most} bytes") as refused:
        read_plain(path, *limit)
    assert (refused.value.errno, refused.value.filename) == (errno.EFBIG, str(path))


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


def test_a_file_is_on_disk_before_it_has_its_name_and_its_name_before_the_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "library.json"
    syncs = Syncs(monkeypatch)
    renamed: list[int] = []
    replace = Path.replace

    def watched(self: Path, target: Path) -> Path:
        renamed.append(len(syncs.seen))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    write_atomic(path, [b"x" * 1000])
    (temporary, size), folder = syncs.seen
    assert (temporary.startswith(".library.json."), size, renamed) == (True, 1000, [1])
    assert folder == (tmp_path.name, 0)


def test_a_file_is_written_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    write_atomic(tmp_path / "a", [b"x"])
    assert (tmp_path / "a").read_bytes() == b"x"


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    locked, foreign = tmp_path / ".a.17-1.tmp", tmp_path / ".a.draft-1.tmp"
    for file in (locked, foreign):
        file.touch()
    with locked.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write_atomic(path, [b"x"])
        assert (locked.exists(), foreign.exists()) == (True, True)
    write_atomic(path, [b"x"])
    assert (locked.exists(), foreign.exists()) == (False, True)


def test_a_file_taken_for_a_leftover_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, taken = fcntl.flock, list[Path]()

    def late(file: BinaryIO, operation: int) -> None:
        if not taken:
            taken.extend(tmp_path.glob(".a.*.tmp"))
            taken[0].unlink()
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    write_atomic(tmp_path / "a", [b"x"])
    assert len(taken) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_what_is_no_number_of_json_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_or_device_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is not a regular file"):
        write_atomic(pipe, [b"x"])
    assert [path.is_fifo() for path in tmp_path.iterdir()] == [True]


def test_a_file_as_large_as_it_may_be_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_plain(tmp_path / "a", 5) == b"12345"


def test_a_private_file_is_its_owners_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o277)
    try:
        make_private(tmp_path / "a")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_json_and_texts_are_written_whole_with_their_end_and_whatever_they_hold(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"a": "ü"})
    assert (tmp_path / "a.json").read_bytes() == b'{\n "a": "\\u00fc"\n}\n'
    write_text(tmp_path / "a.txt", "ü\ud800\r\n")
    assert (tmp_path / "a.txt").read_bytes() == "ü".encode() + b"\\ud800\r\n"
    with pytest.raises(ValueError, match="Out of range float values"):
        write_json(tmp_path / "nan.json", {"a": float("nan")})
    with pytest.raises(JournalError, match=r"cannot write .*none/a: .*No such file"):
        write_text(tmp_path / "none" / "a", "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.txt"]


def test_a_file_that_grows_while_it_is_read_is_too_large_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_plain(path, 5) == b"12345"
    grown = os.stat_result((0o100644, 1, 1, 1, 0, 0, 4, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda _handle: grown)
    with pytest.raises(OSError, match="it has more than 4 bytes"):
        read_plain(path, 4)


def test_only_what_is_left_of_the_same_file_is_removed(tmp_path: Path) -> None:
    for name in (".a[1].7-8.tmp", ".a1.7-8.tmp", ".a[1].x-8.tmp", ".a[1].7-x.tmp", ".a[1].7-8.txt"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path / "a[1]")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [".a1.7-8.tmp", ".a[1].x-8.tmp", ".a[1].7-x.tmp", ".a[1].7-8.txt"]
    )


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("a.yaml", "a.scenario.yaml"),
        ("a.yml", "a.scenarios.yml"),
        ("a.json", "a.scenario.json"),
        ("a.jsonl", "a.scenarios.jsonl"),
        ("a.csv", "a.scenarios.csv"),
        ("a.txt", None),
        *((f"a.scenario.{end}", None) for end in ("yaml", "yml", "json", "jsonl", "csv")),
        *((f"a.scenarios.{end}", None) for end in ("yaml", "yml", "json", "jsonl", "csv")),
    ],
)
def test_how_a_file_would_be_named_to_hold_scenarios(name: str, wanted: str | None) -> None:
    assert scenario_name(Path(name)) == wanted
