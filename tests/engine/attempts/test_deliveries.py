"""What the test run delivers for rollouts, and what is missing."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pytest_tfgrpo.engine.attempts.deliveries import Deliveries, FromTests

Play = Callable[[Deliveries[int]], Awaitable[object]]


def played(play: Play) -> tuple[object, str]:
    """Return what is found of deliveries, and what they miss."""

    async def run() -> tuple[object, str]:
        deliveries: Deliveries[int] = Deliveries()
        return await asyncio.wait_for(play(deliveries), 100), deliveries.missing

    return asyncio.run(run())


async def _first_counts(deliveries: Deliveries[int]) -> object:
    deliveries.settle("r.e1.a.r0", 1)
    deliveries.settle("r.e1.a.r0", 2)
    return await deliveries.of("r.e1.a.r0")


async def _waits(deliveries: Deliveries[int]) -> object:
    waiting = asyncio.ensure_future(deliveries.of("r.e1.a.r0"))
    await asyncio.sleep(0)
    assert not waiting.done()
    deliveries.settle("r.e1.a.r0", 3)
    return await waiting


async def _another_comes(deliveries: Deliveries[int]) -> object:
    deliveries.settle("r.e1.a.r0", 1)
    deliveries.await_again("r.e1.a.r0")
    deliveries.await_again("r.e1.a.r9")
    waiting = asyncio.ensure_future(deliveries.of("r.e1.a.r0"))
    await asyncio.sleep(0)
    deliveries.settle("r.e1.a.r0", 2)
    return await waiting


async def _closed_while_waiting(deliveries: Deliveries[int]) -> object:
    waiting = [asyncio.ensure_future(deliveries.of(f"r.e{epoch}.a.r0")) for epoch in (1, 1, 2)]
    await asyncio.sleep(0)
    deliveries.close("r.e1.")
    await asyncio.sleep(0)
    assert not waiting[2].done()
    deliveries.settle("r.e2.a.r0", 2)
    return await asyncio.gather(*waiting)


async def _closed_before(deliveries: Deliveries[int]) -> object:
    deliveries.settle("r.e1.a.r0", 1)
    deliveries.close("r.e1.")
    deliveries.close("r.e2.")
    assert deliveries.missing == ""
    return [await deliveries.of(f"r.e{epoch}.a.r{n}") for epoch, n in ((1, 0), (1, 1), (2, 0))]


@pytest.mark.parametrize(
    ("play", "found", "missing"),
    [
        (_first_counts, 1, ""),
        (_waits, 3, ""),
        (_another_comes, 2, ""),
        (_closed_while_waiting, [None, None, 2], "r.e1.a.r0"),
        (_closed_before, [1, None, None], "r.e1.a.r1"),
    ],
)
def test_a_value_comes_once_or_is_missed_once_its_epoch_is_closed(
    play: Play, found: object, missing: str
) -> None:
    wanted = f"{missing}: its test function did not run" if missing else ""
    assert played(play) == (found, wanted)


@pytest.mark.parametrize("missing", ["agents", "checker_results"])
def test_no_agent_and_no_result_comes_once_the_tests_of_an_epoch_are_over(missing: str) -> None:
    async def run() -> tuple[object, str, str]:
        tests = FromTests()
        before = tests.missing
        waiting = asyncio.ensure_future(getattr(tests, missing).of("r.e1.a.r0"))
        await asyncio.sleep(0)
        tests.close("r.e1.")
        return await asyncio.wait_for(waiting, 100), before, tests.missing

    assert asyncio.run(run()) == (None, "", "r.e1.a.r0: its test function did not run")
