"""The log of a harvest: the last row of a commit counts, and a torn line is no row."""

import errno
import os

import pytest
from support.harvests import make_row

from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.harvest.fixes import HarvestStatus, RootCause
from pytest_tfgrpo.harvest.suite.harvest_log import HarvestLog, read_log_of


def test_rows_read_back_and_the_last_of_a_commit_counts(tmp_path):
    failed = make_row(1, status=HarvestStatus.VALIDATION_FAILED, cause=RootCause.TEST_FAILURE, reason="flaky")
    with HarvestLog(tmp_path / "suite") as log:
        log.append([failed, make_row(2)])
        log.append([make_row(1)])
    assert read_log_of(tmp_path / "suite") == {row.commit: row for row in (make_row(1), make_row(2))}
    with HarvestLog(tmp_path / "suite") as log:
        assert list(log.rows.values()) == [make_row(1), make_row(2)]


def test_a_torn_last_line_is_cut_off(tmp_path):
    with HarvestLog(tmp_path) as log:
        log.append([make_row(1), make_row(2)])
    whole = log.path.read_bytes()
    for end in range(whole.index(b"\n") + 1, len(whole), 31):
        log.path.write_bytes(whole[:end])
        with HarvestLog(tmp_path) as again:
            assert list(again.rows.values()) == [make_row(1)]
            again.append([make_row(3)])
        assert len(read_log_of(tmp_path)) == 2


def test_another_damage_is_refused_with_its_line(tmp_path):
    (tmp_path / "harvest.jsonl").write_text('{"commit": "x", "id": "y", "status": "maybe"}\n')
    with pytest.raises(StoreError, match=r"harvest\.jsonl:1: it is not a row of a harvest: .*'maybe'"):
        HarvestLog(tmp_path)
    with pytest.raises(StoreError, match=r"harvest\.jsonl:1"):
        read_log_of(tmp_path)


@pytest.mark.parametrize("damage", ["junk", pytest.param("[" * 100_000, id="deep"), "5"])
def test_damage_below_a_whole_row_is_named_by_its_own_line(tmp_path, damage):
    with HarvestLog(tmp_path / "a" / "suite") as log:
        log.append([make_row(1), make_row(2)])
    with log.path.open("a") as file:
        file.write(f"{damage}\n")
    with pytest.raises(StoreError, match=r"harvest\.jsonl:3: it is not a row of a harvest"):
        read_log_of(log.path.parent)


def test_a_suite_on_which_another_harvest_works_is_locked(tmp_path):
    with HarvestLog(tmp_path), pytest.raises(SettingError, match="is locked: another harvest works on it"):
        HarvestLog(tmp_path)
    HarvestLog(tmp_path).__exit__(None, None, None)


def test_a_row_that_does_not_fit_on_the_disk_leaves_no_part_of_it(tmp_path, monkeypatch):
    with HarvestLog(tmp_path) as log:
        log.append([make_row(1)])
        before = log.path.read_bytes()
        really = os.write

        def full(handle, data):
            if len(data) < 20:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return really(handle, data[: len(data) // 2])

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(StoreError, match="make room and harvest again"):
            log.append([make_row(2)])
    assert log.path.read_bytes() == before


def test_rows_are_on_disk_when_they_are_kept_and_none_writes_nothing(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with HarvestLog(tmp_path) as log:
        synced.clear()
        log.append([])
        assert (synced, log.path.read_bytes()) == ([], b"")
        log.append([make_row(1), make_row(2)])
        assert len(synced) == 1


def test_a_log_that_cannot_be_opened_or_read_is_named(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(SettingError, match=r"a is not a folder; name the folder of a suite"):
        HarvestLog(tmp_path / "a")
    with pytest.raises(StoreError, match=r"cannot open .*harvest\.jsonl"):
        HarvestLog(tmp_path / "a" / "b")
    (tmp_path / "harvest.jsonl").mkdir()
    for act in (HarvestLog, read_log_of):
        with pytest.raises(StoreError, match=r"cannot (open|read) .*harvest\.jsonl: .*directory"):
            act(tmp_path)
    assert read_log_of(tmp_path / "none") == {}
