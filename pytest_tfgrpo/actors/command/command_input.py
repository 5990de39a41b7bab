"""The input of a command actor: its task on stdin and in the placeholders of its command line."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from pytest_tfgrpo.core.errors import ActorError, ProviderError
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.protocols import ActorCall

TASK_SCHEMA = "tfgrpo.task/1"
PLACEHOLDERS = ("prompt", "system", "user", "workspace", "seed", "temperature")
_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")
_BRACED = re.compile(r"\{([a-z_]+)\}")


def check_placeholders(argv: Sequence[str]) -> None:
    """Raise ActorError for a word in braces that is nearly a placeholder."""
    for name in (found[1] for word in argv if (found := _BRACED.fullmatch(word))):
        if name not in PLACEHOLDERS and (hint := nearest(name, PLACEHOLDERS)):
            known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
            raise ActorError(f"unknown placeholder {{{name}}} in the command line; known: {known}{hint}")


def fill(argv: Sequence[str], call: ActorCall, workspace: Path) -> list[str]:
    """Return `argv` with its placeholders replaced, each once and without a shell.

    A word that would begin with a dash only through what was put in begins with a space instead, so that no
    program takes a prompt for an option. Raises ProviderError when a text has a null character.
    """
    values = _values(call, workspace)
    return [_filled(word, values) for word in argv]


def _filled(word: str, values: Mapping[str, str]) -> str:
    made = _PLACEHOLDER.sub(lambda match: values[match[1]], word)
    if made == word:
        return word
    if "\0" in made:
        raise ProviderError("a text with a null character cannot be an argument; put it on stdin", "spawn")
    made = made.encode("utf-8", "replace").decode("utf-8")
    return f" {made}" if made.startswith("-") and not word.startswith("-") else made


def _values(call: ActorCall, workspace: Path) -> dict[str, str]:
    return {
        "prompt": str(call.prompt),
        "system": call.prompt.system,
        "user": call.prompt.user,
        "workspace": str(workspace),
        "seed": str(call.seed),
        "temperature": str(call.temperature),
    }


def stdin_of(argv: Sequence[str], call: ActorCall, workspace: Path, *, as_text: bool) -> IO[bytes]:
    """Return what the program reads, as an open file: unlike a pipe it needs no writer.

    It is the task (schema ``tfgrpo.task/1``) or, with `as_text`, that part of the prompt which the command
    line does not carry. Raises ProviderError when it cannot be written.
    """
    told = _text(argv, call).encode("utf-8", "replace") if as_text else task_line(call, workspace)
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        file.write(told)
        file.seek(0)
    except OSError as error:
        raise ProviderError(f"cannot write the task of {call.task.id!r}: {error}", "spawn") from error
    return file


def task_line(call: ActorCall, workspace: Path, *, conversation: bool = False) -> bytes:
    """Return the task as a line of JSON; in a conversation further messages follow it."""
    task: dict[str, Json] = {
        "schema": TASK_SCHEMA,
        "scenario": to_wire(call.task),
        "prompt": to_wire(call.prompt),
        "temperature": call.temperature,
        "seed": call.seed,
        "workspace": str(workspace),
        "timeout_s": call.timeout_s,
    }
    if conversation:
        task["conversation"] = True
    return json.dumps(task).encode("ascii") + b"\n"


def _text(argv: Sequence[str], call: ActorCall) -> str:
    named = {match[1] for word in argv for match in _PLACEHOLDER.finditer(word)}
    if "prompt" in named:
        return ""
    left = {"system": call.prompt.system, "user": call.prompt.user}
    return "\n\n".join(part for name, part in left.items() if name not in named and part)
