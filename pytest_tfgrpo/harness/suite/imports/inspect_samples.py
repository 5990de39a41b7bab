"""Samples of Inspect AI datasets: JSON, JSON lines or CSV."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.text import few
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.suite.imports.chats import said
from pytest_tfgrpo.harness.suite.imports.imported import Imported, expectation
from pytest_tfgrpo.harness.suite.imports.tables import TableColumns, placed, read_rows

LETTERS = string.ascii_uppercase


def read_samples(found: Imported, path: Path, columns: TableColumns, expect: str) -> None:
    """Add a scenario for each sample; raises ScenarioError.

    `columns` name other columns than ``input`` and ``target``. A target list is one of several right answers.
    """
    task, target = columns.prompt or "input", columns.answer or "target"
    for n, (where, sample) in enumerate(read_rows(path), 1):
        if task not in sample:
            raise ScenarioError(
                f"{where}: no sample of Inspect: there are {few(list(sample), 10)}; a sample has {task!r} "
                "(name another column with --prompt). A log of an evaluation is no dataset"
            )
        found.leave_out_keys(sample, {task, target, "choices", "id", *columns.others()}, "", where)
        try:
            fields = _expected(_choices(sample.get("choices")), sample.get(target), expect)
            asked = _asked(found, sample[task], where)
        except ValueError as error:
            found.leave_out(str(error), where)
            continue
        choices = fields.pop("choices", "")
        if "turns" in asked:
            asked["turns"][-1] += choices
        else:
            asked["prompt"] += choices
        fields |= asked | placed(found, sample, where, columns)
        found.add(str(sample.get(columns.id or "id") or f"{path.stem}-{n}"), fields)


def _asked(found: Imported, value: Json, where: str) -> dict[str, Json]:
    """Return the task: a text, or what the user says in messages; raises ValueError."""
    if isinstance(value, list) and value:
        return said(found, value, where)
    if not isinstance(value, str) or not value.strip():
        raise ValueError("samples without input")
    return {"prompt": value}


def _choices(value: Json) -> Sequence[str]:
    """Return choices as Inspect reads them: a list, or a text with commas or blanks between."""
    if isinstance(value, str):
        value = value.split(",") if "," in value else value.split()
    listed = value if isinstance(value, list) else []
    return [str(one).strip() for one in listed]  # an empty one, too: the letters count it


def _expected(choices: Sequence[str], target: Json, expect: str) -> dict[str, Json]:
    """Return the fields of a scenario that expects `target`; raises ValueError."""
    listed = target if isinstance(target, list) else [target]
    targets = [str(one) for one in listed if isinstance(one, str | int | float) and str(one)]
    if not targets or len(targets) < len(listed):
        raise ValueError("samples without target")
    if choices:
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


def _choice(choices: Sequence[str], targets: Sequence[str]) -> dict[str, Json]:
    if len(targets) > 1 or len(choices) > len(LETTERS):
        raise ValueError(f"choices with several right letters, or more than {len(LETTERS)}")
    named = dict(zip(LETTERS, choices, strict=False))
    by_text = (a for a, choice in named.items() if choice == targets[0])
    letter = targets[0] if targets[0] in named else next(by_text, None)
    if letter is None:
        raise ValueError("targets that are none of the choices")
    listed = "".join(f"\n{a}) {choice}" for a, choice in named.items())
    return {
        "choices": f"\n{listed}\n\nAnswer with the letter of the right choice alone.",
        "checks": [{"kind": "exact", "value": letter, "ignore_case": True}],
    }
