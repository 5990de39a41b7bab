"""Daemon threads for calls that may never return: they must not keep the process from ending."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

from pytest_tfgrpo.core.python.threads import start_thread

P = ParamSpec("P")
T = TypeVar("T")


async def call_in_daemon(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return ``function(*args, **kwargs)``, computed in a daemon thread of its own.

    A cancelled call goes on in its thread, unheard. The thread has the context variables of its caller.
    """
    done, target = _delivering(function, *args, **kwargs)
    name = f"tfgrpo-{getattr(function, '__name__', 'call')}"
    start_thread(lambda: target()(), name)
    return await done


class DaemonThreads:
    """Daemon threads that carry out one short call after the other, as starting a thread takes longer.

    One whose call does not return is left to itself, and another takes its place. Used on one event loop.
    """

    def __init__(self, name: str) -> None:
        """No thread runs before the first call."""
        self._name = name
        self._idle: list[SimpleQueue[Callable[[], Callable[[], None]] | None]] = []
        self._closed = False

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return ``function(*args, **kwargs)``, computed in one of the threads; see `call_in_daemon`."""
        done, target = _delivering(function, *args, **kwargs)
        (self._idle.pop() if self._idle else self._start()).put(target)
        return await done

    def close(self) -> None:
        """Let each thread end, those that are busy once their call returns."""
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)

    def _start(self) -> SimpleQueue[Callable[[], Callable[[], None]] | None]:
        calls: SimpleQueue[Callable[[], Callable[[], None]] | None] = SimpleQueue()

        def work() -> None:
            while (target := calls.get()) is not None:
                tell = target()
                self._idle.append(calls)  # before its caller can make the next call
                tell()
                del target, tell  # and what they hold
                if self._closed:
                    self.close()

        start_thread(work, self._name)
        return calls


def _delivering(
    function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> tuple[asyncio.Future[T], Callable[[], Callable[[], None]]]:
    """Return a future, and what makes the call on any thread and returns what sets the future."""
    loop, context = asyncio.get_running_loop(), copy_context()
    done: asyncio.Future[T] = loop.create_future()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def tell(result: T | None, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop has ended; nobody waits any more
            loop.call_soon_threadsafe(deliver, result, error)

    def target() -> Callable[[], None]:
        try:
            return partial(tell, context.run(function, *args, **kwargs), None)
        except BaseException as caught:  # noqa: BLE001 - delivered to the caller
            return partial(tell, None, caught)

    return done, target
