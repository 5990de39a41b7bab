"""Whether the checks of an import can fail: each is tried on an empty and on a wrong answer."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.scenarios import Check, Scenario, Task
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.scoring.checks.registry import KINDS, evaluate

EMPTY = ""
WRONG = "Xyzzy -0.1234567 plugh"
JSON_VALUES = ("{}", "[]", "0", "null", '""')
NOT_TRIED = ("command", "file", "limits", "python", "tests")
"""Kinds that look at more than the answer, or run programs."""
NO_PLACE, NO_TASK = Workspace(Path("nowhere")), Task(id="trial", domain="general", prompt="")
"""None of the kinds that are tried looks there."""
LONGEST_S = 30.0
"""Time after which no further check is tried."""
NAMED = 20
"""Checks that pass everything, of which each has a line."""
_PIECE = re.compile(r"\(\?=\[\\s\\S\]\*((?:\\.|[^()\\])*)\)")


@dataclass(slots=True)
class CheckTrial:
    """What the checks of the scenarios so far found in an empty and a wrong answer."""

    can_fail: int = 0
    passing: list[str] = field(default_factory=list)
    """Where each check stands that passes both."""
    untried: Counter[str] = field(default_factory=Counter)
    late: int = 0
    """How many came after the time was up."""
    ends: float | None = None

    def add(self, scenario: Scenario, origin: str) -> None:
        """Try the checks of a scenario, which came from `origin`."""
        self.ends = time.monotonic() + LONGEST_S if self.ends is None else self.ends
        self.untried["rubric"] += bool(scenario.rubric)
        for n, check in enumerate(scenario.checks, 1):
            if time.monotonic() > self.ends:
                self.late += 1
            elif check.kind in NOT_TRIED:
                self.untried[f"`{check.title}` check"] += 1
            elif _fails(check, EMPTY) or _fails(check, WRONG):
                self.can_fail += 1
            elif not check.negated:
                self.passing.append(f"{scenario.id}, check {n} `{check.title}` ({origin})")
            elif any(_fails(check, answer) for answer in _forbidden(check)):
                self.can_fail += 1
            else:
                self.untried[f"`{check.title}` check"] += 1

    def report(self) -> Iterator[str]:
        """Yield a line that says how many checks can fail, and one for each that cannot."""
        tried = self.can_fail + len(self.passing)
        left = [plural(n, what) for what, n in sorted(self.untried.items()) if n]
        left += [f"{self.late} after {LONGEST_S:g} s of trials"] if self.late else []
        told = [f"{self.can_fail} of {plural(tried, 'check')} can fail" if tried else "no check was tried"]
        if self.passing:
            verb = "passes" if len(self.passing) == 1 else "pass"
            told.append(f"{len(self.passing)} {verb} both an empty and a wrong answer")
        yield "; ".join([*told, *([f"not tried: {', '.join(left)}"] if left else [])])
        for where in self.passing[:NAMED]:
            yield f"passes both an empty and a wrong answer: {line(where, 300)}"
        if len(self.passing) > NAMED:
            yield f"... and {len(self.passing) - NAMED} more"


def _fails(check: Check, answer: str) -> bool:
    context = CheckContext(answer=answer, frames=(), workspace=NO_PLACE, task=NO_TASK)
    try:
        (result,) = evaluate([check if check.turn is None else replace(check, turn=None)], context, KINDS)
    except CheckError:
        return False
    return result.credit < 1


def _forbidden(check: Check) -> Iterator[str]:
    """Yield answers that the opposite of a check may pass."""
    yield from JSON_VALUES
    yield from KINDS[check.kind].answers(check)
    schema = check.params.get("schema")
    if isinstance(schema, dict) and "const" in schema:
        yield json.dumps(schema["const"])
    if isinstance(pattern := check.params.get("pattern"), str):
        pieces = _PIECE.findall(pattern) or re.split(r"(?<!\\)\|", pattern)[:1]
        yield " ".join(re.sub(r"\\(.)", r"\1", piece.removeprefix(r"\A")) for piece in pieces)
