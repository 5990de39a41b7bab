"""Old jobs that ended go."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from support.patterns.jobs import job_id, log_of, manifest, queue_with
from support.patterns.working import ToldGit, write_files

from pytest_tfgrpo.patterns.jobs.job_stats import queue_stats
from pytest_tfgrpo.patterns.jobs.manifest import JobAttempt, LearningStatus
from pytest_tfgrpo.patterns.jobs.prune import ended_at, prune
from pytest_tfgrpo.patterns.jobs.queue import WorkOutcome
from pytest_tfgrpo.patterns.jobs.settle import settle

NOW = datetime.now(UTC) + timedelta(days=31)
ENDS = ["prove", "disprove", "stall", "defer"]


@pytest.fixture
def told():
    return ToldGit()


@pytest.fixture
def queue(tmp_path):
    """A queue with a job of each end, one that waits, and one that was refused."""
    jobs = [write_files(tmp_path / job_id(n), manifest(n)) for n in range(6)]
    jobs = [replace(job, captured=replace(job.captured, repository=str(tmp_path))) for job in jobs]
    jobs[5] = replace(jobs[5], status=LearningStatus.REFUSED)
    with queue_with(tmp_path, *jobs) as queue:
        for n, trigger in enumerate(ENDS):
            queue.take(f"w{n}")
            queue.finish(job_id(n), f"w{n}", WorkOutcome(trigger=trigger))
        settle(queue, None)
        yield queue


def test_ended_jobs_go_with_folder_and_reference(queue, told):
    lines = list(prune(queue, told, 30, (), NOW))
    assert [line.split()[0::2] for line in lines] == [
        ["removed", "validated"],
        ["removed", "validation_failed"],
        ["removed", "refused"],
    ]
    assert [job.id for job in queue.jobs()] == [job_id(2), job_id(3), job_id(4)]
    assert {path.name for path in queue.folder.glob("*-*-*")} == {job_id(2), job_id(3), job_id(4)}
    assert told.dropped == [f"refs/learning/{job_id(n)}" for n in (0, 1, 5)]
    assert not list(queue.folder.glob(".pruned-*"))
    settle(queue, None)
    assert [event for event, _ in log_of(queue)].count("pruned") == 3
    assert queue_stats(queue)["jobs"]["validated"] == 1


def test_young_jobs_stay(queue, told):
    assert [*prune(queue, told, 30, (), NOW - timedelta(days=2))] == [
        f"removed  {job_id(5)[:8]}  refused"  # its capture was long ago
    ]


def test_a_clock_that_went_back_removes_nothing(queue, told):
    assert list(prune(queue, told, 30, (), datetime(2020, 1, 1, tzinfo=UTC))) == []


def test_what_a_pattern_rests_on_stays(queue, told):
    lines = list(prune(queue, told, 30, {job_id()}, NOW))
    assert lines[0] == f"kept     {job_id()[:8]}  validated: a pattern rests on it"
    assert queue.folder_of(job_id()).is_dir()


def test_what_cannot_be_removed_stays_whole(queue, told):
    def fail(*_):
        raise OSError(30, "Read-only file system")

    told.drop = fail
    lines = list(prune(queue, told, 30, (), NOW))
    assert all("cannot be removed" in line for line in lines)
    assert len(queue.jobs()) == 6
    assert queue.folder_of(job_id()).is_dir()


def test_what_a_killed_prune_left_goes(queue, told):
    (queue.folder / ".pruned-x" / "logs").mkdir(parents=True)
    list(prune(queue, told, 300, (), NOW))
    assert not (queue.folder / ".pruned-x").exists()
    assert settle(queue, None) == []


def test_a_job_that_was_tried_again_ended_with_its_last_attempt() -> None:
    ends = ("2026-01-02T00:00:00Z", "", "2026-03-04T00:00:00Z")
    job = manifest(attempts=tuple(JobAttempt(worker="w", started_at=ends[0], ended_at=end) for end in ends))
    assert ended_at(job, datetime.now(UTC)) == datetime(2026, 3, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at", "end"),
    [
        ("2026-03-04T00:00:00", datetime(2026, 3, 4, tzinfo=UTC)),
        ("2026-03-04T00:00:00+02:00", datetime(2026, 3, 3, 22, tzinfo=UTC)),
        ("yesterday", NOW),
    ],
)
def test_a_time_without_a_zone_is_utc_and_what_is_no_time_is_not_known(at: str, end: datetime) -> None:
    job = manifest()
    assert ended_at(replace(job, captured=replace(job.captured, created_at=at)), NOW) == end


def test_a_job_that_ended_just_so_long_ago_goes(queue, told):
    ended = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert list(prune(queue, told, 30, (), ended + timedelta(days=30, microseconds=-1))) == []
    assert [*prune(queue, told, 30, (), ended + timedelta(days=30))] == [f"removed  {job_id(5)[:8]}  refused"]


def test_a_job_without_snapshot_repository_or_folder_goes_too(tmp_path, told):
    gone = manifest(0, status=LearningStatus.REFUSED, snapshot=None)
    away = manifest(1, status=LearningStatus.REFUSED)
    with queue_with(tmp_path, gone, away) as queue:
        assert len(list(prune(queue, told, 30, (), NOW))) == 2
        assert (queue.jobs(), told.dropped) == ([], [])


def test_a_job_that_changed_meanwhile_stays(queue, told, monkeypatch):
    monkeypatch.setattr(type(queue), "remove", lambda *_: False)
    lines = list(prune(queue, told, 30, (), NOW))
    assert lines[0] == f"kept     {job_id()[:8]}  it has changed meanwhile"
    assert queue.folder_of(job_id()).is_dir()
