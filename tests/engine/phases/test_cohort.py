"""What a cohort tells of rollouts that it does not make."""

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_rollout

from pytest_tfgrpo.core.errors import RecordingError, RewarderError
from pytest_tfgrpo.engine.observers import RefusedRollout
from pytest_tfgrpo.engine.phases.cohort import Cohort, carry_out
from pytest_tfgrpo.engine.run_end import COMPLETE, RunEnd


@pytest.mark.parametrize(
    ("spent", "away", "reason"),
    [("max_usd is used up", "", "max_usd is used up"), ("", "5 errors in a row", "5 errors in a row")],
)
def test_a_refused_rollout_says_what_refused_it(spent: str, away: str, reason: str) -> None:
    told: list[Any] = []
    cohort: Any = Cohort.__new__(Cohort)
    cohort._context = SimpleNamespace(
        job=SimpleNamespace(budget=SimpleNamespace(exhausted=spent)),
        breaker=SimpleNamespace(reason=away),
        observe=told.append,
    )
    for checker in ("test_a.py::test_x", None):
        scenario = SimpleNamespace(checker=checker)
        cohort._refuse(SimpleNamespace(rollout_id="r", question=SimpleNamespace(scenario=scenario)))
    assert told == [RefusedRollout(rollout_id="r", reason=reason)]


@pytest.mark.parametrize(
    ("raises", "reasons", "end"),
    [
        (None, ("", "", ""), COMPLETE),
        (None, ("spent", "away", "no test ran"), RunEnd("incomplete", "spent")),
        (None, ("", "away", "no test ran"), RunEnd("incomplete", "away")),
        (None, ("", "", "no test ran"), RunEnd("incomplete", "no test ran")),
        (RewarderError("too slow"), ("spent", "", ""), RunEnd("aborted", "too slow")),
        (RecordingError("it lacks one"), ("", "", ""), RunEnd("aborted", "it lacks one")),
        (asyncio.CancelledError(), ("", "", ""), RunEnd("cancelled", "interrupted")),
    ],
)
def test_a_cohort_ends_for_the_first_reason_that_there_is(
    raises: BaseException | None, reasons: tuple[str, str, str], end: RunEnd
) -> None:
    async def run() -> None:
        if raises is not None:
            raise raises

    spent, away, missing = reasons
    context: Any = SimpleNamespace(
        job=SimpleNamespace(budget=SimpleNamespace(exhausted=spent)),
        breaker=SimpleNamespace(reason=away),
        tests=SimpleNamespace(missing=missing),
        writer=SimpleNamespace(committing=nullcontext),
    )
    cohort: Any = SimpleNamespace(run=run)
    assert asyncio.run(carry_out(cohort, context)) == end


def test_only_what_another_phase_paid_for_is_a_stray() -> None:
    cohort: Any = Cohort.__new__(Cohort)
    rollouts = [make_rollout(n, epoch=epoch) for n, epoch in enumerate((1, 2, 1))]
    cohort._phases = (SimpleNamespace(epoch=2),)
    cohort.ledger = SimpleNamespace(abandoned=rollouts)
    assert [rollout.index for rollout in cohort.strays(1)] == [0, 2]
    assert (cohort.strays(2), cohort.strays(3)) == ((), ())
