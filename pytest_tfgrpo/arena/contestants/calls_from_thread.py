"""Work of a synchronous library, in a thread of its own, whose calls are made on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

from pytest_tfgrpo.core.python.threads import start_thread

T = TypeVar("T")
R = TypeVar("R")


class CallsEnded(BaseException):
    """No call is made any more: the thread has to end, past every ``except Exception`` of a library."""


class _Request(Generic[T]):
    """One call that the thread waits for."""

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self.answer: Future[T] = Future()

    async def run(self) -> None:
        """Make the call; what it raises is the caller's."""
        self.answer.set_result(await self._make())


class LoopCalls:
    """Makes calls on an event loop, for a thread that waits for each."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._requests: asyncio.Queue[_Request[Any] | None] = asyncio.Queue()

    def __call__(self, make: Callable[[], Awaitable[R]]) -> R:
        """Return what `make` returns on the loop; in the thread alone. Raises CallsEnded."""
        request = _Request(make)
        self._put(request)
        return request.answer.result()

    def end(self) -> None:
        """Say that the thread calls no more."""
        with suppress(RuntimeError):  # nobody waits: the loop has been closed
            self._put(None)

    async def serve(self) -> None:
        """Make calls until the thread ends; raises what the first failed call raised, or CancelledError.

        From then on no call is made, but it waits for the thread, so that nothing of it outlives the caller.
        """
        failure: BaseException | None = None
        request: _Request[Any] | None = None
        while True:
            try:
                request = await self._requests.get()
                if request is None:
                    break
                if failure is None:
                    await request.run()
                    continue
            except BaseException as error:  # noqa: BLE001 - raised once the thread has ended
                failure = failure or error
            if request is not None and not request.answer.done():
                request.answer.set_exception(CallsEnded())
        if failure is not None:
            raise failure

    def _put(self, request: _Request[Any] | None) -> None:
        self._loop.call_soon_threadsafe(self._requests.put_nowait, request)


async def run_in_thread(work: Callable[[LoopCalls], T], name: str) -> T:
    """Return what `work` returns in a thread of a name; the calls that it makes run here, one at a time.

    Raises what `work` raises, and what a call raises, which ends the work, too; cancelled, it ends likewise.
    """
    calls = LoopCalls()
    outcome: Future[T] = Future()

    def target() -> None:
        try:
            outcome.set_result(work(calls))
        except BaseException as error:  # noqa: BLE001 - passed to the caller's thread
            outcome.set_exception(error)
        finally:
            calls.end()

    thread = start_thread(target, name)
    try:
        await calls.serve()
    finally:
        thread.join()  # at once: that it calls no more was the last thing it did
    return outcome.result()
