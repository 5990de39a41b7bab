"""The figures of jobs."""

from support.patterns.jobs import job_id, manifest, queue_with

from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.patterns.jobs.job_stats import job_stats, queue_stats
from pytest_tfgrpo.patterns.jobs.manifest import JobRequeue, LearningStatus
from pytest_tfgrpo.patterns.jobs.queue import WorkOutcome

HOW = JobRequeue(approver="ann", reason="r", at="t")
FAILED = WorkOutcome(trigger="disprove", root_cause=RootCause.TEST_FAILURE, reason="x", broken=2)


def test_they_come_from_what_happened(tmp_path):
    with queue_with(tmp_path, *(manifest(n) for n in range(4))) as queue:
        queue.add(manifest(4, status=LearningStatus.SNAPSHOT_FAILED))
        queue.note("skipped", {"reason": "nothing has changed"})
        for n, outcome in enumerate([WorkOutcome(trigger="prove"), FAILED, WorkOutcome(trigger="stall")]):
            queue.take(f"w{n}")
            queue.finish(job_id(n), f"w{n}", outcome)
        queue.lose(job_id(3), queue.take("w3").beat)
        assert queue_stats(queue) == {
            "jobs": {
                **{"queued": 1, "snapshot_failed": 1, "stalled_snapshot": 1},
                **{"validated": 1, "validation_failed": 1},
            },
            "skipped": 1,
            "causes": {"test_failure": 1},
            "pass_rate": 0.5,
            "stalls": {"resolved": 0, "open": 1, "median_s": None},
            "regressions_caught": 1,
            "leases_lost": 1,
            "alerts": {"owed": 2},
        }
        queue.requeue(job_id(1), HOW, lambda one: one)
        found = queue_stats(queue)
        assert (found["causes"], found["pass_rate"], found["regressions_caught"]) == ({}, 1.0, 1)


def entry(job, to, minute):
    return {"event": "x", "job": job, "to": to, "time": f"2026-01-01T12:{minute:02}:00.000Z"}


def test_the_time_of_a_stall_ends_when_a_person_puts_the_job_back():
    stalled = "stalled_snapshot"
    rows = [entry(job, stalled, at) for job, at in (("a", 0), ("b", 10), ("c", 20), ("d", 30))]
    rows += [entry("a", "queued", 1), entry("b", "queued", 5), entry("c", "queued", 30)]
    rows += [entry("a", "running", 50)]
    assert job_stats(rows)["stalls"] == {"resolved": 3, "open": 1, "median_s": 60.0}


def test_each_kind_of_lost_lease_and_each_job_with_broken_tests_counts_once():
    rows = [{**entry("a", "queued", 1), "event": "lose", "broken": 0}, {**entry("b", "x", 2), "broken": 1}]
    rows += [{**entry("a", "validation_failed", 3), "event": "give_up", "root_cause": "environment"}]
    rows += [{**entry("b", "validated", 4), "broken": 2}]
    found = job_stats(rows)
    assert (found["leases_lost"], found["regressions_caught"], found["pass_rate"]) == (2, 1, 0.5)
    assert (found["causes"], found["jobs"]) == (
        {"environment": 1},
        {"validated": 1, "validation_failed": 1},
    )


def test_a_stall_that_ended_before_it_began_took_no_time():
    rows = [entry("a", "stalled_snapshot", 9), entry("a", "queued", 1)]
    assert job_stats(rows)["stalls"] == {"resolved": 1, "open": 0, "median_s": 0.0}


def test_nothing_happened():
    found = job_stats([])
    assert (found["jobs"], found["pass_rate"], found["stalls"]["median_s"]) == ({}, None, None)
