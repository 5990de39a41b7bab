"""Samples of Inspect AI datasets: JSON, JSON lines or CSV."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.texts.text import few
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.json_text import parse_json_line
from pytest_tfgrpo.suite.imports.imported import Imported
from pytest_tfgrpo.suite.imports.tables import TableColumns, placed, read_rows
from pytest_tfgrpo.suite.imports.values import as_text, asked, expected, name_of, shape

LETTERS = string.ascii_uppercase


def read_samples(found: Imported, path: Path, columns: TableColumns, expect: str) -> None:
    """Add a scenario for each sample; raises ScenarioError.

    `columns` name other columns than ``input`` and ``target``. A target list is one of several right answers.
    """
    task, target = columns.prompt or "input", columns.answer or "target"
    for n, (where, sample) in enumerate(read_rows(path, ("choices", task, target, *columns.others())), 1):
        if task not in sample:
            raise ScenarioError(
                f"{where}: not a sample of Inspect: there are {few(list(sample), 10)}; a sample has {task!r} "
                "(name another column with --prompt). A log of an evaluation is not a dataset"
            )
        found.leave_out_keys(sample, {task, target, "choices", "id", *columns.others()}, "", where)
        try:
            options = _choices(sample.get("choices"))
            fields = _expected(found, options, sample.get(target), expect, where)
            task_fields = asked(found, sample[task], where, "inputs")
        except ValueError as error:
            found.leave_out(str(error), where)
            continue
        choices = fields.pop("choices", "")
        if "turns" in task_fields:
            task_fields["turns"][-1] += choices
        else:
            task_fields["prompt"] += choices
        fields |= task_fields | placed(found, sample, where, columns)
        found.add(name_of(found, sample, where, columns.id or "id") or f"{path.stem}-{n}", fields, where)


def _choices(value: Json) -> Sequence[str]:
    """Return choices as Inspect reads them: a list, or a text with commas or blanks between.

    Raises ValueError for anything else.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = parse_json_line(value, 1, as_written=True)
        except Refused:
            raise ValueError("choices in brackets that are no JSON") from None
    if isinstance(value, str):
        value = value.split(",") if "," in value else value.split()
    if not isinstance(value, list | None):
        raise ValueError(f"choices that are {shape(value)}")
    try:
        return [as_text(one).strip() for one in value or ()]  # an empty one, too: the letters count it
    except ValueError as error:
        raise ValueError(f"choices of which one is {error}") from None


def _expected(
    found: Imported, choices: Sequence[str], target: Json, expect: str, where: str
) -> dict[str, Json]:
    """Return the fields of a scenario that expects `target`; raises ValueError."""
    if target in (None, "", []):
        raise ValueError("samples without target")
    if not choices:
        return expected(found, target, expect, where)
    try:
        return _choice(choices, [as_text(one) for one in (target if isinstance(target, list) else [target])])
    except ValueError as error:
        raise ValueError(f"targets: {error}" if str(error).startswith("no text") else str(error)) from None


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
