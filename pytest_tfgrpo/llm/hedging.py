"""Hedging: a call that takes long is sent a second time, and the answer that comes first counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.llm.protocol import Completion


async def hedged(
    ask: Callable[[], Awaitable[Completion]],
    *,
    after_s: float,
    may: Callable[[], bool],
    dropped_usd: float | None,
) -> Completion:
    """Return the first answer to `ask`, which is called again after `after_s` if it `may` be then.

    The call that is not waited for is cancelled and costs `dropped_usd`, None where that is unknown, which is
    part of the answer's cost. Raises what the first call raised when both fail.
    """
    calls = [asyncio.ensure_future(ask())]
    try:
        done, _ = await asyncio.wait(calls, timeout=after_s)
        if done or not may():
            return await calls[0]
        calls.append(asyncio.ensure_future(ask()))
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        if all(call.exception() is not None for call in calls if call.done()):
            await asyncio.wait(calls)
        answered = [call for call in calls if call.done() and call.exception() is None]
        winner = answered[0] if answered else calls[0]
        costs = [_cost(call, dropped_usd) for call in calls if call is not winner]
        return _with(await winner, costs)
    finally:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


def _cost(call: asyncio.Future[Completion], dropped_usd: float | None) -> float | None:
    """Return what the other call cost."""
    if not call.done():
        return dropped_usd
    error = call.exception()
    if error is None:
        return call.result().cost_usd
    return error.cost_usd if isinstance(error, ModelError) else 0.0


def _with(found: Completion, costs: list[float | None]) -> Completion:
    known = [cost for cost in (found.cost_usd, *costs) if cost is not None]
    return replace(found, cost_usd=sum(known) if len(known) == len(costs) + 1 else None)
