"""Runs at the edges, for tests of what is read of them.

Nothing, one, all equal, zeros, errors alone, values that are missing, one side without a score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pytest_tfgrpo.core.lessons import Library, Operation, Refusal, Revision
from pytest_tfgrpo.core.records import Failure, Group, ModelCall, Rollout, Run, Usage
from pytest_tfgrpo.report.terminal import NOTHING_MIXED
from support.builders import make_experience
from support.sweeps import evenly, make_run, rated


def with_rollouts(run: Run, change: Callable[[Rollout], Rollout]) -> Run:
    """Return a run with every rollout changed."""

    def of(group: Group) -> Group:
        return replace(group, rollouts=tuple(map(change, group.rollouts)))

    phases = (replace(result, groups=tuple(map(of, result.groups))) for result in run.phases)
    return replace(run, phases=tuple(phases))


def with_phase(run: Run, place: int, **changes: Any) -> Run:
    """Return a run with one of its phases changed."""
    phases = list(run.phases)
    phases[place] = replace(phases[place], **changes)
    return replace(run, phases=tuple(phases))


def learned_nothing() -> Run:
    """Return a run whose groups were all alike, so that it has no lesson, and says so in each epoch."""
    run = make_run(train={"t1": [1, 1], "t2": [0, 0]}, library=Library(hash="b" * 64))
    first = replace(
        run.phases[0],
        revision=Revision(epoch=1, library=Library(hash="b" * 64), note=NOTHING_MIXED),
    )
    second = replace(
        first,
        phase=replace(first.phase, epoch=2),
        revision=Revision(epoch=2, library=Library(hash="b" * 64), note=NOTHING_MIXED),
    )
    return replace(run, phases=(first, second))


def refused_everything() -> Run:
    """Return a run whose lessons were refused, one of them twice, and whose optimizer failed twice."""
    add = Operation(kind="add", experience=make_experience(1, summary32="Answer 3."))
    remove = Operation(kind="remove", targets=("0" * 16,))
    refused = (
        Refusal(operation=add, code="duplicate", reason="says what lesson x says"),
        *[Refusal(operation=add, code="leak", reason="holds the answer of s1")] * 2,
        Refusal(operation=remove, code="unknown", reason="no such lesson"),
        Refusal(operation=add, code="long", reason="33 words"),
    )
    revision = Revision(
        epoch=1, library=Library(hash="b" * 64), refused=refused, failures={"malformed": 2, "call": 1},
        informative_groups=1,
    )  # fmt: skip
    run = make_run(train={"t1": [1, 0]}, library=Library(hash="b" * 64))
    return with_phase(run, 0, revision=revision)


def call(key: str, **changes: Any) -> ModelCall:
    fields: dict[str, Any] = {
        "key": key, "purpose": "learn", "epoch": 1, "subject": "t1", "model": "openai:m@e", "prompt": "p",
        "fingerprint": "f" * 64,
    }  # fmt: skip
    return ModelCall(**fields | changes)


def paid() -> Run:
    """Return a run that paid for learning and judging, with one call that failed and one of unknown cost."""
    run = make_run({"a": [0, 1]}, {"a": [1, 1]}, {"t1": [1, 0]})
    usage = Usage(prompt=100, completion=20, reasoning=5, cached=50)
    calls = (
        call("e1.learn.t1.critique", usage=usage, cost_usd=0.02),
        call("e1.learn.t1.lessons", error="503 from the provider"),
        call("e1.judge.t1.r0", purpose="judge", model="openai:j@e", usage=usage),
    )
    return with_phase(run, 1, calls=calls)


def interrupted() -> Run:
    """Return a run that was interrupted in its final sweep, one scenario of which a test function skipped."""
    run = make_run({"a": [0, 1], "b": [1, 1]}, {"a": [1]}, {"t1": [1, 0]})
    run = replace(run, reason="interrupted", status="cancelled")
    phase = replace(run.phases[2].phase, scenarios=("a", "b", "c"), rollouts=2)
    left = {"excluded": ("b",), "settled": ("c",)}
    return with_phase(run, 2, phase=phase, status="cancelled", reason="interrupted", **left)


def failing_alike() -> Run:
    """Return a run in which agents fail in three ways, one of them more often than the others."""

    def change(rollout: Rollout) -> Rollout:
        if rollout.failure is None:
            return rollout
        code = ("timeout", "crash", "oversize")[len(rollout.scenario_id) % 3]
        return replace(rollout, failure=Failure(code=code, message=f"{code} after {rollout.index} s"))

    run = make_run(None, {"a": [-1, -1, 1], "bb": [-1, None, 1], "ccc": [None, None, None]})
    return with_rollouts(run, change)


WORLDS: Mapping[str, Callable[[], Run]] = {
    "nothing": make_run,
    "one": lambda: make_run(None, {"a": [1]}),
    "all-solved": lambda: make_run(evenly(9, [1, 1]), evenly(9, [1, 1])),
    "all-failed": lambda: make_run(evenly(3, [0, 0]), evenly(3, [0, 0])),
    "errors-alone": lambda: make_run({"a": [None, None]}, {"a": [None, None], "b": [None]}),
    "errors-before": lambda: make_run({"a": [None, None], "b": [1, 0]}, {"a": [1, 1], "b": [1, None]}),
    "no-common-scenario": lambda: make_run({"a": [1, 0]}, {"b": [1, 1]}),
    "worse-in-one-domain": lambda: make_run(
        evenly(9, [1, 1]) | {"date1": [1, 1], "date2": [0, 1]},
        evenly(9, [1, 1]) | {"date1": [0, 0], "date2": [0, 0]},
    ),
    "better-in-all": lambda: make_run(
        evenly(9, [0, 0]) | evenly(5, [0, 0], "date"), evenly(9, [1, 1]) | evenly(5, [1, 0.5], "date")
    ),
    "learned-nothing": learned_nothing,
    "refused-everything": refused_everything,
    "paid": paid,
    "interrupted": interrupted,
    "failing-alike": failing_alike,
    "free": lambda: with_rollouts(
        make_run({"a": [0]}, {"a": [1]}),
        lambda r: replace(r, cost_usd=0.0, tokens=0, latency_ms=0.0, frames=()),
    ),
    "unpriced": lambda: with_rollouts(
        make_run({"a": [0, 1]}, {"a": [1, 1]}), lambda r: replace(r, cost_usd=None if r.index else 0.5)
    ),
    "rated": lambda: rated(
        make_run({"a": [0, 1], "b": [None]}, {"a": [1, 1], "b": [1]}), {"a": [0.25, 0.75], "b": [None]}
    ),
    "one-size-each": lambda: make_run({"a": [1, 0], "b": [1, 0]}, {"a": [1, 0, 1, 0], "b": [1, 1, 1, 0]}),
}  # fmt: skip


def rounded(value: Any) -> Any:
    """Return a JSON value with numbers of four places, which every platform computes alike."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value
