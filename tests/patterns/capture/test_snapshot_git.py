"""Snapshots of jobs: their sums, and what is made again of them."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.captures import job_of, kept, learning, objects_of, refs_of
from support.repositories import Repository, git

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.patterns.capture.snapshot_git import RepositoryGit
from pytest_tfgrpo.patterns.jobs.integrity import SnapshotGit, broken
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, WorkSnapshot

GIT: SnapshotGit = RepositoryGit({})


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with unfinished work."""
    repository = Repository(tmp_path / "shop")
    repository.commit({"a.py": "x = 1\n", "blob": b"\0\1", "crlf": "1\r\n"})
    git(repository.folder, "reset", "-q", "--hard", "main")
    (repository.folder / "a.py").write_text("x = 2 \n")
    (repository.folder / "crlf").write_bytes(b"2\r\n")
    (repository.folder / "blob").write_bytes(b"\0\1\2")
    return repository.folder


def snapshot_of(job: JobManifest) -> WorkSnapshot:
    assert job.snapshot is not None
    return job.snapshot


def test_a_captured_snapshot_holds(shop: Path) -> None:
    job = job_of(shop)
    known = objects_of(shop)
    assert broken(job, learning(shop) / job.job_id, GIT) == []
    assert objects_of(shop) == known


def test_a_diff_that_leads_elsewhere_is_seen(shop: Path) -> None:
    snapshot = snapshot_of(job_of(shop))
    assert GIT.applied(
        shop, snapshot.base_tree, (learning(shop) / snapshot.ref[14:] / "diff.patch").read_bytes()
    )
    other = b"diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n"
    assert GIT.applied(shop, snapshot.base_tree, other) not in (snapshot.tree, snapshot.base_tree)
    with pytest.raises(SnapshotError, match="apply failed"):
        GIT.applied(shop, snapshot.base_tree, b"no diff\n")


def test_the_status_of_the_working_tree(shop: Path) -> None:
    before = kept(shop)
    assert GIT.status(shop) == "## main\n M a.py\n M blob\n M crlf\n"
    assert kept(shop) == before


def test_files_and_reference_are_made_again_from_the_commit(shop: Path) -> None:
    job = job_of(shop)
    snapshot, folder = snapshot_of(job), learning(shop) / job.job_id
    git(shop, "update-ref", "-d", snapshot.ref)
    (shop / "a.py").write_text("x = 3\n")
    made = GIT.rebuild(snapshot, shop)
    assert (made.work, made.files) == (snapshot, job.captured.files)
    assert made.diff == (folder / "diff.patch").read_bytes()
    assert made.tarball == (folder / "snapshot.tar.gz").read_bytes()
    assert git(shop, "rev-parse", snapshot.ref) == snapshot.commit


def test_a_commit_that_is_not_the_recorded_one_is_no_snapshot(shop: Path) -> None:
    snapshot = snapshot_of(job_of(shop))
    for wrong in (replace(snapshot, tree=snapshot.base_tree), replace(snapshot, base=snapshot.commit)):
        with pytest.raises(SettingError, match="its manifest was changed"):
            GIT.rebuild(wrong, shop)
    with pytest.raises(SnapshotError, match="is gone from the repository; capture the work again"):
        GIT.rebuild(replace(snapshot, commit="0" * 40), shop)


def test_a_snapshot_that_failed_is_taken_again(shop: Path) -> None:
    wall = shop / ".git" / "refs" / "learning"
    wall.write_text("in the way")
    job = job_of(shop)
    wall.unlink()
    (shop / "out").mkdir()
    (shop / "out" / "report.html").write_text("a run's own file")
    for _ in range(2):  # the first one was cut short behind its snapshot
        made = GIT.retake(job, shop / "out")
        assert made.files == ("a.py", "blob", "crlf")
    shutil.rmtree(shop / "out")
    assert refs_of(shop) == [f"refs/learning/{job.job_id}"]
    GIT.drop(shop, made.work.ref)
    GIT.drop(shop, made.work.ref)
    assert refs_of(shop) == []
    (shop / "key").write_text('TOKEN = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"\n')
    with pytest.raises(SettingError, match="key:1: git_token"):
        GIT.retake(job, shop.parent / "out")
    (shop / "key").unlink()
    merged = replace(job, captured=replace(job.captured, trigger="merge"))
    with pytest.raises(SettingError, match="is of a merge"):
        GIT.retake(merged, shop.parent / "out")
    tried = replace(job, captured=replace(job.captured, trigger="self", improves="other"))
    with pytest.raises(SettingError, match="is of an agent's rollout"):
        GIT.retake(tried, shop.parent / "out")
    git(shop, "checkout", "-q", ".")
    with pytest.raises(SettingError, match="nothing has changed in"):
        GIT.retake(job, shop.parent / "out")
