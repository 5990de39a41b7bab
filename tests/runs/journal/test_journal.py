import asyncio
import errno
import fcntl
import json
import os
import resource
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.syncs import Syncs

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.runs.journal import journal as module
from pytest_tfgrpo.runs.journal.journal import Journal, decode, encode, ended_at, is_open, read, scan

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def write(path: Path, events: list[tuple[str, object]]) -> None:
    journal = Journal(path)
    for name, data in events:
        journal.append(name, data)
    journal.close()


@given(data=JSON_VALUES, n=st.integers(1, 10**9))
def test_a_line_reads_back_as_it_was_written(data: object, n: int) -> None:
    line = encode(n, "rollout", data)
    assert line.count(b"\n") == 1
    event = decode(line[:-1])
    assert event is not None
    assert (event.n, event.event, event.data) == (n, "rollout", data)


@given(data=JSON_VALUES, place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_flipped_bit_never_goes_unnoticed(data: object, place: int, bit: int) -> None:
    line = bytearray(encode(3, "group", data)[:-1])
    line[place % len(line)] ^= 1 << bit
    assert decode(bytes(line)) is None


def test_a_line_is_plain_json_for_other_readers() -> None:
    value = json.loads(encode(1, "run", {"a": [1, "ü"]}))
    assert value["event"] == "run"
    assert value["data"] == {"a": [1, "ü"]}


def test_a_line_says_when_it_was_written_and_older_ones_are_read_without() -> None:
    line = encode(1, "run", {})[:-1]
    event = decode(line)
    assert event is not None
    assert utc_time(event.at) == event.at == json.loads(line)["at"]
    head = b'{"n":1,"event":"run","data":{}'
    older = decode(b'%s,"crc":"%08x"}' % (head, zlib.crc32(head)))
    assert older is not None
    assert (older.event, older.at) == ("run", "")


def test_a_line_of_many_items_is_that_of_their_list(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    empty = {"name": '"items":[]', "items": (), "others": []}
    for items in ([], [{"a": 1}], [{"a": n, "b": "\ud83d"} for n in range(2500)]):
        journal.append_long("run", empty, "items", iter(items))
        journal.append("rollout", {})
    with pytest.raises(ValueError, match="JSON"):
        journal.append_long("run", empty, "items", iter([*range(2000), float("nan")]))
    journal.append("finish", {})
    journal.close()
    found = [event.data for event in read(tmp_path / "journal.jsonl")]
    assert len(found) == 7
    assert found[4] == {**empty, "items": [{"a": n, "b": "\ud83d"} for n in range(2500)]}


def test_numbers_that_json_lacks_are_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    with pytest.raises(ValueError, match="JSON"):
        journal.append("rollout", {"cost": float("nan")})
    journal.append("rollout", {})
    journal.close()
    assert [event.n for event in read(tmp_path / "journal.jsonl")] == [1]


@given(cut=st.integers(0, 400))
def test_a_journal_cut_at_any_byte_keeps_its_whole_lines_and_goes_on(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("j") / "journal.jsonl"
    write(path, [("run", {"i": i}) for i in range(6)])
    whole = path.read_bytes()
    path.write_bytes(whole[: min(cut, len(whole))])
    expected = path.read_bytes().count(b"\n")
    journal = Journal(path)
    assert journal.events == expected
    journal.append("more", {})
    journal.close()
    assert [event.n for event in read(path)] == list(range(1, expected + 2))


def test_damage_before_the_last_line_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [("run", {"i": i}) for i in range(3)])
    path.write_bytes(path.read_bytes().replace(b'"i":1', b'"i":7'))
    with pytest.raises(JournalError, match=r"journal\.jsonl:2: .*damaged"):
        list(read(path))


NESTED = b'{"n":2,"event":"call","data":' + b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("change", "line", "reason"),
    [
        (lambda lines: lines[:1] + lines[2:], 2, "its number n is 3"),
        (lambda lines: lines[1:], 1, "its number n is 2"),
        (lambda lines: lines[:2] + lines[1:], 3, "its number n is 2"),
        (lambda lines: [*lines, lines[-1]], 5, "its number n is 4"),
        (lambda lines: [lines[0], lines[2], lines[1], lines[3]], 2, "its number n is 3"),
        (lambda lines: [*lines, lines[0]], 5, "its number n is 1"),
        (lambda lines: [lines[0], b'{"hello": "world"}\n', *lines[1:]], 2, "it is damaged"),
        (lambda lines: [lines[0], b"\n", *lines[1:]], 2, "it is damaged"),
        (lambda lines: [lines[0], b"\0" * (1 << 22) + b"\n", *lines[1:]], 2, "it is damaged"),
        (lambda lines: [lines[0], sealed(b"[1"), *lines[1:]], 2, "it is not an event"),
        (lambda lines: [lines[0], sealed(b'{"n":2,"event":"call"'), *lines[1:]], 2, "it is not an event"),
        (
            lambda lines: [lines[0], sealed(b'{"n":true,"event":"x","data":1'), *lines[1:]],
            2,
            "its number n is True",
        ),
        (lambda lines: [lines[0], sealed(b'{"n":2,"event":"\xff"'), *lines[1:]], 2, "it is not an event"),
        (lambda lines: [lines[0], sealed(NESTED), *lines[1:]], 2, "it is not an event"),
        (lambda lines: [*lines, sealed(b'{"n":5,"event":"call"')], 5, "it is not an event"),
    ],
)
def test_lines_missing_doubled_moved_or_foreign_are_refused_by_number_with_advice(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], line: int, reason: str
) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [("run", {"i": i}) for i in range(4)])
    damaged = b"".join(change(path.read_bytes().splitlines(keepends=True)))
    path.write_bytes(damaged)
    for use in (lambda path: list(read(path)), Journal):
        with pytest.raises(JournalError) as refused:
            use(path)  # type: ignore[no-untyped-call]
        message = str(refused.value)
        assert message.startswith(f"{path}:{line}: this line of the journal cannot be relied on: {reason}")
        assert message.endswith("; restore the file, or delete the run's folder and start a new run")
        assert len(message) < 1000
    assert path.read_bytes() == damaged


def sealed(head: bytes) -> bytes:
    """Return a line with a correct checksum."""
    return b'%s,"crc":"%08x"}\n' % (head, zlib.crc32(head))


@pytest.mark.parametrize("size", [0, 10, 5000, 40_000])
def test_the_end_of_a_run_is_seen_in_the_last_line_however_long_it_is(tmp_path: Path, size: int) -> None:
    path = tmp_path / "journal.jsonl"
    end = {"status": "complete", "finished_at": "T1", "warnings": ["x" * size]}
    write(path, [("run", {}), ("finish", end)])
    assert ended_at(path, "T1")
    assert not ended_at(path, "T2")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert not ended_at(path, "T1")
    path.write_bytes(whole + encode(3, "resume", {}))
    assert not ended_at(path, "T1")
    path.write_bytes(whole + sealed(b'{"n":3,"event":"finish","data":7'))
    assert not ended_at(path, "T1")
    path.write_bytes(b"")
    assert not ended_at(path, "T1")


def test_a_journal_is_open_while_it_is_written_and_looking_does_not_disturb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GLANCES", 10_000)
    path = tmp_path / "journal.jsonl"
    assert not is_open(path)
    journal = Journal(path)
    assert is_open(path)
    journal.close()
    assert not is_open(path)
    with path.open("rb") as glance:
        fcntl.flock(glance, fcntl.LOCK_SH)
        threading.Timer(0.03, lambda: fcntl.flock(glance, fcntl.LOCK_UN)).start()
        Journal(path).close()


def test_a_commit_returns_only_after_an_fsync_of_all_that_was_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs" / "run1" / "journal.jsonl"
    syncs = Syncs(monkeypatch)
    journal = Journal(path)
    assert [name for name, _ in syncs.seen] == ["run1", "runs"]  # the names of a new file and its folder

    async def play() -> None:
        for data in range(3):
            journal.append("rollout", data)
            await journal.commit()
            assert syncs.seen[-1] == ("journal.jsonl", path.stat().st_size)

    asyncio.run(play())
    assert len(syncs.seen) == 2 + 3
    journal.append("finish", {})
    journal.close()
    assert syncs.seen[-1] == ("journal.jsonl", path.stat().st_size)
    assert len(syncs.seen) == 2 + 4


def test_a_failing_fsync_fails_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append("run", {})

    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(JournalError, match="cannot sync the journal"):
            asyncio.run(journal.commit())
    asyncio.run(journal.commit())  # the next one tries again
    journal.close()


def test_what_is_appended_during_an_fsync_waits_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    begun, go = threading.Event(), threading.Event()
    syncs: list[int] = []

    def fsync(fd: int) -> None:
        syncs.append(journal.events)
        begun.set()
        go.wait(5)

    async def play() -> None:
        journal.append("rollout", 0)
        first = asyncio.create_task(journal.commit())
        await asyncio.to_thread(begun.wait, 5)
        journal.append("rollout", 1)
        second = asyncio.create_task(journal.commit())
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(first, second)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        asyncio.run(play())
    assert syncs == [1, 2]
    journal.close()


def test_commits_in_flight_share_an_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    syncs: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: syncs.append(journal.events))

    async def write_many() -> None:
        async def one(i: int) -> None:
            journal.append("rollout", i)
            await journal.commit()

        await asyncio.gather(*(one(i) for i in range(50)))

    asyncio.run(write_many())
    assert len(syncs) <= 2
    assert syncs[-1] == 50
    journal.close()


def test_an_unwritable_folder_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file, not a folder")
    with pytest.raises(JournalError, match=r"journal\.jsonl"):
        Journal(tmp_path / "runs" / "journal.jsonl")


def test_a_journal_that_another_process_holds_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GLANCE_S", 0.0)
    journal = Journal(tmp_path / "journal.jsonl")
    with pytest.raises(JournalError, match=r"journal\.jsonl is in use by another process"):
        Journal(tmp_path / "journal.jsonl")
    journal.close()
    Journal(tmp_path / "journal.jsonl").close()


def test_a_journal_whose_name_may_be_lost_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(module, "sync_folder", refuse)
        with pytest.raises(JournalError, match=r"cannot sync the folder of the journal .*Input/output error"):
            Journal(tmp_path / "journal.jsonl")
    Journal(tmp_path / "journal.jsonl").close()


def test_the_end_of_a_journal_that_cannot_be_read_is_an_error_and_not_no_end(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    with pytest.raises(JournalError, match=r"cannot read the journal .*journal\.jsonl"):
        ended_at(tmp_path / "journal.jsonl", "2026-01-01T00:00:00Z")


def test_a_disk_that_fills_up_leaves_the_lines_before_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.append("run", {})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, hard))
    try:
        for _ in range(2):
            with pytest.raises(JournalError, match=r"cannot write the journal"):
                journal.append("rollout", {"answer": "x" * 100})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    journal.append("finish", {})
    journal.close()
    assert [event.event for event in read(path)] == ["run", "finish"]


@pytest.mark.parametrize("torn", [b"", b'{"n": 4, "event"'])
def test_lines_that_were_read_just_now_are_not_read_again(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [("rollout", n) for n in range(2)])
    (_, _), (last, end) = scan(path)
    write(path, [("rollout", 2)])
    path.write_bytes(path.read_bytes().replace(b'"data":0', b'"data":9') + torn)
    journal = Journal(path, last.n, end)  # what has changed before `end` is none of its business
    assert journal.events == 3
    journal.append("rollout", 3)
    journal.close()
    assert [event.data for event, _ in scan(path, last.n, end)] == [2, 3]


def test_a_journal_shorter_than_what_was_read_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [("rollout", n) for n in range(5)])
    size = path.stat().st_size
    path.unlink()
    write(path, [("rollout", 0)])
    journal = Journal(path, 5, size)
    journal.append("rollout", 1)
    journal.close()
    assert [event.n for event in read(path)] == [1, 2]
