"""Daemon threads: calls that may never return keep nothing from going on."""

import asyncio
import threading
import time
from collections.abc import Awaitable
from contextvars import ContextVar

import pytest

from pytest_tfgrpo.sandbox.programs.threads import DaemonThreads, call_in_daemon

NAME = "tfgrpo-test-threads"
WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


def alive() -> int:
    return sum(thread.name == NAME for thread in threading.enumerate())


def gone(left: int = 0) -> bool:
    """Wait until only so many threads are `left`."""
    return any(alive() == left or time.sleep(0.01) for _ in range(10_000))


def test_calls_one_after_the_other_share_a_thread() -> None:
    async def main() -> set[int]:
        threads = DaemonThreads(NAME)
        found = {await threads.call(threading.get_ident) for _ in range(50)}
        threads.close()
        return found

    assert len(asyncio.run(main())) == 1
    assert gone()


def test_calls_at_once_have_threads_of_their_own() -> None:
    barrier = threading.Barrier(4)

    async def main() -> list[int]:
        threads = DaemonThreads(NAME)
        found = await asyncio.gather(*(threads.call(barrier.wait, 100.0) for _ in range(4)))
        threads.close()
        return found

    assert sorted(asyncio.run(main())) == [0, 1, 2, 3]
    assert gone()


def test_a_call_that_hangs_is_left_to_itself_and_ends_when_it_returns() -> None:
    hanging = threading.Event()

    async def main() -> str:
        threads = DaemonThreads(NAME)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await threads.call(hanging.wait, 100.0)
        found = await threads.call(str.upper, "on")
        threads.close()
        return found

    assert asyncio.run(main()) == "ON"
    assert gone(left=1)
    hanging.set()
    assert gone()


@pytest.mark.parametrize("shared", [True, False])
def test_a_call_raises_what_its_function_raises_and_has_its_callers_context(shared: bool) -> None:
    async def main() -> tuple[str, str]:
        threads = DaemonThreads(NAME)

        def call(function: object) -> Awaitable[str]:
            return threads.call(function) if shared else call_in_daemon(function)  # type: ignore[arg-type]

        with pytest.raises(ZeroDivisionError):
            await call(lambda: 1 // 0)
        WHO.set("me")
        first = await call(WHO.get)
        WHO.set("you")
        second = await call(WHO.get)
        threads.close()
        return first, second

    assert asyncio.run(main()) == ("me", "you")


def test_a_call_that_nobody_waits_for_any_more_disturbs_nobody() -> None:
    going, told = threading.Event(), list[dict[str, object]]()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
        call = asyncio.ensure_future(call_in_daemon(going.wait, 100.0))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        going.set()
        while any(thread.name == "tfgrpo-wait" for thread in threading.enumerate()):
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert told == []
