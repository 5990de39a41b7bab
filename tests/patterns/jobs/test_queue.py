"""The queue of jobs."""

import json
import random
from dataclasses import replace
from typing import get_args

import pytest
from support.patterns.jobs import job_id, log_of, manifest, queue_with, status_of

from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.patterns.chained_log import ChainedLog
from pytest_tfgrpo.patterns.jobs.manifest import JobRequeue, LearningStatus
from pytest_tfgrpo.patterns.jobs.manifest_file import read_manifest
from pytest_tfgrpo.patterns.jobs.queue import LOG_FILE, JobQueue, LeaseLost, WorkOutcome, reviewers_of_tests
from pytest_tfgrpo.patterns.jobs.settle import settle
from pytest_tfgrpo.patterns.jobs.states import JOBS, LearningTrigger

HOW = JobRequeue(approver="ann", reason="the disk was full", at="2026-01-01T12:00:00.000Z")
PROVEN = WorkOutcome(trigger="prove", scenario="one")
FAILED = WorkOutcome(trigger="disprove", root_cause=RootCause.TEST_FAILURE, reason="it fails")


@pytest.fixture
def queue(tmp_path):
    with queue_with(tmp_path / "learning") as queue:
        yield queue


def test_a_job_goes_from_capture_to_proof(queue):
    assert status_of(queue) == "queued"
    taken = queue.take("w1")
    assert taken is not None
    assert (taken.status, taken.holder) == ("running", "w1")
    assert queue.take("w2") is None
    assert queue.renew(job_id(), "w1")
    queue.finish(job_id(), "w1", PROVEN)
    assert settle(queue, None) == []
    found = read_manifest(queue.folder_of(job_id()))
    assert found == queue.find(job_id()).manifest
    assert (found.status, found.scenario, found.pattern) == ("validated", "one", "")
    [attempt] = found.attempts
    assert (attempt.worker, attempt.status) == ("w1", "validated")
    assert attempt.ended_at >= attempt.started_at
    assert log_of(queue) == [("capture", "queued"), ("take", "running"), ("prove", "validated")]


def test_adding_again_is_harmless(queue):
    queue.add(manifest())
    queue.add(manifest(1, status=LearningStatus.REFUSED, reason="a secret"))
    settle(queue, None)
    assert [job.status for job in queue.jobs()] == ["queued", "refused"]
    assert log_of(queue) == [("capture", "queued"), ("refuse", "refused")]


def test_the_oldest_is_taken_first_or_the_one_that_is_named(tmp_path):
    with queue_with(tmp_path, *(manifest(n) for n in (2, 0, 1))) as queue:
        assert [queue.take("a").id, queue.take("b", only=job_id(1)).id] == [job_id(2), job_id(1)]
        assert queue.take("c", only=job_id(2)) is None


def test_nothing_of_a_worker_whose_lease_was_lost_is_kept(queue):
    beat = queue.take("w1").beat
    assert queue.lose(job_id(), beat).status == "queued"
    assert not queue.renew(job_id(), "w1")
    published = []
    with pytest.raises(LeaseLost, match="nothing of this attempt is kept"):
        queue.finish(job_id(), "w1", PROVEN, lambda: published.append(1))
    queue.take("w2")
    with pytest.raises(LeaseLost):
        queue.finish(job_id(), "w1", PROVEN, lambda: published.append(1))
    assert published == []
    queue.finish(job_id(), "w2", PROVEN, lambda: published.append(2))
    assert (published, status_of(queue)) == ([2], "validated")
    lost, ended = queue.find(job_id()).manifest.attempts
    assert (lost.status, ended.status) == ("", "validated")


def test_a_lease_that_was_renewed_is_not_lost(queue):
    beat = queue.take("w1").beat
    queue.renew(job_id(), "w1")
    assert queue.lose(job_id(), beat) is None
    assert status_of(queue) == "running"


def test_the_third_lost_lease_in_a_row_ends_a_job(queue):
    for n in (1, 2, 3):
        queue.lose(job_id(), queue.take(f"w{n}").beat)
    found = queue.find(job_id()).manifest
    assert (found.status, found.root_cause) == ("validation_failed", "environment")
    assert found.reason == "the worker w3 was lost: its lease was not renewed, as 3 leases in a row"
    queue.requeue(job_id(), HOW, lambda one: one)
    for n in (4, 5):
        queue.lose(job_id(), queue.take(f"w{n}").beat)
    assert status_of(queue) == "queued"


def test_a_worker_that_stops_loses_no_lease(queue):
    for n in range(4):
        queue.take(f"w{n}")
        queue.finish(job_id(), f"w{n}", WorkOutcome(trigger="stop", reason="interrupted"))
    assert status_of(queue) == "queued"
    assert queue.find(job_id()).lost == 0


def test_files_that_cannot_be_published_leave_the_job_running(queue):
    queue.take("w1")

    def full():
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        queue.finish(job_id(), "w1", PROVEN, full)
    assert status_of(queue) == "running"
    assert queue.renew(job_id(), "w1")


@pytest.mark.parametrize("trigger", ["disprove", "stall", "defer"])
def test_a_person_puts_a_failed_job_back(queue, trigger):
    queue.take("w1")
    queue.finish(job_id(), "w1", WorkOutcome(trigger=trigger, root_cause=RootCause.ENVIRONMENT, reason="x"))
    queue.requeue(job_id(), HOW, lambda one: one)
    found = queue.find(job_id()).manifest
    assert (found.status, found.root_cause, found.reason) == ("queued", None, "")
    assert found.requeues == (HOW,)
    [attempt] = found.attempts
    assert attempt.reason == "x"
    queue.take("w2")
    queue.finish(job_id(), "w2", FAILED)
    settle(queue, None)
    ended = ChainedLog(queue.folder / LOG_FILE).entries()[-1]
    assert (ended["reason"], ended["root_cause"]) == ("it fails", "test_failure")
    again = replace(HOW, reason="the test was wrong", scenario_sha256="b" * 64)
    queue.requeue(job_id(), again, lambda one: one)
    assert queue.find(job_id()).manifest.requeues == (HOW, again)
    settle(queue, None)
    assert ChainedLog(queue.folder / LOG_FILE).entries()[-1]["scenario_sha256"] == "b" * 64


def test_of_two_approvers_one_wins(queue):
    queue.take("w1")
    queue.finish(job_id(), "w1", FAILED)
    with JobQueue(queue.folder) as other:
        other.requeue(job_id(), HOW, lambda one: one)
        with pytest.raises(SettingError, match="'queued', and 'requeue' leads on only from"):
            queue.requeue(job_id(), replace(HOW, approver="ben"), lambda one: one)
    assert queue.find(job_id()).manifest.requeues == (HOW,)


def test_a_proven_job_is_not_put_back(queue):
    queue.take("w1")
    queue.finish(job_id(), "w1", PROVEN)
    with pytest.raises(SettingError, match="'validated', and 'requeue' leads on only from"):
        queue.requeue(job_id(), HOW, lambda one: one)


def test_an_agents_own_idea_waits_for_another(tmp_path):
    with queue_with(tmp_path, manifest(trigger="self", approver="agent-1")) as queue:
        assert queue.take("w1") is None
        with pytest.raises(SettingError, match="'agent-1' proposed job"):
            queue.release(job_id(), "agent-1")
        queue.release(job_id(), "ann")
        assert queue.take("w1").manifest.released_by == "ann"
        with pytest.raises(SettingError, match="waits for no approval: it is running"):
            queue.release(job_id(), "ben")
        settle(queue, None)
        assert log_of(queue) == [("propose", "queued"), ("released", ""), ("take", "running")]


def test_who_has_seen_the_tests_is_kept_once_the_first_first(queue, monkeypatch):
    assert reviewers_of_tests(queue.folder, job_id()) == ()
    moments = iter(f"2026-01-01T12:00:0{n}.000Z" for n in range(3))
    monkeypatch.setattr("pytest_tfgrpo.patterns.jobs.queue.utc_now", lambda: next(moments))
    for reviewer in ("ben", "ann", "ben"):
        queue.note_seen(job_id(), reviewer)
    assert reviewers_of_tests(queue.folder, job_id()) == ("ben", "ann")
    settle(queue, None)
    assert log_of(queue)[1:] == [("tests_seen", "")] * 2
    assert reviewers_of_tests(queue.folder / "elsewhere", job_id()) == ()
    assert not (queue.folder / "elsewhere").exists()


def test_a_job_is_found_by_the_beginning_of_its_id(tmp_path):
    with queue_with(tmp_path, manifest(0), manifest(1)) as queue:
        assert queue.find(job_id(1)).id == job_id(1)
        with pytest.raises(SettingError, match="2 jobs begin with '0000'"):
            queue.find("0000")
        for name in ("", "f"):
            with pytest.raises(SettingError, match=f"no job is {name!r}"):
                queue.find(name)


def act(queue, draw, trigger):
    """Have something happen to a job as a worker, a watcher or a person would do it."""
    holder, beat = queue.find(job_id()).holder, queue.find(job_id()).beat
    if trigger == "take":
        queue.take(f"w{draw.random()}")
    elif trigger in ("lose", "give_up"):
        queue.lose(job_id(), beat)
    elif trigger == "requeue":
        queue.requeue(job_id(), HOW, lambda one: one)
    else:
        queue.finish(job_id(), holder, WorkOutcome(trigger=trigger))


def test_no_sequence_of_calls_leads_out_of_the_table(tmp_path):
    draw, steps = random.Random(0), {(state, after) for (state, _), (after, _) in JOBS.rows.items()}
    with queue_with(tmp_path) as queue:
        for _ in range(150):
            before = status_of(queue)
            try:
                act(queue, draw, draw.choice(get_args(LearningTrigger)))
            except (SettingError, LeaseLost):
                assert status_of(queue) == before
            after = status_of(queue)
            assert after == before or (before, after) in steps, (before, after)
            if after == "validated":
                break


def test_a_stale_job_gets_no_pattern_and_is_not_removed(queue):
    old = queue.take("w1")
    done = queue.finish(job_id(), "w1", replace(PROVEN, reason="wavering tests"))
    queue.note_seen(job_id(), "ann")
    assert not queue.add_pattern(old, lambda: "never")
    assert not queue.remove(old, lambda: 1 / 0)
    assert queue.add_pattern(done, lambda: "one")
    found = queue.find(job_id())
    assert (found.manifest.pattern, found.manifest.reason, found.revision) == ("one", "", done.revision + 1)
    assert queue.remove(found, lambda: None)
    queue.add(manifest())
    assert queue.tests_seen_by(job_id()) == ()


def test_a_lease_lost_three_times_in_a_row_ends_a_job_and_a_finish_between_begins_anew(queue):
    def lose():
        return queue.lose(job_id(), queue.take("w").beat)

    assert [lose().status, lose().lost] == ["queued", 2]
    queue.take("w")
    assert queue.finish(job_id(), "w", WorkOutcome(trigger="stop")).lost == 0
    assert [lose().lost, lose().lost] == [1, 2]
    ended = lose()
    assert (ended.status, ended.manifest.root_cause) == ("validation_failed", RootCause.ENVIRONMENT)
    assert ended.manifest.reason.endswith("its lease was not renewed, as 3 leases in a row")
    assert [one.status for one in ended.manifest.attempts] == ["", "", "queued", "", "", ""]
    queue.requeue(job_id(), HOW, lambda one: one)
    assert queue.find(job_id()).lost == 0


def test_a_lease_that_was_renewed_meanwhile_is_not_ended(queue):
    beat = queue.take("w1").beat
    assert queue.renew(job_id(), "w1")
    assert not queue.renew(job_id(), "w2")
    assert queue.lose(job_id(), beat) is None
    assert queue.lose(job_id(), beat + 2) is None
    assert queue.lose(job_id(), beat + 1).status == "queued"
    assert not queue.renew(job_id(), "w1")


def test_jobs_are_worked_in_the_order_in_which_they_came(tmp_path):
    with queue_with(tmp_path, manifest(2), manifest(0), manifest(1)) as queue:
        assert [queue.take("a").id, queue.take("b", only=job_id(1)).id] == [job_id(2), job_id(1)]
        assert queue.take("c", only=job_id(1)) is None
        assert queue.take("d").id == job_id(0)
        with pytest.raises(LeaseLost, match="the lease was lost; nothing of this attempt is kept"):
            queue.finish(job_id(0), "", PROVEN)


def test_a_job_that_nobody_knows_and_a_folder_that_cannot_be_made_are_named(queue, tmp_path):
    for act in (lambda: queue.release("x", "ann"), lambda: queue.note_seen("x", "ann")):
        with pytest.raises(SettingError, match="no job is 'x'; `tfgrpo learn status` lists them"):
            act()
    (tmp_path / "file").write_text("")
    with pytest.raises(
        StoreError, match=r"cannot make the folder .*file.*; name a folder that you may write"
    ):
        JobQueue(tmp_path / "file" / "learning")


def test_a_released_idea_waits_for_nobody_and_what_is_logged_names_people_and_tests(tmp_path):
    one = manifest(trigger="self", approver="agent-1", released_by="ann")
    with queue_with(tmp_path, one) as queue:
        queue.take("w1")
        queue.finish(job_id(), "w1", replace(FAILED, broken=2))
        queue.requeue(job_id(), replace(HOW, tarball_sha256="a" * 64), lambda same: same)
        settle(queue, None)
        rows = [json.loads(row) for row in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["by"] for row in rows] == ["agent-1", "w1", "w1", "ann"]
    assert [row.get("broken") for row in rows] == [None, None, 2, None]
    assert (rows[3]["reason"], rows[3]["tarball_sha256"]) == (HOW.reason, "a" * 64)
    assert "scenario_sha256" not in rows[3]
