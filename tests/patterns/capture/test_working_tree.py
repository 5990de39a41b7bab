"""Working trees of every kind: each gives the tree of plain ``git add -A``, or advice."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from support.captures import captured, job_of, kept, refs_of, staged_tree, tree_of
from support.random_states import random_state
from support.repositories import Repository, git

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.harvest.history.git_shadow import locate
from pytest_tfgrpo.patterns.capture.working_tree import require_finished


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with two commits and another branch, checked out."""
    repository = Repository(tmp_path / "shop")
    repository.commit({"a": "1\n", "d/x": "2\n", "d/y": "3\n", "keep/z": "4\n"})
    repository.commit({"a": "2\n"}, branch="other", parents=[git(repository.folder, "rev-parse", "main")])
    repository.commit({"a": "3\n"})
    git(repository.folder, "reset", "-q", "--hard", "main")
    return repository.folder


def change(folder: Path) -> None:
    (folder / "d" / "x").write_text("changed\n")
    (folder / "new").write_text("new\n")


def same_as_plain_git(folder: Path, tmp_path: Path) -> None:
    """Capture; compare with ``git add -A`` in a copy, and all else with what it was."""
    wanted, before = staged_tree(folder, tmp_path / "copy"), kept(folder)
    assert tree_of(folder) == wanted
    assert kept(folder) == before


def detached(shop: Path) -> None:
    git(shop, "checkout", "-q", "--detach", "HEAD~1")


def folder_for_file(shop: Path) -> None:
    (shop / "a").unlink()
    (shop / "a").mkdir()
    (shop / "a" / "b").write_text("below\n")


def file_for_folder(shop: Path) -> None:
    shutil.rmtree(shop / "d")
    (shop / "d").write_text("file\n")


def link_for_folder(shop: Path) -> None:
    shutil.rmtree(shop / "d")
    (shop / "d").symlink_to("keep")


def modes(shop: Path) -> None:
    (shop / "a").chmod(0o755)
    git(shop, "add", "a")
    (shop / "keep" / "z").chmod(0o755)


def modes_that_do_not_count(shop: Path) -> None:
    git(shop, "config", "core.fileMode", "false")
    (shop / "a").chmod(0o755)


def odd_names(shop: Path) -> None:
    for name in (b"n\nl", b'"q"', b"\xff\xfe", b" ", b"-x", b":(top)*", b"*", b"back\\slash"):
        (shop / os.fsdecode(name)).write_text("odd\n")


def line_ends(shop: Path) -> None:
    git(shop, "config", "core.autocrlf", "input")
    (shop / ".gitattributes").write_text("*.bat eol=crlf\n*.raw -text\n")
    (shop / ".git" / "info").mkdir(exist_ok=True)
    (shop / ".git" / "info" / "attributes").write_text("*.mine -text\n")
    for name in ("a", "new.bat", "b.raw", "c.mine"):
        (shop / name).write_bytes(b"one\r\ntwo\r\n")


def idents_and_encodings(shop: Path) -> None:
    (shop / ".gitattributes").write_text("*.c ident\n*.txt working-tree-encoding=UTF-16LE eol=lf\n")
    (shop / "x.c").write_text("$Id: long gone $\n")
    (shop / "y.txt").write_bytes("zwölf\n".encode("utf-16-le"))


def ignored(shop: Path) -> None:
    (shop / ".git" / "info" / "exclude").write_text("*.one\n")
    (shop / ".gitignore").write_text("*.two\n!keep.two\n")
    for name in ("a.one", "a.two", "keep.two", "a.three"):
        (shop / name).write_text("?\n")
    git(shop, "add", "-f", "a.one")


def staged_and_unstaged(shop: Path) -> None:
    (shop / "a").write_text("staged\n")
    git(shop, "add", "a")
    (shop / "a").write_text("then\n")
    git(shop, "rm", "-q", "--cached", "d/y")
    (shop / "intended").write_text("soon\n")
    git(shop, "add", "-N", "intended")
    (shop / "staged").write_text("gone\n")
    git(shop, "add", "staged")
    (shop / "staged").unlink()


def assumed_unchanged(shop: Path) -> None:
    git(shop, "update-index", "--skip-worktree", "a")
    git(shop, "update-index", "--assume-unchanged", "keep/z")
    (shop / "a").unlink()
    (shop / "keep" / "z").write_text("mine alone\n")


def sparse(shop: Path) -> None:
    git(shop, "sparse-checkout", "set", "d")
    assert not (shop / "keep").exists()


def sparse_index(shop: Path) -> None:
    git(shop, "sparse-checkout", "set", "--cone", "--sparse-index", "d")


def split_index(shop: Path) -> None:
    git(shop, "update-index", "--split-index")
    git(shop, "add", "-A")


def without_an_index(shop: Path) -> None:
    (shop / ".git" / "index").unlink()


def untracked_cache(shop: Path) -> None:
    git(shop, "update-index", "--force-untracked-cache")
    git(shop, "status")


def special(shop: Path) -> None:
    os.mkfifo(shop / "pipe")
    (shop / "nowhere").symlink_to("not-there")


STATES = (
    *(detached, folder_for_file, file_for_folder, link_for_folder, modes, modes_that_do_not_count, odd_names),
    *(line_ends, idents_and_encodings, ignored, staged_and_unstaged, assumed_unchanged, sparse, sparse_index),
    *(split_index, without_an_index, untracked_cache),
)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_snapshot_is_what_git_would_stage(
    shop: Path, tmp_path: Path, state: Callable[[Path], None]
) -> None:
    state(shop)
    if (shop / "d").is_dir() and not (shop / "d").is_symlink():
        change(shop)
    same_as_plain_git(shop, tmp_path)


def test_a_change_that_leaves_size_and_time_as_they_were_is_seen(shop: Path) -> None:
    git(shop, "config", "core.trustCtime", "false")
    then = 1_700_000_000
    (shop / "a").write_text("4\n")
    os.utime(shop / "a", (then, then))
    git(shop, "add", "a")
    (shop / "a").write_text("5\n")
    for path in (shop / "a", shop / ".git" / "index"):  # as when all was written at once
        os.utime(path, (then, then))
    assert git(shop, "cat-file", "blob", f"{tree_of(shop)}:a") == "5"


def test_pipes_are_passed_over(shop: Path) -> None:
    special(shop)
    assert job_of(shop).captured.files == ("nowhere",)


def test_a_linked_working_tree_has_its_own_state(shop: Path, tmp_path: Path) -> None:
    git(shop, "worktree", "add", "-q", str(tmp_path / "linked"), "other")
    (tmp_path / "linked" / "new").write_text("new\n")
    before = kept(shop)
    job = job_of(tmp_path / "linked" / "d")
    assert job.snapshot is not None
    assert job.captured.files == ("new",)
    assert job.snapshot.base == git(shop, "rev-parse", "other")
    assert kept(shop) == before
    assert len(refs_of(shop)) == 1


def test_a_shallow_clone_works_and_says_how_far_it_reaches(shop: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{shop}", "thin")
    change(tmp_path / "thin")
    same_as_plain_git(tmp_path / "thin", tmp_path)
    with pytest.raises(SettingError, match="no parent to compare it with; `git fetch --unshallow`"):
        captured(tmp_path / "thin", merge="HEAD")


def test_a_repository_of_sha256_works(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop", "--object-format=sha256")
    repository.commit({"a": "1"})
    git(repository.folder, "reset", "-q", "--hard", "main")
    (repository.folder / "a").write_text("2")
    same_as_plain_git(repository.folder, tmp_path)


def test_what_the_user_ignores_everywhere_is_not_in_it(shop: Path, tmp_path: Path) -> None:
    (tmp_path / ".config" / "git").mkdir(parents=True)
    (tmp_path / ".config" / "git" / "ignore").write_text(".idea\n")
    (shop / ".idea").write_text("mine\n")
    assert captured(shop) is None
    (tmp_path / ".gitconfig").write_text("[core]\nexcludesFile = ~/mine\n")
    assert job_of(shop).captured.files == (".idea",)
    (tmp_path / "mine").write_text(".idea\n")
    assert captured(shop) is None


def test_no_program_of_the_settings_runs(shop: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for key in ("core.fsmonitor", "core.pager", "diff.external", "diff.x.textconv", "diff.x.command"):
        git(shop, "config", key, f"touch {mark}")
    git(shop, "config", "filter.y.smudge", f"touch {mark}")
    (shop / ".git" / "info").mkdir(exist_ok=True)
    (shop / ".git" / "info" / "attributes").write_text("* diff=x filter=y\n")
    for hook in ("pre-commit", "post-commit", "post-index-change", "reference-transaction"):
        (shop / ".git" / "hooks").mkdir(exist_ok=True)
        (shop / ".git" / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (shop / ".git" / "hooks" / hook).chmod(0o755)
    change(shop)
    assert job_of(shop).captured.files == ("d/x", "new")
    assert not mark.exists()


def test_a_changed_file_that_needs_a_filter_is_an_error(shop: Path, tmp_path: Path) -> None:
    git(shop, "config", "filter.lfs.clean", f"touch {tmp_path}/ran; cat")
    (shop / ".gitattributes").write_text("*.bin filter=lfs\n*.txt filter=unknown\n")
    (shop / "b.txt").write_text("no such program\n")
    assert job_of(shop).captured.files == (".gitattributes", "b.txt")
    (shop / "a.bin").write_text("large\n")
    with pytest.raises(SettingError, match=r"'a.bin' goes through the filter 'lfs'.*--merge HEAD"):
        captured(shop)
    assert not (tmp_path / "ran").exists()


def test_a_repository_within_stays_out(shop: Path) -> None:
    git(shop, "clone", "-q", ".", "within")
    git(shop, "init", "-q", "empty")
    git(shop, "worktree", "add", "-q", "trees/one", "other")
    assert captured(shop) is None


@pytest.mark.parametrize(
    ("begin", "words"),
    [
        (("merge", "-q", "other"), "a merge is under way"),
        (("cherry-pick", "other"), "a cherry-pick is under way"),
        (("rebase", "-q", "other"), "a rebase is under way"),
        (("stash", "pop"), "'a' has conflicts"),
    ],
)
def test_unfinished_work_is_refused_with_advice(shop: Path, begin: tuple[str, ...], words: str) -> None:
    if begin[0] == "stash":
        (shop / "a").write_text("stashed\n")
        git(shop, "stash", "push", "-q")
        (shop / "a").write_text("other\n")
        git(shop, "commit", "-qam", "Other")
    with pytest.raises(AssertionError):
        git(shop, *begin)
    with pytest.raises(SettingError, match=words):
        captured(shop)
    assert refs_of(shop) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MERGE_HEAD", "a merge"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase or git am"),
        ("sequencer", "a cherry-pick or revert of several commits"),
    ],
)
def test_what_git_keeps_while_it_is_under_way_is_known(shop: Path, name: str, words: str) -> None:
    (shop / ".git" / name).touch()
    with pytest.raises(SettingError, match=f"^{words} is under way in "):
        require_finished(locate(shop))


def test_without_a_commit_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    folder = Repository(tmp_path / "shop").folder
    (folder / "a").write_text("1")
    with pytest.raises(SettingError, match=r"there is no commit yet in .*; commit what was there before"):
        captured(folder)


def test_a_bare_repository_has_commits_alone(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop", "--bare")
    repository.commit({"a": "1"})
    repository.commit({"a": "2"})
    with pytest.raises(SettingError, match=r"is a bare repository.*--merge"):
        captured(repository.folder)
    assert job_of(repository.folder, merge="main").captured.files == ("a",)


def with_submodule(shop: Path) -> Path:
    git(shop, "-c", "protocol.file.allow=always", "submodule", "add", "-q", f"file://{shop}", "sub")
    git(shop, "commit", "-qm", "Add a submodule")
    return shop / "sub"


def test_a_submodule_has_to_be_as_it_was_committed(shop: Path, tmp_path: Path) -> None:
    sub = with_submodule(shop)
    git(sub, "config", "core.fsmonitor", f"touch {tmp_path}/ran")
    change(shop)
    assert job_of(shop).captured.files == ("d/x", "new")
    (sub / "new").write_text("new\n")
    with pytest.raises(SettingError, match="the submodule 'sub' has changes"):
        captured(shop)
    assert not (tmp_path / "ran").exists()
    git(sub, "config", "--unset", "core.fsmonitor")
    git(sub, "add", "-A")
    git(sub, "commit", "-qm", "Change")
    with pytest.raises(SettingError, match="the submodule 'sub' has changes, or another commit"):
        captured(shop)
    git(shop, "commit", "-qm", "Move", "sub")
    assert job_of(shop).captured.files == ("d/x", "new")


def test_a_staged_removal_of_a_submodule_is_work(shop: Path) -> None:
    with_submodule(shop)
    git(shop, "rm", "-q", "sub")
    assert job_of(shop).captured.files == (".gitmodules", "sub")


@pytest.mark.parametrize("seed", range(6))
def test_random_states_give_what_git_would_stage(tmp_path: Path, seed: int) -> None:
    repository = random_state(tmp_path / "shop", Random(seed))
    (repository.folder / "always").write_text("a change\n")
    same_as_plain_git(repository.folder, tmp_path)


def test_a_file_in_the_place_of_a_submodule_is_screened(shop: Path) -> None:
    sub = with_submodule(shop)
    git(shop, "rm", "-qf", "sub")
    assert not sub.exists()
    sub.write_text('TOKEN = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"\n')
    job = job_of(shop)
    assert (job.status, "sub:1: git_token" in job.reason) == ("refused", True)
