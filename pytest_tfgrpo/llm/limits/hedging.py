"""Hedging: a call that takes long is sent a second time, and the answer that comes first counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.core.texts.text import money, plural
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.llm.protocol import Completion


@dataclass(slots=True)
class Hedges:
    """Calls of one model that were sent a second time."""

    count: int = 0
    answers_usd: float = 0.0
    """Of answers whose other call was cancelled, as far as it is known: no sum of costs has it."""
    prompts_usd: float = 0.0
    """Of the prompts of those other calls; what a model had written until then nobody counts."""
    cancelled: int = 0

    def dropped(self, answer: Completion, price: Price | None) -> None:
        """Note that a call was cancelled that had the prompt of `answer`, at an unknown cost."""
        self.cancelled += 1
        self.answers_usd += answer.cost_usd or 0.0
        if price is not None and answer.usage is not None:
            self.prompts_usd += price.cost(Usage(prompt=answer.usage.prompt, completion=0))

    def warning(self, after_s: float) -> str:
        """Return what to say of them."""
        told = (
            f"{plural(self.count, 'call', 'was', 'were')} sent a second time after {after_s:g} s "
            "(hedge_after_s); one answer counts, both are paid for"
        )
        if not self.cancelled:
            return told
        calls = plural(self.cancelled, "cancelled call")
        told += f". Costs are a lower bound: no server says what {calls} used"
        if not self.answers_usd:
            return told
        return (
            f"{told}; sums leave out {money(self.answers_usd)} for the answers that came instead, about "
            f"{money(self.prompts_usd)} for the prompts that were sent twice, and what was written until then"
        )


async def hedged(
    ask: Callable[[], Awaitable[Completion]],
    *,
    after_s: float,
    may: Callable[[], bool],
    dropped: Callable[[Completion], float | None],
) -> Completion:
    """Return the first answer of `ask`, which is called again after `after_s` if it `may` be then.

    The call that is not waited for is cancelled and costs what `dropped` says of the answer, None where that
    is unknown, which is part of the answer's cost. Raises what the first call raised when both fail.
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
        found = await winner
        costs = [_cost(call) if call.done() else dropped(found) for call in calls if call is not winner]
        return _with(found, costs)
    finally:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


def _cost(call: asyncio.Future[Completion]) -> float | None:
    """Return what the other call cost, which is done."""
    error = call.exception()
    if error is None:
        return call.result().cost_usd
    return error.cost_usd if isinstance(error, ModelError) else 0.0


def _with(found: Completion, costs: list[float | None]) -> Completion:
    known = [cost for cost in (found.cost_usd, *costs) if cost is not None]
    return replace(found, cost_usd=sum(known) if len(known) == len(costs) + 1 else None)
