"""When a sweep goes on because the gate cannot see yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.gate import verdict
from pytest_tfgrpo.gate.verdict import more_rollouts


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
