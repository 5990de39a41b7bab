"""What the queue owes: manifests, lines of the log, alerts."""

import json

import pytest
from support.patterns.jobs import job_id, log_of, manifest, queue_with

from pytest_tfgrpo.patterns.chained_log import ChainedLog
from pytest_tfgrpo.patterns.jobs.alerts import alert_counts
from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus
from pytest_tfgrpo.patterns.jobs.manifest_file import read_manifest, write_manifest
from pytest_tfgrpo.patterns.jobs.queue import WorkOutcome
from pytest_tfgrpo.patterns.jobs.settle import settle

MISSED = {"status": LearningStatus.SNAPSHOT_FAILED, "reason": "the disk was full"}


class Killed(BaseException):
    """The end of a process."""


@pytest.fixture
def queue(tmp_path):
    with queue_with(tmp_path) as queue:
        yield queue


def test_it_is_done_once(queue):
    assert [settle(queue, None), settle(queue, None)] == [[], []]
    assert log_of(queue) == [("capture", "queued")]


def test_a_line_that_a_killed_process_wrote_is_not_written_again(queue, monkeypatch):
    really = ChainedLog.complete

    def killed(log, entries, key):
        really(log, entries, key)
        raise Killed

    monkeypatch.setattr(ChainedLog, "complete", killed)
    with pytest.raises(Killed):
        settle(queue, None)
    monkeypatch.undo()
    queue.take("w1")
    assert settle(queue, None) == []
    assert log_of(queue) == [("capture", "queued"), ("take", "running")]


def test_a_broken_log_stops_no_job_and_is_said_until_it_is_put_back(queue):
    settle(queue, None)
    log = queue.folder / "log.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole.replace(b"ann", b"eve") + whole)
    queue.take("w1")
    queue.finish(job_id(), "w1", WorkOutcome(trigger="prove"))
    for _ in range(2):
        [warning] = settle(queue, None)
        assert warning.startswith("2 lines owed to the log: ")
        assert "line 2: it does not follow" in warning
    assert read_manifest(queue.folder_of(job_id())).status == "validated"
    log.write_bytes(whole)
    assert settle(queue, None) == []
    assert log_of(queue) == [("capture", "queued"), ("take", "running"), ("prove", "validated")]


@pytest.mark.parametrize("left", [0, 1])
def test_lines_that_were_cut_off_stand_there_again_and_are_said(queue, left):
    queue.take("w1")
    settle(queue, None)
    log = queue.folder / "log.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:left]))
    [warning] = settle(queue, None)
    assert f"{2 - left} line" in warning
    assert "had gone, and" in warning
    assert log_of(queue) == [("capture", "queued"), ("take", "running")]
    assert settle(queue, None) == []


def test_a_folder_that_cannot_be_written_is_a_warning(queue):
    queue.folder_of(job_id()).write_text("a file in the way")
    assert "cannot write" in settle(queue, None)[0]
    queue.folder_of(job_id()).unlink()
    assert settle(queue, None) == []
    assert read_manifest(queue.folder_of(job_id())).status == "queued"


def test_people_are_called_once_for_each_transition_that_needs_one(queue):
    calls = []

    def call(data):
        calls.append(json.loads(data))
        return ""

    queue.add(manifest(1, **MISSED))
    queue.take("w1")
    queue.finish(job_id(), "w1", WorkOutcome(trigger="stall", reason="the ref is gone"))
    for _ in range(2):
        assert settle(queue, call) == []
    assert [(one["job"], one["to"], one["reason"]) for one in calls] == [
        (job_id(1), "snapshot_failed", "the disk was full"),
        (job_id(), "stalled_snapshot", "the ref is gone"),
    ]
    assert all(job_id()[:8] in one["needed"] for one in calls)
    assert dict(alert_counts(queue)) == {"called": 2}


@pytest.mark.parametrize("raises", [False, True])
def test_a_failed_call_is_counted_and_stops_nothing(queue, raises):
    def call(_data):
        if raises:
            raise RuntimeError("it ended with code 1")
        return "it ended with code 1"

    queue.add(manifest(1, **MISSED))
    queue.add(manifest(2, **MISSED))
    warnings = settle(queue, call)
    assert len(warnings) == 2
    assert all("it ended with code 1" in one for one in warnings)
    assert dict(alert_counts(queue)) == {"failed": 2}
    assert settle(queue, call) == []


def test_a_call_in_which_the_process_died_counts_as_failed(queue):
    def call(_data):
        raise Killed

    queue.add(manifest(1, **MISSED))
    with pytest.raises(Killed):
        settle(queue, call)
    assert dict(alert_counts(queue)) == {"failed": 1}
    assert settle(queue, lambda _data: "not called again") == []


def test_without_a_command_nobody_is_called_later(queue):
    queue.add(manifest(1, **MISSED))
    settle(queue, None)
    assert settle(queue, lambda _data: "called") == []
    assert dict(alert_counts(queue)) == {"unset": 1}


def test_a_job_whose_capture_was_killed_before_the_queue_knew_it_is_taken_up(queue):
    write_manifest(queue.folder_of(job_id(1)), manifest(1))
    (queue.folder_of(job_id(2)) / "logs").mkdir(parents=True)
    assert settle(queue, None) == []
    assert [job.id for job in queue.jobs()] == [job_id(), job_id(1)]


def test_a_manifest_that_no_row_knows_is_not_taken_for_a_new_job(queue):
    write_manifest(queue.folder_of(job_id(1)), manifest(1, status=LearningStatus.VALIDATED))
    (queue.folder / "odd").mkdir()
    (queue.folder / "odd" / "manifest.json").write_text("{")
    warnings = settle(queue, None)
    assert len(warnings) == 2
    assert any("a new job cannot be 'validated'" in one for one in warnings)
    assert len(queue.jobs()) == 1
