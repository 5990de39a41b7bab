"""The commands that ran while the work was done: lines of JSON, or a transcript of a coding agent.

All of it is taken as hostile: a row that is too long, too deep or of no known form is counted and left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.files import open_plain
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import block
from pytest_tfgrpo.core.wire.strict import finite, load_json
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.patterns.capture.transcripts import SeenCommand, Transcript
from pytest_tfgrpo.patterns.jobs.manifest import RanCommand
from pytest_tfgrpo.privacy.redact import find_secret, redact

FILE_MAX = 256_000_000
"""Bytes of a history that are read."""
LINE_MAX = 4_000_000
"""Bytes of one line; a longer one is left out."""
COMMANDS_MAX = 2000
"""Commands that are kept, the newest."""
COMMAND_MAX = 8000
"""Characters of a command; half of one would be another command."""
TAIL = 4000
"""Characters of the end of an output."""
_CD = re.compile(r"cd (?P<to>[\w./+@-]+|'[^'\n]+'|\"[^\"$`\\\n]+\") *&& *(?P<rest>\S.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkHistory:
    """Commands in the order in which they began, and what was not read."""

    commands: tuple[RanCommand, ...] = ()
    left_out: int = 0
    """Rows of no known form, and commands that are too long or ran outside the repository."""


def read_history(path: Path, root: Path) -> WorkHistory:
    """Return the commands of a file that ran in or below `root`; raises SettingError where it has none."""
    try:
        with open_plain(path) as file:
            history = history_of(_lines(file), root)
    except OSError as error:
        raise SettingError(f"cannot read the history {str(path)!r}: {error.strerror or error}") from error
    if not history.commands and history.left_out:
        raise SettingError(
            f"the history {str(path)!r} has no command of {str(root)!r} in {history.left_out} rows; give "
            "JSON lines with command and exit_code, or a transcript of Claude Code or Codex"
        )
    return history


def history_of(lines: Iterable[bytes | None], root: Path) -> WorkHistory:
    """Return the commands of lines of JSON, of any known form; None is a line that was too long."""
    transcript, left_out = Transcript(), 0
    for raw in lines:
        if raw is None or not transcript.take(_row(raw)):
            left_out += raw is None or bool(raw.strip())
    found = list[RanCommand]()
    for seen in transcript.commands():
        one = _ran(seen, root)
        if one is None:
            left_out += 1
        else:
            found.append(one)
    kept = found[-COMMANDS_MAX:]
    return WorkHistory(commands=tuple(kept), left_out=left_out + len(found) - len(kept))


def history_lines(history: WorkHistory) -> bytes:
    """Return the commands as a job holds them, one a line."""
    return "".join(f"{json.dumps(to_wire(one))}\n" for one in history.commands).encode()


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield lines; None for each that is too long."""
    room = FILE_MAX
    while room > 0 and (line := file.readline(min(LINE_MAX, room))):
        room -= len(line)
        if line.endswith(b"\n") or len(line) < LINE_MAX:
            yield line
            continue
        yield None
        while not line.endswith(b"\n") and room > 0 and (line := file.readline(min(LINE_MAX, room))):
            room -= len(line)


def _row(raw: bytes) -> Any:
    """Return what a line holds; None for no JSON."""
    try:
        return load_json(raw.decode("utf-8", "replace"), parse_float=finite, parse_constant=finite)
    except ValueError:
        return None


def _ran(seen: SeenCommand, root: Path) -> RanCommand | None:
    """Return a command without secrets and control characters; None where it is too long or ran elsewhere."""
    command, cwd = seen.command.strip(), seen.cwd
    if found := _CD.fullmatch(command):
        cwd, command = str(PurePosixPath(cwd) / found["to"].strip("'\"")), found["rest"].strip()
    folder = _within(cwd, root)
    if folder is None or not 0 < len(command) <= COMMAND_MAX or _has_controls(command):
        return None
    return RanCommand(
        command=redact(command) if find_secret(command) else command,
        exit_code=seen.exit_code,
        started_at=utc_time(seen.started_at) or "",
        ended_at=utc_time(seen.ended_at) or "",
        cwd=folder,
        output_tail=block(seen.output[-TAIL:]),
    )


def _within(cwd: str, root: Path) -> str | None:
    """Return a folder relative to the root; empty: the root itself, None: it lies elsewhere."""
    if "\0" in cwd:
        return None
    parts = list[str]()
    for part in PurePosixPath(str(root), cwd).parts:
        if part == "..":
            parts = parts[:-1]
        else:
            parts.append(part)
    folder = PurePosixPath(*parts)
    if not folder.is_relative_to(root):
        return None
    relative = str(folder.relative_to(root))
    return "" if relative == "." else relative


def _has_controls(command: str) -> bool:
    return any(not character.isprintable() and character not in "\n\t" for character in command)
