"""Parts of a capture, one by one: transcripts, git's settings, folders of jobs, what is refused."""

import fcntl
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.repositories import Repository, git

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.harvest.fixes import ChangedFile
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.history.git_shadow import RepositoryPlace, locate
from pytest_tfgrpo.patterns.capture import git_settings, git_writer, transcripts
from pytest_tfgrpo.patterns.capture.git_settings import read_git_settings
from pytest_tfgrpo.patterns.capture.git_writer import open_writer
from pytest_tfgrpo.patterns.capture.job_folder import abandoned, finish, make_learning_folder, staged_folder
from pytest_tfgrpo.patterns.capture.screen import RefusedChange, screen
from pytest_tfgrpo.patterns.capture.snapshot import changed_files
from pytest_tfgrpo.patterns.capture.transcripts import SeenCommand, Transcript
from pytest_tfgrpo.patterns.capture.working_tree import _below


def seen(*rows: Any) -> list[SeenCommand]:
    transcript = Transcript()
    for row in rows:
        assert transcript.take(row)
    return list(transcript.commands())


def item(command: Any, **more: Any) -> dict[str, Any]:
    known = {"type": "command_execution", "id": "1", "command": command}
    return {"type": "item.updated", "item": {**known, **more}}


@pytest.mark.parametrize(
    ("command", "run"),
    [
        ("bash -lc 'tox -q'", "tox -q"),
        ("/usr/bin/zsh -c 'tox -q'", "tox -q"),
        (["sh", "-c", "tox -q"], "tox -q"),
        (["bash", "-x", "tox"], "bash -x tox"),
        (["fish", "-c", "tox"], "fish -c tox"),
        (["bash", "-c", "tox", "a b"], "bash -c tox 'a b'"),
        (["a b", "c"], "'a b' c"),
        ("bash -c 'tox", "bash -c 'tox"),
        ("tox -q", "tox -q"),
        ([1, 2], None),
        (3, None),
    ],
)
def test_a_command_is_shown_without_the_shell_that_was_started_for_it(command: Any, run: str | None) -> None:
    assert [one.command for one in seen(item(command))] == [run] * (run is not None)


@pytest.mark.parametrize(
    ("code", "known"),
    [(0, 0), (999, 999), (-999, -999), (1000, None), (-1000, None), (1.0, None), ("1", None)],
)
def test_an_exit_code_is_a_small_whole_number(code: Any, known: int | None) -> None:
    assert [one.exit_code for one in seen(item("tox", exit_code=code))] == [known]


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("Error: Exit code 5", 5),
        ("Exit code: 12\nno", 12),
        ("out\nProcess exited with code 3", 3),
        ("it said: Exit code 5", None),
        ("Exit code 1234", None),
        ("x" * 390 + "\nExit code 7", None),
        ("x" * 380 + "\nExit code 7", 7),
    ],
)
def test_a_status_is_read_in_the_first_lines_of_an_output(output: str, code: int | None) -> None:
    use = {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "tox"}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": output, "is_error": True}
    rows = [
        {"type": kind, "message": {"content": [one, 3]}}
        for kind, one in (("assistant", use), ("user", result))
    ]
    assert [(one.exit_code, one.output) for one in seen(*rows)] == [(code, output)]


@pytest.mark.parametrize(
    "kind",
    [
        *("system", "result", "stream_event", "rate_limit_event", "tool_progress", "auth_status", "summary"),
        *("file-history-snapshot", "queue-operation", "progress", "attachment", "last-prompt"),
        *("custom-title", "ai-title", "thread.started", "turn.started", "turn.completed", "turn.failed"),
        *("error", "compacted", "session_meta", "turn_context"),
    ],
)
def test_rows_that_agents_write_without_a_command_are_known(kind: str) -> None:
    assert seen({"type": kind}) == []


def test_of_the_tools_of_claude_code_the_shell_alone_runs_commands() -> None:
    tool = {"type": "tool_use", "id": "1", "name": "Task", "input": {"command": "tox"}}
    assert seen({"type": "assistant", "message": {"content": [tool]}}) == []


def codex(kind: str, at: str, **payload: Any) -> dict[str, Any]:
    return {"type": "event_msg", "timestamp": at, "payload": {"type": kind, "call_id": "c", **payload}}


def test_what_was_said_first_of_the_start_of_a_command_counts_and_last_of_its_end() -> None:
    (one,) = seen(
        {"type": "turn_context", "payload": {"cwd": "/w"}},
        codex("exec_command_begin", "1", command=["tox"], cwd="/a"),
        codex("exec_command_begin", "2", command=["other"]),
        codex("exec_command_end", "3", command=["third"], exit_code=4, stdout="out"),
        codex("function_call_output", "5", output='{"output": "later", "metadata": {"exit_code": 6}}'),
        codex("function_call_output", "7", output="Exit code: 8") | {"payload": {"type": "agent_message"}},
    )
    assert (one.command, one.started_at, one.cwd) == ("tox", "1", "/a")
    assert (one.ended_at, one.exit_code, one.output) == ("5", 4, "out")
    (plain,) = seen(
        {"type": "session_meta", "payload": {"cwd": "/w"}},
        codex("function_call", "1", name="container.exec", arguments='{"cmd": "tox"}'),
        codex("function_call", "1", name="browser", arguments='{"cmd": "no"}'),
        codex("function_call_output", "2", output='{"output": "said", "metadata": {"exit_code": 6}}'),
    )
    assert (plain.command, plain.cwd, plain.exit_code, plain.output) == ("tox", "/w", 6, "said")
    assert seen(codex("function_call_output", "2", output="of nothing"), codex("function_call", "1")) == []
    assert seen(codex("function_call", "1", name="shell", arguments="no json")) == []


def test_of_too_many_commands_the_newest_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "MOST", 2)
    assert [one.command for one in seen(*({"command": name} for name in "abc"))] == ["b", "c"]


@pytest.fixture
def place(tmp_path: Path) -> RepositoryPlace:
    repository = Repository(tmp_path / "shop")
    repository.commit({"a": "1"})
    return locate(repository.folder)


def settings_of(place: RepositoryPlace, **environ: str) -> git_settings.GitSettings:
    return read_git_settings(place, {"GIT_CONFIG_NOSYSTEM": "1", **environ})


def test_the_settings_of_git_are_those_that_compare_files(place: RepositoryPlace, tmp_path: Path) -> None:
    home = str(tmp_path)
    rows = "[core]\n\tautocrlf = input\n\tpager = evil\n\tsymlinks\n\texcludesFile = ~/mine\n"
    rows += '[filter "a.b"]\n\tclean = x\n[filter "p"]\n\tprocess = x\n[filter "s"]\n\tsmudge = x\n'
    (tmp_path / ".gitconfig").write_text(f'{rows}[filter "none"]\n\tclean =\n')
    found = settings_of(place, HOME=home)
    assert found.filters == {"a.b", "p"}
    kept = dict(found.kept)
    assert (kept.pop("core.autocrlf"), kept.pop("core.symlinks")) == ("input", "true")
    assert (kept.pop("core.excludesfile"), kept.pop("core.attributesfile")) == (
        f"{home}/mine", f"{home}/.config/git/attributes",
    )  # fmt: skip
    assert set(kept) <= git_settings.KEPT
    assert (
        settings_of(place, HOME=home, XDG_CONFIG_HOME="/x").kept["core.attributesfile"] == "/x/git/attributes"
    )
    bare = settings_of(place).kept
    assert not {"core.excludesfile", "core.attributesfile"} & bare.keys()
    one = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.excludesfile", "GIT_CONFIG_VALUE_0": "~/x"}
    assert settings_of(place, **one).kept["core.excludesfile"] == "~/x"


@pytest.mark.parametrize(
    "key",
    [
        *("core.autocrlf", "core.eol", "core.checkroundtripencoding", "core.filemode", "core.symlinks"),
        *("core.ignorecase", "core.precomposeunicode", "core.checkstat", "core.trustctime"),
        *("core.sharedrepository", "core.sparsecheckout", "core.sparsecheckoutcone"),
    ],
)
def test_a_snapshot_follows_each_setting_by_which_git_compares_files(
    place: RepositoryPlace, key: str
) -> None:
    one = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": key, "GIT_CONFIG_VALUE_0": "said"}
    assert settings_of(place, **one).kept[key] == "said"


def test_settings_that_cannot_be_read_say_what_to_do(
    place: RepositoryPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.common / "config").write_text("[broken\n")
    with pytest.raises(SettingError, match=r"git cannot read the settings of '.*shop': .*; correct them"):
        settings_of(place)
    monkeypatch.setattr(git_settings.shutil, "which", lambda _: None)
    with pytest.raises(SettingError, match="git is not installed, or not on PATH"):
        settings_of(place)


def test_the_path_of_alternates_is_quoted_where_git_would_misread_it() -> None:
    for path, line in (
        (b"/a b/\xff", b"/a b/\xff"),
        (b'/a"b', b'/a"b'),
        (b"#a", b'"#a"'),
        (b'"a', b'"\\042a"'),
        (b"/a\nb\\", b'"/a\\012b\\134"'),
    ):
        assert git_writer._quoted(path) == line


def test_many_objects_go_over_as_a_pack(place: RepositoryPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_writer, "LOOSE", 0)
    head = git(place.root, "rev-parse", "main")
    with open_writer(place, {}) as writer:
        commit = writer.commit(git(place.root, "rev-parse", "main^{tree}"), head, "Said\n", 1_700_000_000)
        with pytest.raises(
            SnapshotError, match=r"git rev-parse failed in '.*shop': .*; correct this, try again"
        ):
            writer.run("rev-parse", "--verify", "none")
        writer.publish(commit, "refs/learning/a")
        folder = writer.folder
    assert not folder.exists()
    form = "--format=%an %ae %at %cn %ct %P %B"
    assert git(place.root, "log", "-1", form, "refs/learning/a").split("\n")[0] == (
        f"pytest-tfgrpo learning@pytest-tfgrpo.invalid 1700000000 pytest-tfgrpo 1700000000 {head} Said"
    )
    assert list((place.common / "objects" / "pack").glob("*.pack"))
    with open_writer(place, {}) as writer:
        with pytest.raises(SnapshotError, match="update-ref failed"):
            writer.publish(head, "refs/learning/a")
        writer.point("refs/learning/a", head)
        assert git(place.root, "rev-parse", "refs/learning/a") == head
        writer.drop("refs/learning/a")
        writer.drop("refs/learning/a")
    assert git(place.root, "for-each-ref", "refs/learning/") == ""


def test_git_that_takes_too_long_is_an_error_of_the_snapshot(
    place: RepositoryPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: Any, **__: Any) -> None:
        raise subprocess.TimeoutExpired("git", 600)

    with open_writer(place, {}) as writer:
        monkeypatch.setattr(git_writer.subprocess, "run", slow)
        with pytest.raises(SnapshotError, match=r"git write-tree took over 600 s in '.*shop'; try again"):
            writer.run("write-tree")


def test_a_folder_that_is_gone_from_a_repository_is_named(place: RepositoryPlace) -> None:
    tree = git(place.root, "rev-parse", "main^{tree}")
    said = pytest.raises(SnapshotError, match=r"a folder of tree .* is missing or damaged; fetch it")
    with GitObjects(place.root) as objects, said:
        changed_files(objects, "0" * 39 + "1", tree)


def changed(path: str, old: str, new: str, mode: str = "100644") -> ChangedFile:
    return ChangedFile(path=path, status="modified", old_id=old, new_id=new, old_mode=mode, new_mode=mode)


class Objects(dict[str, bytes | None]):
    """Objects by id; each is as large as its id says."""

    def sizes(self, ids: list[str]) -> list[int | None]:
        return [int(id_) if id_.isdigit() else None for id_ in ids]

    def contents(self, ids: list[str], most: int) -> Any:
        assert most == 50_000_000
        return iter([self[id_] for id_ in ids])


def test_only_what_a_change_brings_is_screened() -> None:
    token = b"ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    objects: Any = Objects(
        {"clean": b"x = 1\n", "key": b'A = "' + token + b'"\n', "50000000": b"", "gone": None}
    )
    screen(objects, [changed("a", "key", "key"), changed("b", "key", ""), changed("c", "", "50000000")])
    screen(objects, [changed("sub", "x", "y", mode="160000"), changed("d", "gone", "clean")])
    with pytest.raises(RefusedChange, match=r"secrets: 'b/c:1: .*; take them out, and renew them|b/c:1"):
        screen(objects, [changed("a", "key", "clean"), changed("b/c", "clean", "key")])
    with pytest.raises(RefusedChange, match=r"a:1: .*, .*c:1: "):
        screen(objects, [changed("a", "clean", "key"), changed("b", "", "clean"), changed("c", "", "key")])
    with pytest.raises(RefusedChange, match="a:1: "):
        screen(objects, [changed("a", "clean", "key"), changed("b", "key", "clean")])
    with pytest.raises(RefusedChange, match=r"^'a' has 50000001 bytes, more than 50000000; ignore or remove"):
        screen(objects, [changed("a", "", "50000001")])
    with pytest.raises(SnapshotError, match="the object gone of 'a' is missing or damaged; fetch it"):
        screen(objects, [changed("a", "clean", "gone")])


def test_the_folder_of_jobs_is_ignored_and_keeps_what_somebody_wrote(tmp_path: Path) -> None:
    make_learning_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / ".gitignore").read_text() == "*\n"
    (tmp_path / "a" / "b" / ".gitignore").write_text("mine")
    make_learning_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / ".gitignore").read_text() == "mine"


def test_a_staged_folder_is_moved_whole_or_goes(tmp_path: Path) -> None:
    with staged_folder(tmp_path, "one") as folder:
        (folder / "x").write_text("")
        assert list(abandoned(tmp_path)) == []  # it is locked
        finish(folder, tmp_path, "one")
    with staged_folder(tmp_path, "two") as folder:
        (folder / "x").write_text("")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one"]


def test_what_killed_captures_left_is_named_and_removed_and_the_rest_stays(tmp_path: Path) -> None:
    for name in (".capture-b", ".capture-a", ".capture-held", "job"):
        (tmp_path / name).mkdir()
    (tmp_path / ".capture-file").write_text("")
    (tmp_path / ".capture-link").symlink_to(tmp_path / "job")
    handle = os.open(tmp_path / ".capture-held", os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert list(abandoned(tmp_path)) == ["a", "b"]
    finally:
        os.close(handle)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".capture-file", ".capture-held", ".capture-link", "job"]


def test_files_of_a_folder_are_known_by_how_their_paths_begin(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    (root / "out").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root / "out")
    for folder, start in (
        (None, b""), (root, b""), (tmp_path, b""), (tmp_path / "shop-of-others", b""),
        (root / "out", b"out/"), (tmp_path / "link", b"out/"), (root / "a" / "b\udcff", b"a/b\xff/"),
    ):  # fmt: skip
        assert _below(root, folder) == start
