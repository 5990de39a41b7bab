"""The first rollouts of a run: where all fail alike it ends, and otherwise nothing is lost."""

from __future__ import annotations

import pytest

from pytest_tfgrpo.core.records import Failure, Status
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult
from pytest_tfgrpo.engine.attempts.first_crashes import ALIKE, FirstCrashes

TRACEBACK = "Traceback (most recent call last):\n  ag.py:{}\nKeyError: 'KEY'"


def ended(status: Status = "failed", code: str = "crash", message: str = "no key") -> AttemptResult:
    failure = None if status == "ok" else Failure(code=code, message=message)
    return AttemptResult(status=status, failure=failure, started_at="", latency_ms=1.0)


def watch(
    *outcomes: AttemptResult, watching: bool = True, scenarios: int = 3
) -> tuple[list[bool], list[str]]:
    """Return which attempts are held, and why the run ends."""
    reasons: list[str] = []
    first = FirstCrashes(reasons.append, watching=watching)
    return [first.holds(outcome, f"s{n % scenarios}") for n, outcome in enumerate(outcomes)], reasons


def test_a_run_whose_first_rollouts_fail_alike_ends_once() -> None:
    held, reasons = watch(*[ended(message=TRACEBACK.format(1))] * (ALIKE + 3))
    assert all(held)
    assert reasons == [
        "the first 8 rollouts all failed with one message: crash: KeyError: 'KEY'; "
        "correct the agent or what it needs"
    ]


def test_what_one_or_two_tasks_do_to_an_agent_ends_no_run() -> None:
    held, reasons = watch(*[ended()] * 30, scenarios=2)
    assert (all(held), reasons) == (True, [])


@pytest.mark.parametrize(
    "form", ["<Agent at 0x7f{0:x}a>", "no key {0} at 0x7f1{0}", "request 4bc0d{0:x}: no key"]
)
def test_numbers_make_no_other_message(form: str) -> None:
    _, reasons = watch(*(ended(message=form.format(n + 7)) for n in range(ALIKE)))
    assert len(reasons) == 1


@pytest.mark.parametrize(
    "other",
    [
        ended("ok"),
        ended(message="another"),
        ended(code="timeout", message="no key"),
        ended(code="garbage", message="no key"),
    ],
    ids=["answer", "message", "timeout", "code"],
)
@pytest.mark.parametrize("at", [0, ALIKE - 1])
def test_one_that_ends_differently_lets_the_run_go_on(other: AttemptResult, at: int) -> None:
    outcomes = [ended()] * (3 * ALIKE)
    outcomes.insert(at, other)
    held, reasons = watch(*outcomes)
    assert reasons == []
    assert held[:at] == [True] * at
    assert not any(held[at + 1 :])


def test_errors_of_the_provider_and_replays_say_nothing_of_the_agent() -> None:
    held, reasons = watch(*[ended("error", "network", "away")] * 20, ended())
    assert (held, reasons) == ([False] * 20 + [True], [])
    assert watch(*[ended()] * 20, watching=False) == ([False] * 20, [])


def test_garbage_is_wrong_everywhere_too_and_blank_lines_around_a_traceback_are_left_out() -> None:
    _, (reason,) = watch(*[ended(code="garbage", message=f"\n{TRACEBACK.format(1)}\n\n")] * ALIKE)
    assert ": garbage: KeyError: 'KEY'; correct the agent" in reason


def test_once_the_run_ends_for_it_what_fails_so_is_held_whatever_else_comes() -> None:
    held, reasons = watch(*[ended()] * ALIKE, ended("ok"), ended())
    assert (held, len(reasons)) == ([True] * ALIKE + [False, True], 1)
