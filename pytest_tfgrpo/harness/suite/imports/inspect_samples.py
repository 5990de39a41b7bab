"""Samples of Inspect AI datasets: JSON, JSON lines or CSV."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from pathlib import Path

from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.suite.imports.imported import Imported, expectation
from pytest_tfgrpo.harness.suite.imports.tables import TableColumns, read_rows

UNUSED = ("sandbox", "files", "setup", "metadata")
LETTERS = string.ascii_uppercase


def read_samples(found: Imported, path: Path, columns: TableColumns, expect: str) -> None:
    """Add a scenario for each sample; raises ScenarioError.

    `columns` name other columns than ``input`` and ``target``. A target list is one of several right answers.
    """
    task, target = columns.prompt or "input", columns.answer or "target"
    for n, (where, sample) in enumerate(read_rows(path), 1):
        for key in UNUSED:
            if sample.get(key):
                found.leave_out(f"`{key}`", where)
        prompt, why = _prompt(sample.get(task))
        if why:
            found.leave_out(why, where)
            continue
        try:
            fields = _expected(sample.get("choices"), sample.get(target), expect)
        except ValueError as error:
            found.leave_out(str(error), where)
            continue
        fields["prompt"] = prompt + fields.pop("choices", "")
        found.add(str(sample.get(columns.id or "id") or f"{path.stem}-{n}"), fields)


def _prompt(value: Json) -> tuple[str, str]:
    """Return the task, or why there is none: a text, or messages of which one is the user's."""
    if isinstance(value, str) and value.strip():
        return value, ""
    if not isinstance(value, list) or not all(isinstance(message, dict) for message in value):
        return "", "samples without input"
    if [message.get("role") for message in value] != ["user"]:
        return "", "conversations, and system messages (they belong into a prompt pack)"
    content = value[0].get("content")
    return (
        (content, "") if isinstance(content, str) and content.strip() else ("", "messages that are no text")
    )


def _expected(choices: Json, target: Json, expect: str) -> dict[str, Json]:
    """Return the fields of a scenario that expects `target`; raises ValueError."""
    targets = target if isinstance(target, list) else [target]
    if not all(isinstance(one, str) and one for one in targets):
        raise ValueError("samples without target")
    if isinstance(choices, Sequence) and not isinstance(choices, str) and choices:
        return _choice(choices, targets)
    if len(targets) == 1:
        return expectation(targets[0], expect)
    if expect not in ("contains", "exact"):
        raise ValueError(f"several right answers, of which a check of kind {expect} knows one")
    any_of = "|".join(map(re.escape, targets))
    return {
        "checks": [
            {"kind": "regex", "pattern": any_of if expect == "contains" else rf"\A\s*(?:{any_of})\s*\Z"}
        ]
    }


def _choice(choices: Sequence[Json], targets: Sequence[str]) -> dict[str, Json]:
    if len(targets) > 1 or len(choices) > len(LETTERS):
        raise ValueError(f"choices with several right letters, or more than {len(LETTERS)}")
    named = dict(zip(LETTERS, choices, strict=False))
    letter = next((a for a, choice in named.items() if targets[0] in (a, choice)), None)
    if letter is None:
        raise ValueError("targets that are none of the choices")
    listed = "".join(f"\n{a}) {choice}" for a, choice in named.items())
    return {
        "choices": f"\n{listed}\n\nAnswer with the letter of the right choice alone.",
        "checks": [{"kind": "exact", "value": letter, "ignore_case": True}],
    }
