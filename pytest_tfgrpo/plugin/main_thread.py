"""Calls that one thread hands to another: an agent that fixtures make runs on pytest's thread."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest

ENDS = (KeyboardInterrupt, pytest.exit.Exception)
"""What ends pytest, whoever raises it."""


class MainThreadCall:
    """A call that waits for pytest's thread; made on the engine's."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[Any] = self._loop.create_future()

    def make(self) -> None:
        """Make the call, on pytest's thread, unless nobody waits any more.

        What ends pytest is raised here, and says nothing of the agent; all else is raised there.
        """
        if self.result.done():
            return
        try:
            value, error = _awaited(self._function()), None
        except ENDS:
            raise
        except BaseException as raised:  # noqa: BLE001 - an agent may raise anything, skips included
            value, error = None, raised
        self._settle(value, error)

    def _settle(self, value: object, error: BaseException | None) -> None:
        def settle() -> None:
            if self.result.done():  # its time limit has ended it
                return
            if error is None:
                self.result.set_result(value)
            else:
                self.result.set_exception(error)

        try:
            self._loop.call_soon_threadsafe(settle)
        except RuntimeError:  # the run has ended meanwhile, and its loop with it
            return


def _awaited(value: object) -> Any:
    """Return what a coroutine returns, on the loop of async fixtures where there is one."""
    if not inspect.isawaitable(value):
        return value
    loop = _loop_of_fixtures()
    return asyncio.run(_result_of(value)) if loop is None else loop.run_until_complete(_result_of(value))


def _loop_of_fixtures() -> asyncio.AbstractEventLoop | None:
    """Return the loop that a fixture set for this thread; None where there is none, and none is made."""

    def refuse() -> asyncio.AbstractEventLoop:
        raise RuntimeError("no loop is set")  # one made here would never be closed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        policy = asyncio.get_event_loop_policy()
        policy.new_event_loop = refuse  # type: ignore[method-assign]
        try:
            loop = policy.get_event_loop()
        except RuntimeError:
            return None
        finally:
            del policy.new_event_loop
    return None if loop.is_closed() else loop


async def _result_of(value: Any) -> Any:
    return await value
