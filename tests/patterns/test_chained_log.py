"""The log in which each line holds the hash of one before it."""

import errno
import json
import os
import threading

import pytest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.patterns.chained_log import NOTHING, ChainedLog


@pytest.fixture
def log(tmp_path):
    return ChainedLog(tmp_path / "folder" / "log.jsonl")


def numbers(log):
    return [entry["n"] for entry in log.entries()]


def fill(log, count=3):
    for n in range(count):
        log.append({"n": n})


def test_each_line_holds_the_hash_of_the_one_before(log):
    assert log.entries() == []
    first, second = log.append({"n": 0}), log.append({"n": 1, "time": "noon"})
    assert [entry["previous"] for entry in log.entries()] == [NOTHING, first]
    assert log.append({"n": 2}) != second
    assert log.entries()[1]["time"] == "noon"
    assert log.entries()[0]["time"].endswith("Z")


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0].replace(b'"n": 0', b'"n": 7'), *lines[1:]],
        lambda lines: [lines[0], lines[2]],
        lambda lines: lines[1:],
        lambda lines: [lines[0], b"{", *lines[1:]],
        lambda lines: [lines[0], b"[1]", *lines[1:]],
        lambda lines: [lines[0], lines[2], lines[1]],
        lambda lines: [lines[0], lines[0].replace(b'"n": 0', b'"n": 7'), *lines[1:]],
    ],
)
def test_a_changed_line_is_found_and_nothing_is_added(log, change):
    fill(log)
    lines = log.path.read_bytes().split(b"\n")[:-1]
    log.path.write_bytes(b"\n".join(change(lines)) + b"\n")
    before = log.path.read_bytes()
    for act in (log.entries, lambda: log.append({"n": 3}), lambda: log.complete([{"n": 3}], "n")):
        with pytest.raises(StoreError, match=r"line [12]: it does not follow"):
            act()
    assert log.path.read_bytes() == before


def test_branches_that_each_added_a_line_merge(log, tmp_path):
    fill(log, 2)
    other = ChainedLog(tmp_path / "other.jsonl")
    other.path.write_bytes(log.path.read_bytes())
    log.append({"n": 2})
    other.append({"n": 3})
    log.path.write_bytes(log.path.read_bytes() + other.path.read_bytes().split(b"\n")[2] + b"\n")
    log.append({"n": 4})
    assert numbers(log) == [0, 1, 2, 3, 4]


def test_a_line_that_a_kill_cut_is_written_over(log):
    fill(log)
    whole = log.path.read_bytes()
    log.path.write_bytes(whole[:-5])
    assert numbers(log) == [0, 1]
    log.append({"n": 9})
    assert numbers(log) == [0, 1, 9]


def test_it_is_completed_once_however_often(log):
    fill(log, 1)
    entries = [{"n": n} for n in range(4)]
    assert [log.complete(entries, "n"), log.complete(entries, "n")] == [3, 0]
    assert numbers(log) == [0, 1, 2, 3]


def test_a_full_disk_leaves_whole_lines(log, monkeypatch):
    fill(log)
    before = log.path.read_bytes()
    really = os.pwrite

    def full(handle, data, offset):
        if offset > len(before):
            raise OSError(errno.ENOSPC, "No space left on device")
        return really(handle, data[:10], offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match="No space left on device; make room"):
        log.append({"n": 3})
    assert log.path.read_bytes() == before


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("elsewhere"), os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_not_written(log, make, tmp_path):
    log.path.parent.mkdir()
    make(log.path)
    with pytest.raises(StoreError, match=r"log\.jsonl"):
        log.append({"n": 0})
    assert not (log.path.parent / "elsewhere").exists()


def test_threads_that_append_at_once_lose_no_line(log):
    def several(start):
        for n in range(start, start + 10):
            ChainedLog(log.path).append({"n": n})

    threads = [threading.Thread(target=several, args=(start,)) for start in (0, 10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers(log)) == list(range(30))
    previous = [json.loads(line)["previous"] for line in log.path.read_text().splitlines()]
    assert len(set(previous)) == 30


def test_what_was_written_is_on_disk_and_a_new_file_in_its_folder_too(log, monkeypatch):
    synced, folders = [], []
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr("pytest_tfgrpo.patterns.chained_log.sync_folder", folders.append)
    fill(log, 2)
    assert log.complete([{"n": 7}, {"n": 8}], "n") == 2
    assert (len(synced), folders) == (4, [log.path.parent])


def test_a_log_that_cannot_be_read_is_named(log):
    log.path.parent.mkdir()
    log.path.mkdir()
    with pytest.raises(StoreError, match=r"cannot read .*log\.jsonl: "):
        log.entries()
    log.path.rmdir()
    os.mkfifo(log.path)
    with pytest.raises(StoreError, match=r"log\.jsonl is no regular file; move it away"):
        log.append({"n": 0})
