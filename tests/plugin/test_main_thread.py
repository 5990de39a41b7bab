"""Calls that the engine's thread hands to pytest's."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pytest_tfgrpo.plugin.main_thread import MainThreadCall


def made(function: Callable[[], Any]) -> Any:
    """Return what a call comes to whose maker waits for it on a loop, while the test's thread makes it."""

    async def wait() -> Any:
        call = MainThreadCall(function)
        making = asyncio.create_task(asyncio.to_thread(call.make))
        try:
            return await call.result
        finally:
            await making

    return asyncio.run(wait())


async def later() -> str:
    await asyncio.sleep(0)
    return "later"


@pytest.mark.parametrize(
    ("function", "value"), [(lambda: "now", "now"), (later, "later"), (lambda: None, None)]
)
def test_the_value_comes_back_to_who_waits(function: Callable[[], Any], value: object) -> None:
    assert made(function) == value


@pytest.mark.parametrize("error", [ValueError("no"), pytest.skip.Exception("no"), SystemExit("no")])
def test_what_an_agent_raises_is_raised_where_it_is_waited_for(error: BaseException) -> None:
    def agent() -> None:
        raise error

    with pytest.raises(type(error), match="no"):
        made(agent)


@pytest.mark.parametrize("end", [KeyboardInterrupt(), pytest.exit.Exception("enough")])
def test_what_ends_pytest_is_raised_on_its_own_thread_and_is_no_result(end: BaseException) -> None:
    def agent() -> None:
        raise end

    async def wait() -> bool:
        call = MainThreadCall(agent)
        with pytest.raises(type(end)):
            call.make()
        await asyncio.sleep(0)
        return call.result.done()

    assert asyncio.run(wait()) is False


def test_a_call_that_nobody_waits_for_any_more_is_not_made_and_a_loop_that_has_ended_is_no_error() -> None:
    calls: list[str] = []

    async def give_up() -> tuple[MainThreadCall, MainThreadCall]:
        cancelled, late = (MainThreadCall(lambda: calls.append("made")) for _ in range(2))
        cancelled.result.cancel()
        return cancelled, late

    cancelled, late = asyncio.run(give_up())
    cancelled.make()
    assert calls == []
    late.make()
    assert calls == ["made"]
