"""When a sweep goes on because the gate cannot see yet, and what a gate that ends early saved."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.gate import early_stop, verdict
from pytest_tfgrpo.gate.early_stop import reported
from pytest_tfgrpo.gate.named_gates import baseline_name, has_rules
from pytest_tfgrpo.gate.verdict import more_rollouts
from pytest_tfgrpo.report.blocks.sequential import sequential_lines


def of(**values: Any) -> Any:
    return SimpleNamespace(**values)


def result(outcome: str, seen: bool = True) -> Any:
    return of(outcome=outcome, seen=seen)


def found(failed: bool, *results: Any, strict: bool = False) -> Any:
    return of(failed=failed, results=results, strict=strict)


FAILED, PASSED = found(True, result("fail"), result("pass")), found(False, result("fail"))
BLIND = found(True, result("fail"), result("fail", seen=False))
OPEN = found(True, result("inconclusive", seen=False), result("fail"))
STRICT = found(True, result("inconclusive"), result("pass", seen=False), strict=True)


@pytest.mark.parametrize(
    ("default", "named", "looks", "status", "more"),
    [
        (FAILED, (), (2, 4, 8), "complete", 4),
        (FAILED, (), (2, 4, 8), "aborted", 0),
        (FAILED, (), (2,), "complete", 0),
        (FAILED, (), (), "complete", 0),
        (PASSED, (), (2, 4), "complete", 0),
        (PASSED, (FAILED,), (2, 4), "complete", 4),
        (PASSED, (PASSED,), (2, 4), "complete", 0),
        (FAILED, (BLIND,), (2, 4), "complete", 0),
        (BLIND, (), (2, 4), "complete", 0),
        (OPEN, (), (2, 4), "complete", 4),
        (STRICT, (), (2, 4), "complete", 4),
        (found(True, result("pass")), (), (2, 4), "complete", 0),
    ],
)
def test_a_sweep_goes_on_while_more_rollouts_can_settle_all_that_fails_a_gate(
    default: Any,
    named: tuple[Any, ...],
    looks: tuple[int, ...],
    status: str,
    more: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sweep = of(status=status, phase=of(rollouts=2))
    monkeypatch.setattr(verdict, "Sweeps", lambda run: of(after=sweep))
    monkeypatch.setattr(verdict, "planned_looks", lambda *_: looks)
    monkeypatch.setattr(verdict, "judge", lambda run, **_: default)
    monkeypatch.setattr(verdict, "judge_named", lambda run, one, settings: one)
    monkeypatch.setattr(verdict, "can_be_seen", lambda one: one.seen)
    assert more_rollouts(of(settings={}), None, named) == more
    monkeypatch.setattr(verdict, "Sweeps", lambda run: of(after=None))
    assert more_rollouts(of(settings={}), None, named) == 0


def run(sequential: bool = True) -> Any:
    return of(settings={"gate_sequential": sequential}, scenarios=(), partial_selection="")


def sweeps(settled: int, *, concurrent: bool = True) -> Any:
    after = of(settled=range(settled), phase=of(scenarios=range(9), rollouts=3))
    return of(after=after, before=of(phase=of(rollouts=2, concurrent=concurrent)))


def test_what_an_early_end_saved_counts_the_control_that_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_stop, "obstacle", lambda *_, **__: "")
    expected = {"scenarios": 9, "asked": 5, "left_out": 4, "rollouts_saved": 20, "reason": ""}
    assert reported(run(), sweeps(4), gated=True, foreign_rules=False) == expected
    apart = reported(run(), sweeps(4, concurrent=False), gated=True, foreign_rules=False)
    assert apart == expected | {"rollouts_saved": 12}
    alone = of(after=sweeps(4).after, before=None)
    assert reported(run(), alone, gated=True, foreign_rules=False) == expected | {"rollouts_saved": 12}
    nothing = [reported(run(), sweeps(0), gated=gated, foreign_rules=False) for gated in (True, False)]
    assert [one and one["reason"] for one in nothing] == [
        "nothing was decided before the end",
        "no rule of the gate is set",
    ]
    assert reported(run(False), sweeps(4), gated=True, foreign_rules=False) is None
    assert reported(run(), of(after=None, before=None), gated=True, foreign_rules=False) is None
    monkeypatch.setattr(early_stop, "obstacle", lambda *_, **__: "too few scenarios")
    kept = reported(run(), sweeps(0), gated=True, foreign_rules=False)
    assert sequential_lines({"sequential": kept}, 80) == [
        "sequential gate  0 rollouts saved: too few scenarios"
    ]
    assert sequential_lines({"sequential": None}, 80) == []
    assert " ".join(sequential_lines({"sequential": apart}, 300)) == (
        "sequential gate  12 rollouts saved: gate already decided, 4 of 9 eval scenarios were not run; "
        "means and gain are over the 5 that were"
    )


NOTHING = {"compares": True, "baseline": None, "min_mean": None, "max_errors": None, "gain": False}


@pytest.mark.parametrize(
    ("gate", "setting", "name", "learning", "plain"),
    [
        ({}, None, None, False, False),
        ({}, "main", "main", True, True),
        ({"baseline": "own"}, "main", "own", True, True),
        ({"baseline": "none"}, "main", None, False, False),
        ({}, "none", "none", True, True),
        ({"compares": False}, "main", None, False, False),
        ({"min_mean": 0.0}, None, None, True, True),
        ({"max_errors": 0}, None, None, True, True),
        ({"max_cost_per_success_usd": 0.0}, None, None, True, True),
        ({"gain": True}, None, None, True, False),
    ],
)
def test_a_gate_has_something_to_judge_where_it_compares_or_has_a_limit(
    gate: dict[str, Any], setting: str | None, name: str | None, learning: bool, plain: bool
) -> None:
    made, settings = of(**NOTHING | {"max_cost_per_success_usd": None} | gate), {"baseline": setting}
    known: Any = settings
    assert baseline_name(made, known) == name
    assert (has_rules(made, known, learning=True), has_rules(made, known, learning=False)) == (
        learning,
        plain,
    )
