"""A person puts a job back into the queue."""

import os
from dataclasses import replace

import pytest
from support.patterns.jobs import job_id, log_of, manifest, queue_with
from support.patterns.working import RemadeGit, ToldGit

from pytest_tfgrpo.core.errors import SettingError, SnapshotError, StoreError
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.patterns.jobs.manifest import JobRequeue, LearningStatus
from pytest_tfgrpo.patterns.jobs.queue import WorkOutcome
from pytest_tfgrpo.patterns.jobs.requeue import requeue
from pytest_tfgrpo.patterns.jobs.settle import settle

HOW = JobRequeue(approver="ann", reason="restored", at="")
RECIPE = '[folder."."]\nrunner = "pytest"\n'


@pytest.fixture
def queue(tmp_path):
    with queue_with(tmp_path) as queue:
        queue.take("w1")
        queue.finish(job_id(), "w1", WorkOutcome(trigger="stall", reason="the tarball has changed"))
        yield queue


def test_approver_and_reason_are_kept(queue):
    requeue(queue, queue.find(job_id()), ToldGit(), HOW)
    [how] = queue.find(job_id()).manifest.requeues
    assert (how.approver, how.reason, how.tarball_sha256) == ("ann", "restored", "")
    assert how.at.endswith("Z")
    settle(queue, None)
    assert log_of(queue)[-1] == ("requeue", "queued")


def test_a_rebuilt_snapshot_has_its_new_digests(queue):
    requeue(queue, queue.find(job_id()), RemadeGit(), HOW, rebuild=True)
    found = queue.find(job_id()).manifest
    assert found.snapshot == replace(manifest().snapshot, tarball_sha256=stamp_bytes(b"tar"))
    assert found.requeues[0].tarball_sha256 == stamp_bytes(b"tar")
    assert (queue.folder_of(job_id()) / "snapshot.tar.gz").read_bytes() == b"tar"


def test_a_snapshot_whose_commit_is_gone_is_not_rebuilt(queue):
    with pytest.raises(SnapshotError, match="cannot be made again: there is no commit"):
        requeue(queue, queue.find(job_id()), ToldGit(), HOW, rebuild=True)
    assert queue.find(job_id()).status == "stalled_snapshot"


def test_a_job_without_a_snapshot_needs_one(queue):
    queue.add(replace(manifest(1), status=LearningStatus.SNAPSHOT_FAILED, snapshot=None))
    with pytest.raises(SettingError, match="has no snapshot: let --rebuild take one"):
        requeue(queue, queue.find(job_id(1)), RemadeGit(), HOW)
    requeue(queue, queue.find(job_id(1)), RemadeGit(), HOW, rebuild=True)
    found = queue.find(job_id(1)).manifest
    assert (found.status, found.snapshot.tarball_sha256) == ("queued", stamp_bytes(b"tar"))
    assert found.captured.files == ("prices.py",)


def test_a_signed_file_is_kept_with_its_digest(queue, tmp_path):
    (tmp_path / "mine.toml").write_text(RECIPE)
    requeue(queue, queue.find(job_id()), ToldGit(), HOW, scenario=tmp_path / "mine.toml")
    [how] = queue.find(job_id()).manifest.requeues
    assert how.scenario_sha256 == stamp_bytes(RECIPE.encode())
    assert (queue.folder_of(job_id()) / "manual.harvest.toml").read_text() == RECIPE
    settle(queue, None)
    assert how.scenario_sha256 in (queue.folder / "log.jsonl").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x =", "not TOML"),
        ('[folder."."]\nrunner = "x"\n', r"mine\.toml:2: /folder/\."),
        (None, "read"),
    ],
)
def test_a_file_that_does_not_say_how_tests_run_is_refused(queue, tmp_path, text, said):
    if text is not None:
        (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(SettingError, match=said):
        requeue(queue, queue.find(job_id()), ToldGit(), HOW, scenario=tmp_path / "mine.toml")
    assert queue.find(job_id()).status == "stalled_snapshot"
    assert not (queue.folder_of(job_id()) / "manual.harvest.toml").exists()


def test_a_job_that_is_not_for_it_is_left_as_it_is(queue):
    queue.add(manifest(1))
    with pytest.raises(SettingError, match="'queued', and 'requeue' leads on only from"):
        requeue(queue, queue.find(job_id(1)), RemadeGit(), HOW, rebuild=True)
    assert not queue.folder_of(job_id(1)).exists()


def test_links_in_the_place_of_a_jobs_files_go_and_what_they_lead_to_stays(queue, tmp_path):
    other, folder = tmp_path / "other", queue.folder_of(job_id())
    other.write_text("mine")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("diff.patch", "manifest.json"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(other)
    (folder / "snapshot.tar.gz").unlink(missing_ok=True)
    os.mkfifo(folder / "snapshot.tar.gz")
    requeue(queue, queue.find(job_id()), RemadeGit(), HOW, rebuild=True)
    settle(queue, None)
    assert other.read_text() == "mine"
    assert {path.name for path in folder.iterdir() if path.is_symlink() or not path.is_file()} <= {"logs"}


class FullGit(RemadeGit):
    """A `SnapshotGit` on a full disk, or with a damaged store."""

    def __init__(self, error):
        super().__init__()
        self.error, self.outs = error, []

    def rebuild(self, *_):
        raise self.error

    def retake(self, one, out):
        self.outs.append(out)
        return RemadeGit.rebuild(self, manifest().snapshot, out)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left"), rf"the snapshot of job {job_id()} cannot be made: .*No space left"),
        (StoreError("the store is damaged"), "^the store is damaged$"),
    ],
)
def test_a_snapshot_that_cannot_be_made_leaves_the_job_as_it_is(queue, error, said):
    with pytest.raises(StoreError, match=said):
        requeue(queue, queue.find(job_id()), FullGit(error), HOW, rebuild=True)
    assert queue.find(job_id()).status == "stalled_snapshot"


def test_a_folder_that_cannot_be_written_leaves_the_job_as_it_is(queue, tmp_path):
    queue.folder_of(job_id()).write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot write .*diff\.patch.*; make room"):
        requeue(queue, queue.find(job_id()), RemadeGit(), HOW, rebuild=True)
    assert queue.find(job_id()).manifest.requeues == ()


def test_a_snapshot_is_taken_again_without_the_output_folder_and_its_files_count(queue):
    queue.add(replace(manifest(1), status=LearningStatus.SNAPSHOT_FAILED, snapshot=None))
    git = FullGit(None)
    how = requeue(queue, queue.find(job_id(1)), git, replace(HOW, at="long ago"), rebuild=True)
    assert git.outs == [queue.folder.parent.parent]
    assert (how.tarball_sha256, how.at) == (stamp_bytes(b"tar"), "long ago")
    found = queue.find(job_id(1)).manifest
    assert found.captured.files == ("prices.py",)
    assert found.requeues[0].at != "long ago"
