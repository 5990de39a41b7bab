"""Changes of a range, as git has them and nothing of the repository decides."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired

import pytest
from support.repositories import Repository, everything, git, remove_object

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.harvest.fixes import HistoryChange
from pytest_tfgrpo.harvest.history import changes as module
from pytest_tfgrpo.harvest.history import git_objects
from pytest_tfgrpo.harvest.history.changes import changes, committed_at, merged_changes, range_of
from pytest_tfgrpo.harvest.history.git_objects import GitObjects


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "project")


def found(repository: Repository | Path, span: str = "main", **options: object) -> list[HistoryChange]:
    folder = repository.folder if isinstance(repository, Repository) else repository
    with GitObjects(folder) as objects:
        return list(changes(objects, range_of(objects, span), **options))  # type: ignore[arg-type]


def messages(repository: Repository, span: str = "main", **options: object) -> list[str]:
    return [change.message for change in found(repository, span, **options)]


def test_a_change_has_its_trees_its_time_and_its_files(repository: Repository) -> None:
    first = repository.commit({"a": "1\n", "b": "1\n"}, "First")
    second = repository.commit({"a": "2\n", "b": None, "c": "3\n"}, "Second\n\nBody")
    newest, oldest = found(repository)
    assert (newest.commit, newest.base, newest.message) == (second, first, "Second\n\nBody")
    assert newest.base_tree == oldest.tree
    assert newest.committed_at == oldest.committed_at + 3600
    assert [(f.path, f.status) for f in newest.files] == [("a", "modified"), ("b", "deleted"), ("c", "added")]
    assert newest.files[2].old_id == newest.files[1].new_id == ""
    assert (oldest.base, oldest.files) == ("", ())


def test_a_rename_is_a_deletion_and_an_addition(repository: Repository) -> None:
    repository.commit({"old": "the same text\n" * 50})
    repository.commit({"old": None, "new": "the same text\n" * 50})
    assert [(f.path, f.status) for f in found(repository)[0].files] == [("new", "added"), ("old", "deleted")]


def test_a_range_leaves_its_start_out_and_a_limit_keeps_the_newest(repository: Repository) -> None:
    for n in range(6):
        repository.commit({"a": str(n)}, f"c{n}")
    assert messages(repository, "main~3..main") == ["c5", "c4", "c3"]
    assert messages(repository, "main~3..") == ["c5", "c4", "c3"]
    repository.commit(
        {"b": "1"}, "side", branch="side", parents=[git(repository.folder, "rev-parse", "main")]
    )
    assert messages(repository, "..side") == ["side"], "without a start it is where the repository stands"
    assert messages(repository, "main", limit=2) == ["c5", "c4"]
    assert messages(repository, "main..main~2") == []


def test_a_merge_is_one_change_and_each_commit_on_request(repository: Repository) -> None:
    base = repository.commit({"a": "1"}, "base")
    side1 = repository.commit({"b": "1"}, "side 1", branch="side", parents=[base])
    repository.commit({"b": "2"}, "side 2", branch="side", parents=[side1])
    main = repository.commit({"a": "2"}, "main 1")
    repository.commit({"b": "2"}, "merge", parents=[main, git(repository.folder, "rev-parse", "side")])
    merge, *rest = found(repository)
    assert [change.message for change in rest] == ["main 1", "base"]
    assert [(f.path, f.status) for f in merge.files] == [("b", "added")]
    assert sorted(messages(repository, each_commit=True)) == ["base", "main 1", "side 1", "side 2"]


def test_the_commits_of_a_branch_stay_together_though_others_were_made_between_them(
    repository: Repository,
) -> None:
    base = repository.commit({"a": "1"}, "base")
    side = main = base
    for n in (1, 2):
        side = repository.commit({"b": str(n)}, f"side {n}", branch="side", parents=[side])
        main = repository.commit({"a": f"m{n}"}, f"main {n}")
    repository.commit({"b": "2"}, "merge", parents=[main, side])
    *first, last = messages(repository, each_commit=True)
    assert last == "base"
    assert {tuple(first[:2]), tuple(first[2:])} == {("main 2", "main 1"), ("side 2", "side 1")}


def merge_of(repository: Repository, *files: str) -> tuple[HistoryChange, list[str]]:
    """Merge a branch with a commit for each of some files; return the merge and the commits."""
    first = repository.commit({"a": "1"}, "base")
    brought = [first]
    for n, name in enumerate(files):
        brought.append(repository.commit({name: "1"}, f"c{n}", branch="side", parents=[brought[-1]]))
    repository.commit(dict.fromkeys(files, "1"), "merge", parents=[first, brought[-1]])
    return found(repository)[0], brought[1:]


def test_the_commits_of_a_merge_are_those_of_the_paths_and_at_most_the_newest(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge, _ = merge_of(repository, "x/1", "y/1", "x/2")
    with GitObjects(repository.folder) as objects:
        assert [c.message for c in merged_changes(objects, merge)] == ["c2", "c1", "c0"]
        assert [c.message for c in merged_changes(objects, merge, ["x"])] == ["c2", "c0"]
        monkeypatch.setattr(module, "MERGED", 2)
        assert [c.message for c in merged_changes(objects, merge)] == ["c2", "c1"]


def test_a_merge_whose_commits_are_missing_brings_none(repository: Repository) -> None:
    merge, commits = merge_of(repository, "x", "y")
    remove_object(repository, commits[0])
    with GitObjects(repository.folder) as objects:
        assert merged_changes(objects, merge) == ()


def test_a_change_was_made_when_it_was_committed_not_when_it_was_written(repository: Repository) -> None:
    written = b"commit refs/heads/main\nauthor A <a@b> 1000 +0100\ncommitter B <b@c> 2000 -0800\ndata 1\nc\n"
    git(repository.folder, "fast-import", "--quiet", given=written)
    (change,) = found(repository)
    with GitObjects(repository.folder) as objects:
        assert change.committed_at == committed_at(objects, change.commit) == 2000


def test_the_same_change_made_twice_and_one_of_nothing_have_their_own_files(repository: Repository) -> None:
    for text in "12121":
        repository.commit({"a": text})
    repository.commit({})
    changed = [([f.path for f in change.files], change.missing) for change in found(repository)]
    assert changed == [([], ""), *[(["a"], "")] * 4, ([], "")]


def test_paths_are_plain_folders_and_files_and_a_change_keeps_all_its_files(repository: Repository) -> None:
    repository.commit({"a/x": "1", "b/x": "1", "a*": "1"}, "all")
    repository.commit({"a/x": "2", "b/x": "2"}, "a and b")
    repository.commit({"b/x": "3"}, "b")
    (change, _) = found(repository, paths=["a"])
    assert [f.path for f in change.files] == ["a/x", "b/x"]
    assert messages(repository, paths=["a*"]) == ["all"]


def test_each_commit_of_a_path_is_one_also_where_both_sides_of_a_merge_say_the_same(
    repository: Repository,
) -> None:
    base = repository.commit({"a": "1"}, "base")
    side = repository.commit({"a": "2"}, "side", branch="side", parents=[base])
    main = repository.commit({"a": "2"}, "main")
    repository.commit({"b": "1"}, "merge", parents=[main, side])
    assert sorted(messages(repository, each_commit=True, paths=["a"])) == ["base", "main", "side"]


def test_a_date_beyond_the_year_9999_is_its_end(repository: Repository) -> None:
    late = b"commit refs/heads/main\ncommitter A <a@b> 999999999999 +0000\ndata 1\nc\n"
    git(repository.folder, "fast-import", "--quiet", given=late)
    (change,) = found(repository)
    assert datetime.fromtimestamp(change.committed_at, UTC) == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def test_more_changes_than_are_asked_for_at_once_keep_their_order(repository: Repository) -> None:
    stream = "".join(
        f"commit refs/heads/main\ncommitter A <a@b> {n} +0000\ndata {len(str(n))}\n{n}\n"
        f"M 100644 inline f{n % 7}\ndata {len(str(n))}\n{n}\n"
        for n in range(1, 601)
    )
    git(repository.folder, "fast-import", "--quiet", given=stream.encode())
    everyone = found(repository)
    assert [int(change.message) for change in everyone] == list(range(600, 0, -1))
    assert all([f.path for f in c.files] == [f"f{int(c.message) % 7}"] for c in everyone[:-1])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a\n.\nb", id="newline"),
        pytest.param('"quoted"\\', id="quotes"),
        pytest.param(b"\xff\xfe", id="bytes"),
        pytest.param(":100644 100644 " + "0" * 40 + " M", id="like-a-record"),
        pytest.param(" -x\t", id="blanks"),
    ],
)
def test_odd_names_of_files_are_read_as_they_are(repository: Repository, name: str | bytes) -> None:
    repository.commit({"a": "1"})
    repository.commit({name: "1", "z": "1"})
    repository.commit({name: "2"})
    newest, second, _ = found(repository)
    expected = name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")
    assert [f.path for f in newest.files] == [expected]
    assert sorted(f.path for f in second.files) == sorted([expected, "z"])


def test_messages_in_any_encoding_are_texts(repository: Repository) -> None:
    repository.commit({"a": "1"}, "Größe".encode("latin-1"), encoding="ISO-8859-1")
    repository.commit({"a": "2"}, b"bad \xff bytes")
    repository.commit({"a": "3"}, "Größe", encoding="zip")
    assert messages(repository) == ["Größe", "bad \ufffd bytes", "Größe"]


@pytest.mark.parametrize(
    "span", ["nowhere..main", "main..nowhere", "", "--all", "main...main", "x\0y", "main:a"]
)
def test_a_bad_range_is_a_usage_error(repository: Repository, span: str) -> None:
    repository.commit({"a": "1"})
    with pytest.raises(SettingError, match=r"there is no commit|three dots"):
        found(repository, span)


def test_a_folder_without_a_repository_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="is not in a git repository"):
        found(tmp_path)
    with pytest.raises(SettingError, match="there is no folder"):
        found(tmp_path / "absent")


def test_a_repository_is_found_from_below_bare_and_through_a_linked_tree(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit({"a/b": "1"}, "only")
    git(repository.folder, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"), "main")
    git(tmp_path, "clone", "-q", "--bare", str(repository.folder), "bare.git")
    (repository.folder / "below").mkdir()
    places = (repository.folder / "below", tmp_path / "linked", tmp_path / "bare.git")
    assert [[c.message for c in found(place, "HEAD")] for place in places] == [["only"]] * 3


def test_a_repository_of_sha256_is_read(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "long", "--object-format=sha256")
    repository.commit({"a": "1"}, "one")
    repository.commit({"a": "2"}, "two")
    newest, _ = found(repository)
    assert (len(newest.commit), [f.path for f in newest.files]) == (64, ["a"])


def test_a_repository_is_found_by_its_own_folder_and_through_a_file_that_leads_to_it(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit({"a": "1"}, "only")
    (tmp_path / "linked" / "below").mkdir(parents=True)
    (tmp_path / "linked" / ".git").write_text("gitdir: ../project/.git\n")
    assert [change.message for change in found(tmp_path / "linked" / "below", "HEAD")] == ["only"]
    with GitObjects(repository.folder / ".git") as objects:
        assert objects.where == str(repository.folder)


# Clones that lack objects


def test_where_a_shallow_clone_ends_the_change_lacks_its_parent(
    repository: Repository, tmp_path: Path
) -> None:
    for n in range(4):
        repository.commit({"a": str(n)}, f"c{n}")
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{repository.folder}", "shallow")
    newest, boundary = found(tmp_path / "shallow", "HEAD")
    assert not newest.missing
    assert boundary.missing.startswith("its parent ")
    with pytest.raises(SettingError, match="git fetch --unshallow"):
        found(tmp_path / "shallow", "HEAD~3..HEAD")


def test_a_missing_folder_concerns_only_the_changes_that_need_it(repository: Repository) -> None:
    for n in range(6):
        repository.commit({"d/e": str(n)}, f"c{n}")
    remove_object(repository, "main~2:d")
    assert [change.message for change in found(repository) if change.missing] == ["c4", "c3"]
    assert [bool(change.files) for change in found(repository)] == [True, False, False, True, True, False]
    remove_object(repository, "main~4^{tree}")
    assert [change.message for change in found(repository) if change.missing] == ["c4", "c3", "c2", "c1"]


def test_a_missing_commit_ends_the_history_behind_what_can_be_read(repository: Repository) -> None:
    for n in range(4):
        repository.commit({"a": str(n)}, f"c{n}")
    remove_object(repository, "main~2")
    with GitObjects(repository.folder) as objects:
        each = changes(objects, range_of(objects, "main"))
        assert next(each).message == "c3"
        with pytest.raises(SnapshotError, match="fetch what is missing"):
            next(each)


# Hostile repositories


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[str]:
    """A program that leaves a trace where it is run."""
    trace = tmp_path / "trace"
    program = tmp_path / "trap"
    program.write_text(f"#!/bin/sh\ntouch {trace}\ncat\n")
    program.chmod(0o755)
    yield str(program)
    assert not trace.exists(), "a program that the repository names was run"


def test_nothing_that_a_repository_names_is_run_and_it_stays_as_it_is(
    repository: Repository, trap: str
) -> None:
    for n in range(3):
        repository.commit({"src/a.py": f"{n}\n", "tests/test_a.py": f"{n}\n"}, f"c{n}")
    inside = repository.folder / ".git"
    config = (inside / "config").read_text() + HOSTILE.format(trap=trap, more=inside / "more")
    (inside / "config").write_text(config)
    (inside / "more").write_text(f"[core]\n\tfsmonitor = {trap}\n")
    (inside / "info" / "attributes").write_text("* diff=trap filter=trap\n")
    (repository.folder / ".gitattributes").write_text("* diff=trap filter=trap\n")
    for hook in ("post-checkout", "fsmonitor-watchman", "reference-transaction", "post-index-change"):
        (inside / "hooks" / hook).write_bytes(Path(trap).read_bytes())
        (inside / "hooks" / hook).chmod(0o755)
    before = everything(repository.folder)
    assert [change.message for change in found(repository)] == ["c2", "c1", "c0"]
    assert everything(repository.folder) == before


HOSTILE = """
[core]
	fsmonitor = {trap}
	sshCommand = {trap}
	hooksPath = .git/hooks
	pager = {trap}
	gitProxy = {trap}
	worktree = /nonexistent
	repositoryFormatVersion = 1
[extensions]
	partialClone = origin
[remote "origin"]
	url = ext::{trap}
	promisor = true
	uploadpack = {trap}
[diff]
	external = {trap}
[diff "trap"]
	command = {trap}
	textconv = {trap}
[filter "trap"]
	clean = {trap}
	smudge = {trap}
	process = {trap}
[include]
	path = {more}
"""


def test_replaced_objects_and_grafts_deceive_nobody(repository: Repository) -> None:
    repository.commit({"a": "1"}, "one")
    second = repository.commit({"a": "2"}, "two")
    false = repository.commit({"evil": "1"}, "false", branch="evil", parents=[])
    repository.commit({"a": "3"}, "three")
    git(repository.folder, "replace", second, false)
    (repository.folder / ".git" / "info" / "grafts").write_text(f"{second} {false}\n")
    assert messages(repository) == ["three", "two", "one"]


def test_objects_that_a_clone_borrows_are_read(repository: Repository, tmp_path: Path) -> None:
    repository.commit({"a": "1"}, "one")
    git(tmp_path, "clone", "-q", "--shared", str(repository.folder), "borrower")
    assert [change.message for change in found(tmp_path / "borrower", "HEAD")] == ["one"]


def test_the_environment_of_the_user_decides_nothing(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    repository.commit({"a": "1"}, "one")
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", trap)
    monkeypatch.setenv("GIT_TRACE", "1")
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", "/nonexistent")
    assert messages(repository) == ["one"]


@pytest.mark.parametrize(
    ("end", "match"),
    [
        (CompletedProcess((), -9, b"", b""), "git could not say what 'main' is .* status -9"),
        (CompletedProcess((), 128, b"", b"fatal: no memory\n"), "status 128: 'fatal: no memory'"),
        (CompletedProcess((), 1, b"", b"error: a tree"), "there is no commit 'main'"),
        (TimeoutExpired((), 60), "git did not say within 60 s what 'main' is"),
    ],
)
def test_a_git_that_fails_is_no_commit_that_is_missing(
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    end: CompletedProcess[bytes] | TimeoutExpired,
    match: str,
) -> None:
    def ended(*_: object, **__: object) -> CompletedProcess[bytes]:
        if isinstance(end, TimeoutExpired):
            raise end
        return end

    with GitObjects(repository.folder) as objects:
        monkeypatch.setattr(git_objects.subprocess, "run", ended)
        with pytest.raises(SettingError, match=match):
            objects.resolve("main")
