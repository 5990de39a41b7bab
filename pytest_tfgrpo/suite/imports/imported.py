"""What an import makes of foreign files: scenarios, and what could not be carried over."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.csv_text import ANSWERS

LONGEST_ID = 100
LONGEST_CRITERION = 2_000
FILES_MAX_BYTES = 1_000_000_000
"""Bytes of all files that one import writes beside its scenarios."""
_FIT = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,128}")
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(slots=True)
class Imported:
    """What was read so far; ids are made unique."""

    scenarios: list[dict[str, Json]] = field(default_factory=list)
    """As a scenario file has them."""
    left_out: dict[str, tuple[int, str]] = field(default_factory=dict)
    """How often each thing came that has no counterpart here, and where first, by what it is."""
    notes: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The same of what was carried over, but may not be meant so."""
    source: str = ""
    """Name of the file that is read now."""
    refused: list[tuple[str, str]] = field(default_factory=list)
    """What could not be imported at all, by name, and why."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Files that scenarios name, by their path beside the scenario file."""
    origins: dict[str, str] = field(default_factory=dict)
    """Where each scenario came from, by its id."""
    _bytes: int = 0

    def free_id(self, id_: str) -> str:
        """Return the id nearest to `id_` that no scenario has."""
        fit = _FIT.fullmatch(id_)
        plain = id_ if fit else _UNFIT.sub("-", id_).strip(".-")[:LONGEST_ID] or "scenario"
        free, n = plain, 2
        while free in self.origins:
            free, n = f"{plain[:LONGEST_ID]}-{n}", n + 1
        return free

    def add(self, id_: str, scenario: Mapping[str, Json], where: str) -> None:
        """Add a scenario that came from there, under the id nearest to `id_` that is free."""
        free = self.free_id(id_)
        self.origins[free] = self._placed(where)
        self.scenarios.append({"id": free, **scenario})

    def refuse(self, name: str, why: str) -> None:
        """Note something that could not be imported at all."""
        self.refused.append((name, why))

    def clashes(self, files: Mapping[str, bytes]) -> bool:
        """Return whether another file has the name of one of these."""
        return any(self.files.get(name, data) != data for name, data in files.items())

    def keep(self, files: Mapping[str, bytes]) -> None:
        """Add files, none of which another one `clashes` with; raises ValueError for too many bytes."""
        new = {name: data for name, data in files.items() if name not in self.files}
        size = self._bytes + sum(map(len, new.values()))
        if size > FILES_MAX_BYTES:
            raise ValueError(
                f"all files together have more than {FILES_MAX_BYTES} bytes; import fewer at once"
            )
        self._bytes = size
        self.files |= new

    def leave_out(self, what: str, where: str) -> None:
        """Note something that has no counterpart here, and where it stands in the source."""
        self._count(self.left_out, what, where)

    def note(self, what: str, where: str) -> None:
        """Note something that was carried over, but may not be meant so."""
        self._count(self.notes, what, where)

    def _count(self, kinds: dict[str, tuple[int, str]], what: str, where: str) -> None:
        times, first = kinds[what] if what in kinds else (0, self._placed(where))
        kinds[what] = times + 1, first

    def _placed(self, where: str) -> str:
        inside = not self.source or where.startswith(self.source)
        return where if inside else f"{self.source}: {where}"

    def leave_out_keys(self, values: Mapping[str, Json], used: Container[str], of: str, where: str) -> None:
        """Note each key of `values` that has a value and is not `used`; `of` says of what the keys are."""
        for key, value in values.items():
            blank = isinstance(value, str) and not value.strip()
            if key not in used and not blank and value not in (None, [], {}):
                self.leave_out(f"`{key}`{of}" if key else "a column without a name", where)

    def report(self) -> Iterator[str]:
        """Yield a line for each thing that was refused, lost or noted, the most frequent first."""
        for name, why in self.refused:
            yield f"not imported: {line(name, 200)}: {line(why, 300)}"
        for title, kinds in ("not carried over", self.left_out), ("note", self.notes):
            for what, (times, first) in sorted(kinds.items(), key=lambda item: (-item[1][0], item[0])):
                yield f"{title}, {plural(times, 'time')}: {line(what, 200)} (first: {line(first, 200)})"


def expectation(text: str, kind: str) -> dict[str, Json]:
    """Return the fields of a scenario that expects this answer; raises ValueError where it is no `kind`."""
    if kind == "rubric":
        return _judged(f"The answer agrees with this expected answer: {text}", "answers")
    if kind == "similar":
        return {"checks": [{"kind": kind, "value": text}]}
    key, read = ANSWERS[kind]
    try:
        return {"checks": [{"kind": kind, key: read(text.strip() if kind == "number" else text)}]}
    except ValueError:
        raise ValueError(f"expected answers that are no {kind}") from None


def outcome(expected: str) -> dict[str, Json]:
    """Return the fields of a conversation that expects an outcome; raises ValueError where it is too long."""
    return _judged(f"The conversation comes to this outcome: {expected}", "outcomes")


def _judged(criterion: str, what: str) -> dict[str, Json]:
    if len(criterion) > LONGEST_CRITERION:
        raise ValueError(f"expected {what} of more than {LONGEST_CRITERION:,} characters")
    return {"rubric": criterion, "truth": "judge"}
