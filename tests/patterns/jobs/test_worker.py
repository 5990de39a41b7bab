"""What a worker does with one job."""

import time
from dataclasses import replace

import pytest
from support.patterns.jobs import job_id, log_of, manifest, queue_with, status_of
from support.patterns.snapshots import captured
from support.patterns.working import Proof, ToldGit, tools
from support.repositories import Repository, git

from pytest_tfgrpo.core.errors import ModelError, SnapshotError, StoreError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.patterns.jobs.crew import CrewPlan, work_queue
from pytest_tfgrpo.patterns.jobs.manifest import JobRequeue, LearningStatus
from pytest_tfgrpo.patterns.jobs.manifest_file import read_manifest
from pytest_tfgrpo.patterns.jobs.settle import settle
from pytest_tfgrpo.patterns.jobs.worker import LearningWorker
from pytest_tfgrpo.sandbox.programs.cancelling import Cancelled, require_going


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "repository")


@pytest.fixture
def job(repository, tmp_path):
    return captured(tmp_path / "learning" / job_id(), repository)


@pytest.fixture
def queue(job, tmp_path):
    with queue_with(tmp_path / "learning", job) as queue:
        yield queue


@pytest.fixture
def told(job):
    return ToldGit(job.snapshot.tree)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "learning" / job_id()


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


HOW = JobRequeue(approver="ann", reason="r", at="t")
GIVEN = {"diff.patch", "snapshot.tar.gz", "prompt.md"}


def proves(_job, folder):
    """Write files as a harvest does."""
    assert (folder / "prompt.md").read_text() == "Mend the prices.\n"
    (folder / "archives").mkdir(exist_ok=True)
    for name in ("archives/fix.base.tar.gz", "fix.scenario.yaml"):
        write_text(folder / name, name)
    (folder / "fix.manual.md").unlink(missing_ok=True)
    return Proof()


def defers(_job, folder):
    write_text(folder / "fix.manual.md", "Say how its tests run.")
    return Proof(LearningStatus.NEEDS_MANUAL, RootCause.SCENARIO_SYNTHESIS, "no runner", "fix")


def test_a_proven_job_has_its_scenario_and_its_pattern(queue, told, folder):
    done = LearningWorker(queue, tools(proves, git=told)).work()
    assert (done.manifest.status, done.lost) == ("validated", False)
    assert (done.manifest.scenario, done.manifest.pattern) == ("fix-prices", "fix-prices")
    assert files(folder) == GIVEN | {"archives/fix.base.tar.gz", "fix.scenario.yaml"}
    settle(queue, None)
    ends = [("prove", "validated"), ("pattern", "")]
    assert log_of(queue) == [("capture", "queued"), ("take", "running"), *ends]
    assert LearningWorker(queue, tools()).work() is None


@pytest.mark.parametrize(
    ("proof", "cause"),
    [
        (Proof(LearningStatus.VALIDATION_FAILED, RootCause.TEST_FAILURE, "x", broken=2), "test_failure"),
        (Proof(LearningStatus.NEEDS_MANUAL, RootCause.SCENARIO_SYNTHESIS, "x"), "scenario_synthesis"),
    ],
)
def test_a_proof_that_fails_says_why_and_writes_no_pattern(queue, told, proof, cause):
    def author(_job, _folder):
        raise AssertionError

    done = LearningWorker(queue, tools(lambda *_: proof, git=told, author=author)).work()
    found = done.manifest
    assert (found.status, found.root_cause, found.reason) == (proof.status, cause, "x")
    assert (found.scenario, found.pattern) == ("", "")


def test_what_needs_a_person_lies_in_the_folder_until_it_is_proven(queue, told, folder):
    LearningWorker(queue, tools(defers, git=told)).work()
    assert files(folder) == GIVEN | {"fix.manual.md"}
    queue.requeue(job_id(), HOW, lambda one: one)
    LearningWorker(queue, tools(proves, git=told)).work()
    assert files(folder) == GIVEN | {"archives/fix.base.tar.gz", "fix.scenario.yaml"}


def test_a_snapshot_that_does_not_hold_stalls_with_logs(queue, told, folder, repository):
    git(repository.folder, "update-ref", "-d", f"refs/learning/{job_id()}")
    done = LearningWorker(queue, tools(lambda *_: 1 / 0, git=told)).work()
    assert (done.manifest.status, done.manifest.root_cause) == ("stalled_snapshot", "snapshot_integrity")
    assert done.manifest.reason == "its reference is gone"
    assert (folder / "logs" / "1-snapshot.txt").read_text() == done.manifest.reason + "\n"
    assert (folder / "logs" / "1-git-status.txt").read_text() == "# branch.head main\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device"), "No space left on device; make room, then requeue it"),
        (StoreError("cannot write x"), "cannot write x; make room, then requeue it"),
        (ZeroDivisionError("oh"), "the proof broke: ZeroDivisionError: oh"),
    ],
)
def test_a_proof_that_breaks_is_the_environments(queue, told, folder, error, said):
    def breaks(*_):
        raise error

    done = LearningWorker(queue, tools(breaks, git=told)).work()
    assert (done.manifest.status, done.manifest.root_cause) == ("validation_failed", "environment")
    assert said in done.manifest.reason
    assert "Traceback" in (folder / "logs" / "1-error.txt").read_text()


def test_a_folder_that_cannot_be_written_is_the_environments(queue, told, folder):
    def author(_job, _folder):
        (folder / "archives").write_text("in the way")
        return lambda: "one"

    done = LearningWorker(queue, tools(proves, git=told, author=author)).work()
    assert (done.manifest.status, done.manifest.root_cause) == ("validation_failed", "environment")


def test_a_worker_that_is_interrupted_lets_go_of_its_job(queue, told, folder):
    def interrupted(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LearningWorker(queue, tools(interrupted, git=told)).work()
    assert status_of(queue) == "queued"
    assert files(folder) == GIVEN
    assert [one.status for one in queue.find(job_id()).manifest.attempts] == ["queued"]


def test_a_worker_that_is_stopped_lets_go_of_its_job(queue, told):
    def long(*_):
        require_going()
        raise AssertionError

    with pytest.raises(Cancelled):
        LearningWorker(queue, tools(long, git=told), stopped=lambda: True).work()
    assert status_of(queue) == "queued"


def test_a_worker_whose_lease_was_lost_writes_nothing(queue, told, folder):
    written = []

    def late(job, place):
        proves(job, place)
        queue.lose(job_id(), queue.find(job_id()).beat)
        return Proof()

    def author(*_):
        return lambda: written.append(1) or "one"

    done = LearningWorker(queue, tools(late, git=told, author=author)).work()
    assert done.lost
    assert (status_of(queue), written, files(folder)) == ("queued", [], GIVEN)


def test_a_pattern_that_cannot_be_made_is_made_later(queue, told):
    def no_model(*_):
        raise ModelError("the model is away", "server")

    done = LearningWorker(queue, tools(proves, git=told, author=no_model)).work()
    assert (done.manifest.status, done.manifest.pattern) == ("validated", "")
    assert done.manifest.reason == "no pattern: the model is away"
    worker = LearningWorker(queue, tools(git=told, author=no_model))
    assert worker.add_patterns() == [f"job {job_id()[:8]} still has no pattern: the model is away"]
    assert LearningWorker(queue, tools(git=told)).add_patterns() == []
    assert queue.find(job_id()).manifest.pattern == "fix-prices"
    settle(queue, None)
    assert read_manifest(queue.folder_of(job_id())).pattern == "fix-prices"
    assert log_of(queue)[-1] == ("pattern", "")


def test_a_pattern_that_cannot_be_written_is_written_later(queue, told):
    def full():
        assert status_of(queue) == "validated"
        raise OSError(28, "No space left on device")

    done = LearningWorker(queue, tools(proves, git=told, author=lambda *_: full)).work()
    assert (done.manifest.status, done.manifest.pattern) == ("validated", "")
    assert "no pattern yet: [Errno 28] No space left on device" in done.manifest.reason
    assert LearningWorker(queue, tools(git=told)).add_patterns() == []
    assert queue.find(job_id()).manifest.pattern == "fix-prices"


def test_a_crew_works_all_that_can_be_taken(tmp_path, queue, told):
    queue.add(manifest(1, trigger="self"))
    queue.add(replace(manifest(2), snapshot=None))
    done = list(work_queue(queue.folder, tools(proves, git=told), CrewPlan(workers=2)))
    found = {one.manifest.job_id: one.manifest.status for one in done}
    assert found == {job_id(): "validated", job_id(2): "stalled_snapshot"}
    assert status_of(queue, 1) == "queued"


def test_a_crew_takes_the_job_of_a_lost_worker(queue, told):
    queue.take("gone")
    plan = CrewPlan(ttl_s=0.01)
    [done] = work_queue(queue.folder, tools(proves, git=told), plan)
    assert [one.status for one in done.manifest.attempts] == ["", "validated"]


def test_a_crew_that_works_once_takes_one(queue, told):
    queue.add(replace(manifest(1), snapshot=None))
    [done] = work_queue(queue.folder, tools(proves, git=told), CrewPlan(once=True))
    assert (done.manifest.job_id, status_of(queue, 1)) == (job_id(), "queued")


def test_a_queue_that_fails_ends_a_crew(queue, told, monkeypatch):
    def fail(*_, **__):
        raise StoreError("the disk is full")

    monkeypatch.setattr(type(queue), "take", fail)
    with pytest.raises(StoreError, match="the disk is full"):
        list(work_queue(queue.folder, tools(git=told), CrewPlan(workers=2)))


def test_a_git_that_says_nothing_of_the_tree_is_in_the_log(queue, told, folder, repository):
    def status(_repository):
        raise SnapshotError("git status failed")

    git(repository.folder, "update-ref", "-d", f"refs/learning/{job_id()}")
    told.status = status
    LearningWorker(queue, tools(git=told)).work()
    assert "git status failed" in (folder / "logs" / "1-git-status.txt").read_text()
    queue.requeue(job_id(), HOW, lambda one: one)
    LearningWorker(queue, tools(git=told)).work()
    assert (folder / "logs" / "2-snapshot.txt").read_text() == "its reference is gone\n"


def test_a_worker_that_cannot_put_its_job_back_raises_what_stopped_it(queue, told, monkeypatch):
    def fail(*_, **__):
        raise StoreError("the disk is full")

    def interrupted(*_):
        monkeypatch.setattr(type(queue), "finish", fail)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LearningWorker(queue, tools(interrupted, git=told)).work()
    assert status_of(queue) == "running"


def test_a_lease_that_is_lost_while_a_proof_is_cancelled_is_no_error(queue, told):
    def cancelled(*_):
        while status_of(queue) == "running":  # a renewal may come between the look and the loss
            queue.lose(job_id(), queue.find(job_id()).beat)
        end = time.monotonic() + 100
        while time.monotonic() < end:
            require_going()
            time.sleep(0.001)

    done = LearningWorker(queue, tools(cancelled, git=told), renewed_s=0.02).work()
    assert (done.lost, done.manifest.job_id, status_of(queue)) == (True, job_id(), "queued")


def test_reasons_of_proof_and_pattern_are_one_line_each_and_broken_tests_are_logged(queue, told):
    def no_model(*_):
        raise ModelError("the model\nis away", "server")

    proof = Proof(reason="wavering tests left out: x" + "y" * 900, broken=3)
    done = LearningWorker(queue, tools(lambda *_: proof, git=told, author=no_model)).work()
    reason = done.manifest.reason
    assert reason.startswith(proof.reason[:900])
    assert "; no pattern: the model is away" in reason
    settle(queue, None)
    assert '"broken": 3' in (queue.folder / "log.jsonl").read_text()


def test_a_crew_says_which_job_was_lost_for_good(queue, told):
    for n in range(2):
        queue.lose(job_id(), queue.take(f"gone-{n}").beat)
    queue.take("gone-3")
    [lost] = work_queue(queue.folder, tools(proves, git=told), CrewPlan(ttl_s=0.01))
    assert (lost.lost, lost.elapsed_s, lost.manifest.status) == (True, 0.0, "validation_failed")
