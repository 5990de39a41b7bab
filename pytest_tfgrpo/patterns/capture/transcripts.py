"""Rows of histories and transcripts of coding agents, whatever their form, as the commands that they tell of.

Known are our own rows; Claude Code's stream and log of a session (``~/.claude/projects``): the tool ``Bash``
and its results; Codex's stream and log (``~/.codex/sessions``): items, calls and events of commands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_tfgrpo.actors.events.stream import content, text
from pytest_tfgrpo.core.wire.strict import load_json

MOST = 20_000
"""Commands of a transcript that are held, the newest."""
SHELLS = frozenset({"bash", "sh", "zsh"})
OF_NO_COMMAND = frozenset(
    {
        *("system", "result", "stream_event", "rate_limit_event", "tool_progress", "auth_status", "summary"),
        *(
            "file-history-snapshot",
            "queue-operation",
            "progress",
            "attachment",
            "last-prompt",
            "custom-title",
            "ai-title",
        ),
        *("thread.started", "turn.started", "turn.completed", "turn.failed", "error", "compacted"),
        *("session_meta", "turn_context"),
    }
)
"""Rows of transcripts without a command."""
CALLS = frozenset({"shell", "shell_command", "exec_command", "local_shell", "container.exec"})
_CODE = re.compile(r"^(?:Error: )?Exit code:? (\d{1,3})\b|Process exited with code (\d{1,3})\b", re.MULTILINE)


@dataclass(slots=True)
class SeenCommand:
    """A command as a transcript tells of it, in pieces."""

    command: str = ""
    exit_code: int | None = None
    started_at: str = ""
    ended_at: str = ""
    cwd: str = ""
    output: str = ""
    is_background: bool = False
    """What is known of it when it has started, no more."""


class Transcript:
    """Rows read so far, of one form or of several."""

    def __init__(self) -> None:
        self._commands: dict[str, SeenCommand] = {}
        self._count = 0
        self._cwd = ""

    def commands(self) -> Iterator[SeenCommand]:
        """Yield the commands in the order in which they began."""
        return (one for one in self._commands.values() if one.command)

    def take(self, row: Any) -> bool:
        """Read one row; return whether its form is known."""
        if not isinstance(row, dict):
            return False
        if "type" not in row:
            return bool(text(row.get("command")).strip()) and self._own(row)
        kind = text(row.get("type"))
        if kind in ("assistant", "user"):
            return self._claude(row, row.get("message"))
        if kind in ("item.started", "item.updated", "item.completed"):
            return self._item(row.get("item"))
        if kind in ("response_item", "event_msg"):
            return self._codex(row.get("payload"), text(row.get("timestamp")))
        if kind in OF_NO_COMMAND:
            self._enter(row)
            self._enter(row.get("payload"))
            return True
        return False

    def _enter(self, value: Any) -> None:
        """Note the folder in which what follows runs."""
        if isinstance(value, dict):
            self._cwd = text(value.get("cwd")) or self._cwd

    def _at(self, key: str) -> SeenCommand:
        """Return the command of a key; the oldest go where there are too many."""
        if key not in self._commands:
            self._commands[key] = SeenCommand(cwd=self._cwd)
            if len(self._commands) > MOST:
                del self._commands[next(iter(self._commands))]
        return self._commands[key]

    def _own(self, row: Mapping[str, Any]) -> bool:
        self._count += 1
        one = self._at(f"row {self._count}")
        one.command, one.exit_code = text(row.get("command")), _code(row.get("exit_code"))
        one.started_at, one.ended_at = text(row.get("started_at")), text(row.get("ended_at"))
        one.cwd, one.output = text(row.get("cwd")), text(row.get("output_tail"))
        return True

    def _claude(self, row: Mapping[str, Any], message: Any) -> bool:
        self._enter(row)
        blocks = message.get("content") if isinstance(message, dict) else None
        for block in blocks if isinstance(blocks, list) else []:
            if not isinstance(block, dict):
                continue
            given = block.get("input")
            if block.get("type") == "tool_use" and block.get("name") == "Bash" and isinstance(given, dict):
                one = self._at(text(block.get("id")))
                one.command, one.started_at = text(given.get("command")), text(row.get("timestamp"))
                one.is_background = given.get("run_in_background") is True
            elif (
                block.get("type") == "tool_result"
                and (id_ := text(block.get("tool_use_id"))) in self._commands
            ):
                one = self._commands[id_]
                one.ended_at, one.output = text(row.get("timestamp")), content(block.get("content"))
                if not one.is_background:
                    one.exit_code = _said(one.output) if block.get("is_error") is True else 0
        return isinstance(message, dict)

    def _item(self, item: Any) -> bool:
        if isinstance(item, dict) and item.get("type") == "command_execution":
            one = self._at(text(item.get("id")))
            one.command = _unwrapped(item.get("command"))
            one.exit_code = _code(item.get("exit_code"))
            one.output = text(item.get("aggregated_output"))
        return isinstance(item, dict)

    def _codex(self, payload: Any, at: str) -> bool:
        if not isinstance(payload, dict):
            return False
        id_ = text(payload.get("call_id"))
        match payload.get("type"):
            case "function_call" if text(payload.get("name")) in CALLS:
                self._call(id_, _loaded(payload.get("arguments")), at)
            case "local_shell_call":
                self._call(id_, payload.get("action"), at)
            case "exec_command_begin":
                self._call(id_, payload, at)
            case "function_call_output" if id_ in self._commands:
                one = self._commands[id_]
                one.ended_at, said = at, payload.get("output")
                loaded = _loaded(said)
                whole = loaded if isinstance(loaded, dict) else {}
                data = whole.get("metadata")
                code = _code(data.get("exit_code")) if isinstance(data, dict) else None
                one.output = one.output or text(whole.get("output")) or content(said)
                one.exit_code = one.exit_code if one.exit_code is not None else code
                if one.exit_code is None:
                    one.exit_code = _said(one.output)
            case "exec_command_end":
                self._call(id_, payload, "")
                one = self._at(id_)
                one.ended_at, one.exit_code = at, _code(payload.get("exit_code"))
                one.output = text(payload.get("aggregated_output")) or text(payload.get("stdout"))
        return True

    def _call(self, id_: str, given: Any, at: str) -> None:
        """Note what a call starts, unless it is known already."""
        if isinstance(given, dict):
            one = self._at(id_)
            one.command = one.command or _unwrapped(given.get("command") or given.get("cmd"))
            one.started_at = one.started_at or at
            one.cwd = (
                text(given.get("workdir")) or text(given.get("working_directory")) or text(given.get("cwd"))
            ) or one.cwd


def _loaded(value: Any) -> Any:
    """Return the JSON that a text is; None for none."""
    try:
        return load_json(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _code(value: Any) -> int | None:
    return value if type(value) is int and -1000 < value < 1000 else None


def _said(output: str) -> int | None:
    """Return the status that an output names in its first lines."""
    found = _CODE.search(output[:400])
    return int(found[1] or found[2]) if found else None


def _unwrapped(command: Any) -> str:
    """Return a command without the shell that was started for it."""
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        words = command
    else:
        try:
            words = shlex.split(text(command))
        except ValueError:
            words = []
    if len(words) == 3 and words[0].rpartition("/")[2] in SHELLS and words[1] in ("-c", "-lc"):
        return str(words[2])
    return shlex.join(words) if isinstance(command, list) else text(command)
