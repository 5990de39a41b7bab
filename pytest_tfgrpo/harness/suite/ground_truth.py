"""The source of a scenario's score: its rubric, and what `truth` requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.core.schema import Violation
from pytest_tfgrpo.core.wire import Json

ESTIMATES = ("majority", "judge")
"""Truths that need no checks: scores without ground truth."""


def criteria_of(rubric: Json) -> tuple[Criterion, ...]:
    """Return the criteria of a rubric, valid under the schema: a text, or a list of texts or objects."""
    listed = rubric if isinstance(rubric, list) else [rubric]
    return tuple(
        Criterion(text=one)
        if isinstance(one, str)
        else Criterion(text=one["text"], weight=float(one.get("weight", 1.0)))
        for one in listed
    )


def misfits(data: Mapping[str, Json], checker: str | None) -> Iterator[Violation]:
    """Yield what is wrong with the `truth` of a scenario, whose fields may still be malformed."""
    truth = data.get("truth", "checks")
    if checker is not None:
        if truth in ESTIMATES:
            yield Violation(("truth",), "a marked test function scores its rollouts itself; leave truth out")
    elif truth == "checks" and "checks" not in data:
        hint = "without ground truth write truth: majority, or truth: judge with a rubric"
        yield Violation((), f"missing key 'checks'; {hint}")
    elif truth == "judge" and "rubric" not in data:
        yield Violation(("truth",), "truth: judge needs a rubric")
    elif truth == "majority" and data.get("split") in ("dev", "eval"):
        reason = "agreement with itself does not show how good an agent is"
        yield Violation(("split",), f"truth: majority is only for split: train; {reason}")
