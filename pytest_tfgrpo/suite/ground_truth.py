"""The source of a scenario's score: its rubric, what is expected, and what `truth` requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.schema import Violation
from pytest_tfgrpo.core.wire.wire import Json

ESTIMATES = ("majority", "judge")
"""Truths that need no checks: scores without ground truth."""


def criteria_of(rubric: Json) -> tuple[Criterion, ...]:
    """Return the criteria of a rubric, valid under the schema: a text, or a list of texts or objects."""
    listed = rubric if isinstance(rubric, list) else [rubric]
    return tuple(
        Criterion(text=one)
        if isinstance(one, str)
        else Criterion(text=one["text"], weight=float(one.get("weight", 1.0)), name=one.get("name"))
        for one in listed
    )


def with_checks(data: Json) -> Json:
    """Return a scenario with the check that its ``expected`` is short for; as it is where that is wrong."""
    if not isinstance(data, dict) or "expected" not in data or "checks" in data:
        return data
    value = data["expected"]
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        return data
    rest = {key: one for key, one in data.items() if key != "expected"}
    return rest | {"checks": [{"kind": "exact" if isinstance(value, str) else "number", "value": value}]}


def misfits(data: Mapping[str, Json], checker: str | None) -> Iterator[Violation]:
    """Yield what is wrong with `truth` and `rubric` of a scenario, whose fields may still be malformed."""
    rubric = data.get("rubric")
    listed = [one for one in rubric if isinstance(one, Mapping)] if isinstance(rubric, list) else []
    names = [one.get("name") for one in listed]
    for place, name in enumerate(names):
        if isinstance(name, str) and name in names[:place]:
            yield Violation(("rubric",), f"two criteria are called {short(name)}; rename one")
    truth = data.get("truth", "checks")
    if checker is not None:
        for name in ("setup", "teardown"):
            if name in data:
                yield Violation((name,), f"fixtures set up a marked test function's world; leave {name} out")
        if truth in ESTIMATES:
            yield Violation(("truth",), "a marked test function scores its rollouts itself; leave truth out")
        if _has_checks_after_turns(data):
            yield Violation(("turns",), "a marked test function checks its rollouts itself; leave checks out")
    elif truth == "checks" and not data.keys() & {"checks", "expected"} and not _has_checks_after_turns(data):
        hint = "without ground truth write truth: majority, or truth: judge with a rubric"
        yield Violation((), f"missing key 'checks'; {hint}; with one answer write expected: ANSWER")
    elif truth == "judge" and "rubric" not in data:
        yield Violation(("truth",), "truth: judge needs a rubric")
    elif truth == "majority" and data.get("split") in ("dev", "eval"):
        reason = "agreement with itself does not show how good an agent is"
        yield Violation(("split",), f"truth: majority is only for split: train; {reason}")
    if "expected" in data and "checks" in data:
        yield Violation(("expected",), "expected is short for one check; leave it or checks out")
    if "turns" in data and "prompt" in data:
        yield Violation(("prompt",), "the first of the turns is the prompt; leave prompt out")
    if "user" in data and "turns" not in data:
        hint = "the first is what it says first, the rest what it says where no model plays it"
        yield Violation(("user",), f"a user needs turns: {hint}")
    elif "user" in data and _has_checks_after_turns(data):
        yield Violation(("turns",), "what a user says is not known beforehand: check at the end")


def _has_checks_after_turns(data: Mapping[str, Json]) -> bool:
    turns = data.get("turns")
    return isinstance(turns, list) and any(isinstance(turn, dict) and "checks" in turn for turn in turns)
