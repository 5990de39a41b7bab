"""Histories and transcripts: the commands in them, whatever their form, and what hostile ones do."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.patterns.capture import history as module
from pytest_tfgrpo.patterns.capture.history import WorkHistory, history_lines, history_of, read_history
from pytest_tfgrpo.patterns.jobs.manifest import RanCommand

ROOT = Path("/home/ada/shop")
AT, THEN = "2026-01-02T03:04:05.006Z", "2026-01-02T03:04:07.000Z"


def read(*rows: Any) -> WorkHistory:
    return history_of([row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows], ROOT)


def command(*rows: Any) -> RanCommand:
    """Return the one command of rows that are all known."""
    history = read(*rows)
    assert history.left_out == 0
    (one,) = history.commands
    return one


def test_our_own_rows() -> None:
    row = {
        "command": "pytest -q",
        "exit_code": 0,
        "started_at": AT,
        "ended_at": THEN,
        "cwd": "b",
        "output_tail": "ok",
    }
    one = command(row)
    assert one == RanCommand(
        command="pytest -q", exit_code=0, started_at=AT, ended_at=THEN, cwd="b", output_tail="ok"
    )
    assert json.loads(history_lines(read(row))) == row


def test_wrong_values_of_a_row_are_not_known() -> None:
    one = command(
        {"command": "tox", "exit_code": True, "started_at": "now", "ended_at": 3, "output_tail": ["x"]}
    )
    assert one == RanCommand(command="tox")


def claude(id_: str, given: Any, output: Any, *, error: bool = False, **more: Any) -> list[Any]:
    """Return the rows of a command in a log of Claude Code."""
    use = {"type": "tool_use", "id": id_, "name": "Bash", "input": given}
    result = {"type": "tool_result", "tool_use_id": id_, "content": output, "is_error": error}
    return [
        {
            "type": "assistant",
            "message": {"content": [{"type": "text", "text": "hm"}, use]},
            "timestamp": AT,
            **more,
        },
        {"type": "user", "message": {"content": [result]}, "timestamp": THEN, **more},
    ]


def test_claude_code() -> None:
    log = [
        {"type": "summary", "summary": "Fix it"},
        {
            "type": "user",
            "message": {"role": "user", "content": "Fix it"},
            "cwd": "/home/ada/shop/b",
            "timestamp": AT,
        },
        *claude(
            "1", {"command": "pytest -q"}, [{"type": "text", "text": "1 passed"}], cwd="/home/ada/shop/b"
        ),
        *claude(
            "2",
            {"command": "cd /home/ada/shop && tox"},
            "Exit code 3\nbad",
            error=True,
            cwd="/home/ada/shop/b",
        ),
        *claude(
            "3", {"command": "sleep 9"}, "The user doesn't want to proceed", error=True, cwd="/home/ada/shop"
        ),
        *claude("4", {"command": "make serve", "run_in_background": True}, "Command running in background"),
    ]
    assert read(*log) == WorkHistory(
        commands=(
            RanCommand(
                command="pytest -q",
                exit_code=0,
                started_at=AT,
                ended_at=THEN,
                cwd="b",
                output_tail="1 passed",
            ),
            RanCommand(
                command="tox", exit_code=3, started_at=AT, ended_at=THEN, output_tail="Exit code 3\nbad"
            ),
            RanCommand(
                command="sleep 9",
                started_at=AT,
                ended_at=THEN,
                output_tail="The user doesn't want to proceed",
            ),
            RanCommand(
                command="make serve",
                started_at=AT,
                ended_at=THEN,
                output_tail="Command running in background",
            ),
        )
    )


def test_the_stream_of_claude_code_has_its_folder_at_the_start() -> None:
    start = {"type": "system", "subtype": "init", "cwd": "/home/ada/shop/b"}
    end = {"type": "result", "subtype": "success", "result": "done"}
    assert command(start, *claude("1", {"command": "tox"}, "ok"), end).cwd == "b"


def test_codex_as_a_stream() -> None:
    item = {
        "id": "item_1",
        "type": "command_execution",
        "command": "bash -lc 'pytest -q'",
        "status": "in_progress",
    }
    done = {**item, "aggregated_output": "1 passed", "exit_code": 0, "status": "completed"}
    one = command(
        {"type": "thread.started", "thread_id": "x"},
        {"type": "item.started", "item": item},
        {"type": "item.completed", "item": done},
        {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "done"}},
        {"type": "turn.completed", "usage": {}},
    )
    assert one == RanCommand(command="pytest -q", exit_code=0, output_tail="1 passed")


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": kind, "payload": payload}


def call(name: str, arguments: Any) -> dict[str, Any]:
    return codex(
        "response_item", type="function_call", name=name, arguments=json.dumps(arguments), call_id="c"
    )


def output(text: str) -> dict[str, Any]:
    return {
        **codex("response_item", type="function_call_output", call_id="c", output=text),
        "timestamp": THEN,
    }


@pytest.mark.parametrize(
    ("given", "result"),
    [
        (
            call("shell", {"command": ["bash", "-lc", "tox -q"], "workdir": "/home/ada/shop/b"}),
            json.dumps({"output": "no", "metadata": {"exit_code": 2}}),
        ),
        (
            call("local_shell", {"command": ["tox", "-q"], "cwd": "/home/ada/shop/b"}),
            "Exit code: 2\nno",
        ),
        (
            call("shell_command", {"command": "tox -q", "workdir": "/home/ada/shop/b"}),
            "Exit code: 2\nOutput:\nno",
        ),
        (
            call("exec_command", {"cmd": "tox -q", "workdir": "/home/ada/shop/b"}),
            "Process exited with code 2\nno",
        ),
        (
            codex(
                "response_item",
                type="local_shell_call",
                call_id="c",
                action={"type": "exec", "command": ["tox", "-q"], "working_directory": "/home/ada/shop/b"},
            ),
            json.dumps({"output": "no", "metadata": {"exit_code": 2}}),
        ),
    ],
)
def test_codex_as_a_log(given: dict[str, Any], result: str) -> None:
    one = command(codex("session_meta", id="s", cwd="/home/ada/shop"), given, output(result))
    assert (one.command, one.exit_code, one.cwd, one.started_at, one.ended_at) == ("tox -q", 2, "b", AT, THEN)
    assert one.output_tail.endswith("no")


def test_codex_tells_of_a_command_twice_and_it_is_one() -> None:
    event = codex(
        "event_msg",
        type="exec_command_end",
        call_id="c",
        command=["bash", "-lc", "tox"],
        cwd="/home/ada/shop",
        exit_code=0,
        aggregated_output="all of it",
    )
    one = command(call("shell", {"command": ["bash", "-lc", "tox"]}), event, output("cut"))
    assert (one.command, one.exit_code, one.output_tail) == ("tox", 0, "all of it")


def test_secrets_are_taken_out_and_controls_shown() -> None:
    token = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    row = {"command": f"curl -H 'Authorization: {token}' x", "output_tail": f"\x1b[31m{token}\x07 \u202e\n"}
    one = command(row)
    assert token not in json.dumps([one.command, one.output_tail])
    assert "[redacted:" in one.command
    assert "\x07" not in one.output_tail
    assert "\u202e" not in one.output_tail


@pytest.mark.parametrize(
    "row",
    [
        b"not json",
        b"[" * 100_000,
        b'{"type": "assistant", "message": ' + b'{"a":' * 50_000,
        b"3",
        b'{"command": 3}',
        b'{"type": "of tomorrow"}',
        b'{"type": ["x"]}',
        b'{"type": "assistant"}',
        b'{"type": "item.completed", "item": []}',
        b'{"type": "response_item", "payload": 1}',
        b'{"command": "x", "exit_code": NaN}',
        {"command": "rm -rf\x00 /"},
        {"command": "a\x1b[2Kb"},
        {"command": ""},
        {"command": "x" * 8001},
        {"command": "tox", "cwd": "/elsewhere"},
        {"command": "tox", "cwd": "../shop-of-others"},
        {"command": "cd .. && tox"},
        {"command": "tox", "cwd": "b\x00"},
        {"command": "cd /home/ada && tox", "cwd": "b"},
    ],
)
def test_rows_that_are_no_command_here_are_counted(row: Any) -> None:
    assert read(row, b"", {"command": "tox"}) == WorkHistory(
        commands=(RanCommand(command="tox"),), left_out=1
    )


@pytest.mark.parametrize(
    ("command", "cwd", "run", "folder"),
    [
        ("tox", "b/../c/./d", "tox", "c/d"),
        ("tox", "b/..", "tox", ""),
        ("cd c && tox", "b", "tox", "b/c"),
        ("cd 'c d' &&  tox -q ", "", "tox -q", "c d"),
        ('cd "c"&&tox', "b", "tox", "b/c"),
        ("cd /home/ada/shop/b/../c && tox", "elsewhere", "tox", "c"),
        ("cd c && tox && cd d && make", "", "tox && cd d && make", "c"),
        ("cd $X && tox", "b", "cd $X && tox", "b"),
        ("cd c; tox", "b", "cd c; tox", "b"),
        ("cd c && ", "b", "cd c &&", "b"),
    ],
)
def test_a_folder_that_a_command_enters_first_is_its_folder(
    command: str, cwd: str, run: str, folder: str
) -> None:
    (one,) = read({"command": command, "cwd": cwd}).commands
    assert (one.command, one.cwd) == (run, folder)


@pytest.mark.parametrize("row", [b'{"type": "user", "message": {"content": [1, {"type": "tool_result"}]}}'])
def test_blocks_that_are_none_are_passed_over(row: bytes) -> None:
    assert read(row) == WorkHistory()


def test_only_the_newest_commands_and_the_ends_of_outputs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMANDS_MAX", 2)
    history = read(*({"command": f"c{n}", "output_tail": "x" * 5000 + "end"} for n in range(5)))
    assert [one.command for one in history.commands] == ["c3", "c4"]
    assert history.left_out == 3
    assert history.commands[0].output_tail == ("x" * 5000 + "end")[-module.TAIL :]


@pytest.mark.parametrize("text", ["x" * 8000, "tox \\\n  -q", "printf '\tx'", "tox zwölf"])
def test_a_command_may_be_long_and_have_several_lines(text: str) -> None:
    assert command({"command": text}).command == text


def test_bytes_of_a_row_that_are_no_text_are_shown() -> None:
    history = read(b'{"command": "tox \xff", "output_tail": "\xfe"}')
    assert [(one.command, one.output_tail) for one in history.commands] == [("tox \ufffd", "\ufffd")]


def test_a_line_that_is_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_MAX", 100)
    path = tmp_path / "h.jsonl"
    path.write_bytes(b'{"command": "' + b"x" * 250 + b'"}\n{"command": "tox"}')
    assert read_history(path, ROOT) == WorkHistory(commands=(RanCommand(command="tox"),), left_out=1)
    monkeypatch.setattr(module, "FILE_MAX", 50)
    with pytest.raises(SettingError, match="has no command of '/home/ada/shop' in 1 rows"):
        read_history(path, ROOT)


def test_a_file_that_is_no_history_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n")
    with pytest.raises(SettingError, match=r"has no command of .* in 1 rows; give JSON lines"):
        read_history(tmp_path / "notes.md", ROOT)
    with pytest.raises(SettingError, match=r"cannot read the history .*gone"):
        read_history(tmp_path / "gone", ROOT)
    (tmp_path / "empty").write_text("")
    assert read_history(tmp_path / "empty", ROOT) == WorkHistory()
