"""Whether a snapshot is still what was approved."""

from dataclasses import replace

import pytest
from support.patterns.jobs import job_id
from support.patterns.snapshots import captured
from support.patterns.working import ToldGit
from support.repositories import Repository, git, remove_object

from pytest_tfgrpo.core.errors import SnapshotError
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.patterns.jobs.integrity import broken
from pytest_tfgrpo.patterns.jobs.manifest import JobRequeue

REF = f"refs/learning/{job_id()}"


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "repository")


@pytest.fixture
def job(repository, tmp_path):
    return captured(tmp_path / "job", repository)


@pytest.fixture
def problems(job, tmp_path):
    told = ToldGit(job.snapshot.tree)
    return lambda one=job, git=told: broken(one, tmp_path / "job", git)


def test_a_snapshot_that_nobody_touched_holds(problems):
    assert problems() == []


def test_an_edit_or_a_new_commit_right_after_the_approval_does_not_count(problems, repository):
    (repository.folder / "prices.py").write_text("something else")
    repository.commit({"prices.py": "another\n"})
    assert problems() == []


def test_a_deleted_reference_is_found(problems, repository):
    git(repository.folder, "update-ref", "-d", REF)
    assert problems() == ["its reference is gone"]


def test_a_moved_reference_is_found(problems, repository):
    moved = repository.commit({"prices.py": "x\n"})
    git(repository.folder, "update-ref", REF, moved)
    [said] = problems()
    assert said.startswith(f"its reference leads to {moved[:12]}, not to ")


@pytest.mark.parametrize("name", ["snapshot.tar.gz", "diff.patch"])
@pytest.mark.parametrize("gone", [True, False])
def test_a_changed_file_is_found(problems, tmp_path, name, gone):
    path = tmp_path / "job" / name
    if gone:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() + b"x")
    [said] = problems()
    assert said == f"{name} is gone" if gone else said.startswith(f"{name} has changed: its sha256 is ")


def test_a_missing_commit_and_a_missing_file_are_found(problems, job, repository):
    remove_object(repository, f"{job.snapshot.tree}")
    assert "objects of its trees are missing or damaged" in problems()
    remove_object(repository, job.snapshot.commit)
    assert any("is gone" in one or "missing" in one for one in problems())


def test_a_repository_that_is_gone_is_said(problems, repository, tmp_path):
    repository.folder.rename(tmp_path / "elsewhere")
    [said] = problems()
    assert "there is no folder" in said


@pytest.mark.parametrize(
    ("field", "said"), [("tree", "another tree"), ("base_tree", "another tree"), ("base", "missing")]
)
def test_what_the_manifest_says_must_be_what_git_has(problems, job, field, said):
    changed = replace(job, snapshot=replace(job.snapshot, **{field: "e" * 40}))
    assert any(said in one for one in problems(changed))


def test_files_that_were_not_captured_are_found(problems, job):
    changed = replace(job, captured=replace(job.captured, files=("prices.py",)))
    assert problems(changed) == ["its trees do not differ in the captured files alone: test_prices.py"]


def test_base_and_diff_must_make_the_tree(problems, job):
    [said] = problems(git=ToldGit("e" * 40))
    assert said.startswith("the diff makes the tree eeeeeeeeeeee of its base, not ")

    class Failing(ToldGit):
        def applied(self, *_):
            raise SnapshotError("git apply failed: corrupt patch at line 1")

    assert problems(git=Failing()) == ["git apply failed: corrupt patch at line 1"]


def test_a_signed_file_must_be_as_it_was_signed(problems, job, tmp_path):
    how = JobRequeue(approver="ann", reason="r", at="t", scenario_sha256="a" * 64)
    signed = replace(job, requeues=(how,))
    assert problems(signed) == ["manual.harvest.toml is gone"]
    (tmp_path / "job" / "manual.harvest.toml").write_text("x")
    assert problems(signed)[0].startswith("manual.harvest.toml has changed: its sha256 is 2d711642b726")


def test_a_job_without_a_snapshot_does_not_hold(problems, job):
    assert problems(replace(job, snapshot=None)) == ["there is no snapshot"]


def test_of_files_that_were_signed_the_last_counts(problems, job, tmp_path):
    (tmp_path / "job" / "manual.harvest.toml").write_bytes(b"two")
    signed = tuple(
        JobRequeue(approver="ann", reason="r", at="t", scenario_sha256=stamp_bytes(text) if text else "")
        for text in (b"one", b"two", b"")
    )
    assert problems(replace(job, requeues=signed)) == []
    [said] = problems(replace(job, requeues=signed[:1]))
    assert said.startswith("manual.harvest.toml has changed: its sha256 is ")


def test_a_captured_file_that_did_not_change_and_one_more_that_did_are_named(problems, job):
    captured = replace(job.captured, files=("aaa.py", *job.captured.files))
    assert problems(replace(job, captured=captured)) == [
        "its trees do not differ in the captured files alone: aaa.py"
    ]
    captured = replace(job.captured, files=job.captured.files[1:])
    [said] = problems(replace(job, captured=captured))
    assert said.endswith(f"alone: {job.captured.files[0]}")


def test_a_folder_of_its_trees_that_is_missing_is_found(problems, job, repository):
    remove_object(repository, job.snapshot.tree)
    gone = f"commits are missing: {job.snapshot.commit[:12]}"
    assert problems() == [gone, "objects of its trees are missing or damaged"]


def test_a_commit_that_does_not_follow_from_its_base_is_found(problems, job, repository):
    other = git(repository.folder, "commit-tree", job.snapshot.base_tree)
    snapshot = replace(job.snapshot, base=other)
    assert problems(replace(job, snapshot=snapshot)) == [
        f"the commit {snapshot.commit[:12]} does not follow from {other[:12]}"
    ]
