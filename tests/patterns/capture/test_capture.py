"""Finished work as a job: its folder, its snapshot, and what keeps it from being captured."""

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest
from support.captures import Sink, captured, job_of, kept, learning, objects_of, refs_of, staged_tree, tree_of
from support.repositories import ENVIRONMENT, Repository, git

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.history.tree_files import tree_files
from pytest_tfgrpo.patterns.capture import capture as module
from pytest_tfgrpo.patterns.capture.history import WorkHistory
from pytest_tfgrpo.patterns.capture.job_folder import finish
from pytest_tfgrpo.patterns.jobs.manifest import RanCommand
from pytest_tfgrpo.patterns.synthesis.recipe_sources import read_history
from pytest_tfgrpo.sandbox.archives import read_archive

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with one commit, checked out."""
    repository = Repository(tmp_path / "shop")
    repository.commit({"a.py": "x = 1\n", "b/c.py": "y = 1\n", "gone.py": "", ".gitignore": "*.log\n"})
    git(repository.folder, "reset", "-q", "--hard", "main")
    return repository.folder


def work_on(shop: Path) -> None:
    """Change, stage, add, delete."""
    (shop / "a.py").write_text("x = 2\n")
    git(shop, "add", "a.py")
    (shop / "a.py").write_text("x = 3\n")
    (shop / "b" / "new\n\udcff.py").write_text("z = 1\n")
    (shop / "ignored.log").write_text("no\n")
    (shop / "gone.py").unlink()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_job_has_all_that_the_work_was(shop: Path) -> None:
    work_on(shop)
    sink = Sink()
    asked = {"prompt": "Fix x.\n", "criteria": "x is 3", "tests_by": "person"}
    ran = RanCommand(command="tox", exit_code=0, cwd="b")
    history = WorkHistory(commands=(ran,))
    job = job_of(shop, sink=sink, **asked, trigger="self", improves="earlier", history=history)
    assert (sink.jobs, sink.notes) == ([job], [])
    snapshot, folder = job.snapshot, learning(shop) / job.job_id
    assert snapshot is not None
    assert job.captured.files == ("a.py", "b/new\n\udcff.py", "gone.py")
    assert (job.captured.approver, job.captured.tests_by, job.status) == ("ann", "person", "queued")
    assert (job.captured.trigger, job.captured.improves, job.captured.task_id) == ("self", "earlier", "task")
    assert list(read_history(folder)) == [ran]
    assert names(folder) == [
        *("diff.patch", "history.jsonl", "logs", "manifest.json", "prompt.md", "snapshot.tar.gz"),
    ]
    for name, digest in (("snapshot.tar.gz", snapshot.tarball_sha256), ("diff.patch", snapshot.diff_sha256)):
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert (folder / "prompt.md").read_text() == "Fix x.\n\n## Acceptance criteria\n\nx is 3\n"
    assert json.loads((folder / "manifest.json").read_text())["snapshot"]["ref"] == snapshot.ref
    assert git(shop, "rev-parse", snapshot.ref, f"{snapshot.ref}^", f"{snapshot.ref}^{{tree}}").split() == [
        *(snapshot.commit, snapshot.base, snapshot.tree)
    ]
    assert git(shop, "rev-parse", "HEAD", "HEAD^{tree}").split() == [snapshot.base, snapshot.base_tree]


def test_the_archive_is_the_tree_and_the_difference_leads_to_it(shop: Path, tmp_path: Path) -> None:
    work_on(shop)
    (shop / "binary").write_bytes(bytes(range(256)))
    job = job_of(shop)
    assert job.snapshot is not None
    folder = learning(shop) / job.job_id
    with GitObjects(shop) as objects:
        known = list(tree_files(objects, job.snapshot.tree))
    assert list(read_archive(folder / "snapshot.tar.gz")) == sorted(known, key=lambda e: os.fsencode(e.name))
    git(shop, "worktree", "add", "-q", "--detach", str(tmp_path / "other"), job.snapshot.base)
    git(tmp_path / "other", "apply", "--index", str(folder / "diff.patch"))
    assert git(tmp_path / "other", "write-tree") == job.snapshot.tree


def test_a_capture_leaves_the_repository_as_it_was(shop: Path, tmp_path: Path) -> None:
    work_on(shop)
    (shop / "a.py").write_text("x = 4\n")
    git(shop, "stash", "push", "-q")
    work_on(shop)
    wanted = staged_tree(shop, tmp_path / "copy")
    before = kept(shop)
    assert tree_of(shop) == wanted
    assert kept(shop) == before
    assert len(refs_of(shop)) == 1


def test_where_nothing_changed_there_is_no_job(shop: Path) -> None:
    (shop / "ignored.log").write_text("no\n")
    sink, known = Sink(), objects_of(shop)
    assert captured(shop, sink) is None
    assert (sink.jobs, refs_of(shop), objects_of(shop)) == ([], [], known)
    assert sink.notes == [("skipped", {"reason": "nothing has changed", "approver": "ann"})]
    assert names(learning(shop)) == [".gitignore"]


def test_a_secret_refuses_the_work_and_is_nowhere(shop: Path) -> None:
    (shop / "settings.py").write_text(f'# settings\nTOKEN = "{TOKEN}"\n')
    known = objects_of(shop)
    job = job_of(shop)
    assert (job.status, job.snapshot) == ("refused", None)
    assert "settings.py:2: git_token" in job.reason
    assert (refs_of(shop), objects_of(shop)) == ([], known)
    for path in learning(shop).rglob("*"):
        assert path.is_dir() or TOKEN not in path.read_text()


def test_a_secret_in_what_was_asked_for_is_taken_out(shop: Path) -> None:
    work_on(shop)
    job = job_of(shop, prompt=f"Log in with {TOKEN}.", criteria=f"{TOKEN} works")
    prompt = (learning(shop) / job.job_id / "prompt.md").read_text()
    assert prompt.count("[redacted:git_token]") == 2
    assert TOKEN not in prompt


def test_a_secret_that_was_there_before_refuses_nothing(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop")
    repository.commit({"a.py": f'TOKEN = "{TOKEN}"\n'})
    git(repository.folder, "reset", "-q", "--hard", "main")
    (repository.folder / "a.py").write_text(f'TOKEN = "{TOKEN}"\nx = 1\n')
    assert job_of(repository.folder).status == "queued"


def test_a_file_that_is_too_large_refuses_the_work(shop: Path) -> None:
    with (shop / "model.bin").open("wb") as file:
        file.truncate(50_000_001)
    job = job_of(shop)
    assert job.status == "refused"
    assert "'model.bin' has 50000001 bytes" in job.reason


def test_a_commit_or_merge_is_captured_against_its_first_parent(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "GIT_COMMITTER_DATE", "1700000000 +0000")
    (shop / "a.py").write_text("x = 2\n")
    git(shop, "commit", "-qam", "Fix")
    (shop / "untracked").write_text("not in it\n")
    job = job_of(shop, merge="HEAD")
    assert job.snapshot is not None
    assert job.captured.files == ("a.py",)
    assert job.snapshot.base == git(shop, "rev-parse", "HEAD^")
    assert job.snapshot.tree == git(shop, "rev-parse", "HEAD^{tree}")
    assert git(shop, "log", "-1", "--format=%ct", job.snapshot.commit) == "1700000000"  # of its packages
    with pytest.raises(SettingError, match="'HEAD\\^' has no parent"):
        captured(shop, merge="HEAD^")


def test_the_third_failure_ends_it_without_a_snapshot(shop: Path) -> None:
    (shop / "a.py").write_text("x = 2\n")
    (shop / ".git" / "refs" / "learning").write_text("in the way")
    waits: list[float] = []
    job = job_of(shop, sleep=waits.append)
    assert (job.status, job.root_cause, job.snapshot) == ("snapshot_failed", "snapshot_integrity", None)
    assert waits == [0.5, 1.0]
    assert "update-ref failed" in job.reason
    assert (learning(shop) / job.job_id / "manifest.json").is_file()


def test_a_second_try_may_work(shop: Path) -> None:
    (shop / "a.py").write_text("x = 2\n")
    wall = shop / ".git" / "refs" / "learning"
    wall.write_text("in the way")
    job = job_of(shop, sleep=lambda _: wall.unlink())
    assert (job.status, job.reason) == ("queued", "")


def test_a_full_disk_is_a_failure_like_any_other_and_leaves_no_reference(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / "a.py").write_text("x = 2\n")
    left = [OSError(errno.ENOSPC, "No space left on device")] * 3

    def full(folder: Path, place: Path, name: str) -> None:
        if left:
            raise left.pop()
        finish(folder, place, name)

    monkeypatch.setattr(module, "finish", full)
    job = job_of(shop)
    assert (job.status, left, refs_of(shop)) == ("snapshot_failed", [], [])
    assert "No space left on device" in job.reason


def test_a_prompt_that_is_no_text_is_shown_with_escapes(shop: Path) -> None:
    (shop / "a.py").write_text("x = 2\n")
    job = job_of(shop, prompt="Fix \udcff.")
    assert (learning(shop) / job.job_id / "prompt.md").read_text() == "Fix \\udcff.\n"


def test_jobs_are_not_captured_even_where_git_does_not_ignore_the_output_folder(shop: Path) -> None:
    (shop / "a.py").write_text("x = 2\n")
    place = shop / "out" / "task" / "learning"
    first = tree_of(shop, learning=place)
    (shop / "out" / "report.html").write_text("a run's own file\n")
    assert tree_of(shop, learning=place) == first


def test_what_a_killed_capture_left_is_removed(shop: Path) -> None:
    (shop / "a.py").write_text("x = 2\n")
    job = job_of(shop)
    assert job.snapshot is not None
    (learning(shop) / job.job_id).rename(learning(shop) / f".capture-{job.job_id}")
    (learning(shop) / ".capture-none").mkdir()
    again = job_of(shop)
    assert refs_of(shop) == [f"refs/learning/{again.job_id}"]
    assert names(learning(shop)) == sorted([".gitignore", again.job_id])


def test_a_commit_whose_object_is_gone_is_no_repository_without_commits(shop: Path) -> None:
    head = git(shop, "rev-parse", "HEAD").strip()
    (shop / ".git" / "objects" / head[:2] / head[2:]).unlink()
    job = job_of(shop, sleep=lambda _: None)
    assert job.status == "snapshot_failed"
    assert f"the commit {head} of HEAD is missing" in job.reason


def test_a_link_that_leads_out_is_named_with_advice(shop: Path) -> None:
    (shop / "out").symlink_to("/etc/passwd")
    job = job_of(shop, sleep=lambda _: None)
    advice = "; remove it, or let it lead to a file of the tree"
    assert job.reason == f"the link 'out' leads out of the tree, to '/etc/passwd'{advice}"
