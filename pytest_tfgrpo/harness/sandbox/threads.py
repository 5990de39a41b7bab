"""Daemon threads for calls that may never return: they must not keep the process from ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def call_in_daemon(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return ``function(*args, **kwargs)``, computed in a daemon thread of its own.

    A cancelled call goes on in its thread, unheard. The thread has the context variables of its caller.
    """
    loop, context = asyncio.get_running_loop(), copy_context()
    done: asyncio.Future[T] = loop.create_future()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def target() -> None:
        try:
            result, error = context.run(function, *args, **kwargs), None
        except BaseException as caught:  # noqa: BLE001 - delivered to the caller
            result, error = None, caught
        try:
            loop.call_soon_threadsafe(deliver, result, error)
        except RuntimeError:  # the loop has ended; nobody waits any more
            return

    threading.Thread(
        target=target, daemon=True, name=f"tfgrpo-{getattr(function, '__name__', 'call')}"
    ).start()
    return await done
