"""What an import makes of foreign files: scenarios, and what could not be carried over."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from pytest_tfgrpo.core.text import line, plural
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.suite.csv_text import ANSWERS

LONGEST_ID = 100
LONGEST_CRITERION = 2_000
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(slots=True)
class Imported:
    """What was read so far; ids are made unique."""

    scenarios: list[dict[str, Json]] = field(default_factory=list)
    """As a scenario file has them."""
    left_out: dict[str, tuple[int, str]] = field(default_factory=dict)
    """How often each thing came that has no counterpart here, and where first, by what it is."""
    _ids: set[str] = field(default_factory=set)

    def add(self, id_: str, scenario: Mapping[str, Json]) -> None:
        """Add a scenario under the id nearest to `id_` that is free."""
        plain = _UNFIT.sub("-", id_).strip(".-")[:LONGEST_ID] or "scenario"
        free, n = plain, 2
        while free in self._ids:
            free, n = f"{plain}-{n}", n + 1
        self._ids.add(free)
        self.scenarios.append({"id": free, **scenario})

    def leave_out(self, what: str, where: str) -> None:
        """Note something that has no counterpart here."""
        times, first = self.left_out.get(what, (0, where))
        self.left_out[what] = times + 1, first

    def leave_out_keys(self, values: Mapping[str, Json], used: Container[str], of: str, where: str) -> None:
        """Note each key of `values` that has a value and is not `used`; `of` says of what the keys are."""
        for key, value in values.items():
            if key not in used and value not in (None, "", [], {}):
                self.leave_out(f"`{key}`{of}", where)

    def report(self) -> Iterator[str]:
        """Yield a line for each kind of thing that was not carried over, the most frequent first."""
        for what, (times, first) in sorted(self.left_out.items(), key=lambda item: (-item[1][0], item[0])):
            yield f"not carried over, {plural(times, 'time')}: {line(what, 200)} (first: {line(first, 200)})"


def expectation(answer: Json, kind: str) -> dict[str, Json]:
    """Return the fields of a scenario that expects `answer`; raises ValueError where it is no `kind`."""
    text = answer if isinstance(answer, str) else str(answer)
    if kind == "rubric":
        return _judged(f"The answer agrees with this expected answer: {text}", "answers")
    if kind == "similar":
        return {"checks": [{"kind": kind, "value": text}]}
    key, read = ANSWERS[kind]
    try:
        return {"checks": [{"kind": kind, key: read(text.strip() if kind == "number" else text)}]}
    except ValueError:
        raise ValueError(f"expected answers that are no {kind}") from None


def outcome(expected: Json) -> dict[str, Json]:
    """Return the fields of a conversation that expects an outcome; raises ValueError where it is too long."""
    return _judged(f"The conversation comes to this outcome: {expected}", "outcomes")


def _judged(criterion: str, what: str) -> dict[str, Json]:
    if len(criterion) > LONGEST_CRITERION:
        raise ValueError(f"expected {what} of more than {LONGEST_CRITERION:,} characters")
    return {"rubric": criterion, "truth": "judge"}
