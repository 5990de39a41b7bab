"""A run whose sweeps become known one after another: what it holds is released."""

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.arena.bench import releasing, require_complete
from pytest_tfgrpo.core.errors import BudgetError, OutageError, RewarderError
from pytest_tfgrpo.engine.run_end import COMPLETE, RunEnd


def test_all_that_a_job_holds_is_closed_whatever_the_run_and_each_of_them_raise() -> None:
    closed: list[str] = []

    async def close(name: str) -> None:
        closed.append(name)
        raise OSError(name)

    async def use(job: Any) -> None:
        async with releasing(job):
            raise ValueError("the run broke")

    actor = SimpleNamespace(aclose=partial(close, "actor"))
    job = SimpleNamespace(actor=actor, closing=(partial(close, "judge"), partial(close, "teacher")))
    with pytest.raises(ValueError, match="the run broke"):
        asyncio.run(use(job))
    assert closed == ["actor", "judge", "teacher"]


@pytest.mark.parametrize(
    ("end", "raised"),
    [
        (RunEnd("cancelled", "interrupted"), asyncio.CancelledError),
        (RunEnd("aborted", "too slow"), RewarderError),
        (RunEnd("incomplete", "away"), OutageError),
        (RunEnd("incomplete", "spent"), BudgetError),
    ],
)
def test_what_does_not_run_to_its_end_says_why(end: RunEnd, raised: type[BaseException]) -> None:
    require_complete(COMPLETE, outage="away")
    with pytest.raises(raised) as told:
        require_complete(end, outage="away")
    assert type(told.value) is raised
    assert str(told.value) == ("" if raised is asyncio.CancelledError else end.reason)
