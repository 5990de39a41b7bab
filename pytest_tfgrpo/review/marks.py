"""Files of marks: what reviewers think of a run's answers, read as hostile text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.suite.documents.document import Refused, read_text
from pytest_tfgrpo.suite.documents.json_text import parse_json

SCHEMA = "tfgrpo.marks/1"
FILE_MAX_BYTES = 64_000_000
NAME = 80
"""Characters of a reviewer's name."""

Opinion: TypeAlias = Literal["right", "wrong", "unsure"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """What one reviewer thinks of one answer."""

    reviewer: str
    run_id: str
    rollout_id: str
    scenario_id: str
    stamp: str
    """Of the scenario as the reviewer saw it."""
    opinion: Opinion
    comment: str = ""
    """Without secrets; nothing ever interprets it."""
    words: str = ""
    """Words of the answer that decide, as the reviewer chose them."""


def load_marks(paths: Sequence[Path]) -> tuple[Mark, ...]:
    """Return the marks in some files, a reviewer each; raises JournalError."""
    marks: list[Mark] = []
    names: set[str] = set()
    for path in paths:
        value = _read(path)
        name = line(value.get("reviewer", ""), NAME) or line(path.stem, NAME)
        reviewer = next(
            n for i in range(1, len(paths) + 2) if (n := name if i == 1 else f"{name} ({i})") not in names
        )
        names.add(reviewer)
        marks.extend(_marks(value, reviewer, path))
    return tuple(marks)


def _read(path: Path) -> dict[str, Json]:
    try:
        value: dict[str, Json] = parse_json(read_text(path, FILE_MAX_BYTES)).value
    except Refused as error:
        where = "" if error.problem.line == 1 else f", line {error.problem.line}"
        raise JournalError(
            f"{path}{where}: {error.problem.message}; name a file that the report page saved"
        ) from None
    if isinstance(value, dict) and value.get("schema", SCHEMA) != SCHEMA:
        raise JournalError(
            f"{path} has the schema {short(value['schema'])}, not {SCHEMA!r}; save the marks from a page of "
            "`tfgrpo report`"
        )
    if found := violations("marks", value):
        raise JournalError(
            f"{path} is not a file of marks: {found[0].pointer or '/'}: {found[0].message}; "
            "name a file that the report page saved"
        )
    return value


def _marks(value: dict[str, Json], reviewer: str, path: Path) -> list[Mark]:
    found: dict[str, Mark] = {}
    for n, one in enumerate(value["marks"]):
        if one["rollout"] in found:
            raise JournalError(
                f"{path}: /marks/{n}: {short(one['rollout'])} is marked twice; keep one of them"
            )
        found[one["rollout"]] = Mark(
            reviewer=reviewer,
            run_id=value["run_id"],
            rollout_id=one["rollout"],
            scenario_id=one["scenario"],
            stamp=one["stamp"],
            opinion=one["mark"],
            comment=redact(one.get("comment", "")),
            words=one.get("words", ""),
        )
    return list(found.values())
