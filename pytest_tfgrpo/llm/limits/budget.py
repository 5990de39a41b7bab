"""Budgets: no call starts that could exceed one, as far as its maximum is known beforehand.

A call that does not fit beside those in flight waits for them: only one that does not fit alone is refused.
Who waits is served in the order in which rollouts began, so that the last of the money finishes what is under
way.
"""

from __future__ import annotations

import asyncio
import time
from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from itertools import count

from pytest_tfgrpo.core.errors import BudgetError, SettingError
from pytest_tfgrpo.core.records import ModelCall, Rollout
from pytest_tfgrpo.core.settings.runs import BUDGET_S, BUDGET_TOKENS, BUDGET_USD
from pytest_tfgrpo.core.texts.text import line, money
from pytest_tfgrpo.llm.limits.queueing import current_ticket
from pytest_tfgrpo.llm.protocol import Completer, Message, Request

SHORTEST = Request(messages=(Message(role="user", content=""),), temperature=0.0)
"""No call of a run can use less than this one."""

ROUNDING = 1e-9
"""Relative slack, so that sums of decimal prices reach a decimal limit."""


class _State:
    """What all who share a budget have in common, beside its sums."""

    def __init__(self, deadline: float | None) -> None:
        self.in_flight = 0
        self.deadline = deadline
        self.exhausted: str | None = None


class Budget:
    """Money, tokens and time of a run; declared maxima of calls in flight are reserved.

    It serves two kinds of spenders: rollouts of actors that report what they used at their end (`admit`,
    `release`, `spend`), and model calls, each by itself (`reserve`, `settle`). Used on the event loop only.
    """

    def __init__(
        self,
        settings: Mapping[str, object],
        call_bound: Mapping[str, float | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take limits from `settings`; `call_bound` has the declared maxima of one rollout."""
        limits = {"usd": BUDGET_USD.of(settings), "tokens": BUDGET_TOKENS.of(settings)}
        self._limits = {unit: float(limit) for unit, limit in limits.items() if limit is not None}
        self._bound = {unit: (call_bound or {}).get(unit) for unit in self._limits}
        self._spent = dict.fromkeys(self._limits, 0.0)
        self._reserved = dict.fromkeys(self._limits, 0.0)
        self._arrivals = count()
        self._queue: list[tuple[int, int]] = []
        """Who waits for room, next one first: place of the rollout, then time of arrival."""
        self._bells: dict[tuple[int, int], asyncio.Future[None]] = {}
        self._clock = clock
        self._seconds = BUDGET_S.of(settings)
        self._state = _State(None if self._seconds is None else clock() + self._seconds)

    def share(self) -> Budget:
        """Return this budget for another run on the same event loop: whatever one spends, both have spent."""
        other = copy(self)
        other.begin({})
        return other

    @property
    def exhausted(self) -> str | None:
        """Why no further call may start; None while one may."""
        return self._state.exhausted

    def begin(self, call_bound: Mapping[str, float | None]) -> None:
        """Say that the run starts now, with rollouts of these declared maxima."""
        self._bound = {unit: call_bound.get(unit) for unit in self._limits}
        if self._seconds is not None:
            self._state.deadline = self._clock() + self._seconds

    async def admit(self) -> bool:
        """Reserve one rollout and return True, or return False: the budget is used up."""
        try:
            await self.reserve(self._bound)
        except BudgetError:
            return False
        return True

    def release(self) -> None:
        """End the reservation of one admitted rollout."""
        self._free(self._bound)

    def spend(self, rollout: Rollout) -> None:
        """Count what a rollout used; unknown cost counts as the declared maximum, if there is one."""
        self._count("usd", rollout.cost_usd, self._bound)
        self._count("tokens", rollout.tokens, self._bound)

    def spend_all(self, *, usd: float, tokens: int, unknown: int) -> None:
        """Count what many rollouts of an interrupted run used, `unknown` of which at an unknown cost."""
        self._count("usd", usd + unknown * (self._bound.get("usd") or 0.0), {})
        self._count("tokens", tokens, {})

    def spend_call(self, call: ModelCall) -> None:
        """Count what a model call of an interrupted run used."""
        self._count("usd", call.cost_usd, {})
        self._count("tokens", call.tokens, {})

    async def reserve(self, bound: Mapping[str, float | None]) -> None:
        """Set aside the most that a call can use, once it fits; raises BudgetError when it never will."""
        ticket = current_ticket()
        number = (ticket.place, next(self._arrivals))
        if not self._is_served(number, bound):
            insort(self._queue, number)
            try:
                with ticket.waiting():
                    while not self._is_served(number, bound):
                        bell = self._bells[number] = asyncio.get_running_loop().create_future()
                        await bell
            finally:
                self._queue.remove(number)
                self._bells.pop(number, None)
                self._call_next()
        if self.exhausted is not None:
            raise BudgetError(self.exhausted)
        self._state.in_flight += 1
        for unit in self._limits:
            self._reserved[unit] += bound.get(unit) or 0.0

    def settle(self, bound: Mapping[str, float | None], *, usd: float | None, tokens: int | None) -> None:
        """End the reservation of `bound` and count what was used; None counts as the whole of it."""
        self._count("usd", usd, bound)
        self._count("tokens", tokens, bound)
        self._free(bound)

    def _is_served(self, number: tuple[int, int], bound: Mapping[str, float | None]) -> bool:
        """Return whether a call need not wait: it has room and nobody before it, or will never have any."""
        if self.exhausted is not None:
            return True
        if self._queue and self._queue[0] < number:
            return False
        reason = self._against(bound)
        if reason is not None and (not self._state.in_flight or self._final()):
            self._state.exhausted = reason
        return reason is None or self.exhausted is not None

    def _call_next(self) -> None:
        """Let the first in the queue look again whether it is served."""
        if self._queue and not (bell := self._bells[self._queue[0]]).done():
            bell.set_result(None)

    def _free(self, bound: Mapping[str, float | None]) -> None:
        self._state.in_flight -= 1
        for unit in self._limits:
            self._reserved[unit] -= bound.get(unit) or 0.0
        self._call_next()

    def _count(self, unit: str, used: float | None, bound: Mapping[str, float | None]) -> None:
        if unit in self._spent:
            self._spent[unit] += used if used is not None else bound.get(unit) or 0.0

    @property
    def limits(self) -> dict[str, tuple[float, float]]:
        """Return of each limit, by unit, what is spent and what is allowed."""
        known = {unit: (self._spent[unit], limit) for unit, limit in self._limits.items()}
        if self._seconds is not None and self._state.deadline is not None:
            known["s"] = (self._seconds - (self._state.deadline - self._clock()), self._seconds)
        return known

    def _late(self) -> bool:
        return self._state.deadline is not None and self._clock() >= self._state.deadline

    def _final(self) -> bool:
        """Return whether no end of a call in flight can make room any more."""
        return self._late() or any(self._spent[unit] >= limit for unit, limit in self._limits.items())

    def _against(self, bound: Mapping[str, float | None]) -> str | None:
        """Return why a call of `bound` may not start now."""
        if self._late():
            return f"budget_s of {self._seconds:g} s is used up"
        for unit, limit in self._limits.items():
            most, spent = bound.get(unit), self._spent[unit]
            room = limit * (1 + ROUNDING) - spent - self._reserved[unit]
            if most is not None and most > 0 and most > room:
                more = f", and the next call may use {most:g}" if spent < limit else ""
                return f"budget_{unit} of {limit:g} is used up ({spent:g} spent{more})"
            if not most and spent >= limit and (spent or limit):  # what is free fits into a budget of 0
                return f"budget_{unit} of {limit:g} is used up ({spent:g} spent)"
        return None

    @property
    def warning(self) -> str | None:
        """Return which limits may be exceeded, because the actor declares no maximum for its calls."""
        loose = [f"budget_{unit}" for unit in self._limits if self._bound[unit] is None]
        if not loose:
            return None
        return (
            f"{' and '.join(loose)}: the actor reports its use only after a call, so calls in "
            "flight may exceed the limit"
        )


def require_affordable(models: Iterable[Completer], settings: Mapping[str, object]) -> None:
    """Raise SettingError where a budget cannot be kept: a price is unknown, or one call may use more."""
    for model in models:
        if model.paid:
            bound = model.bound(SHORTEST)
            _require_price(model, bound["usd"], settings)
            _require_room(model, bound["tokens"], settings)


def _require_price(model: Completer, usd: float | None, settings: Mapping[str, object]) -> None:
    budget = BUDGET_USD.of(settings)
    if budget is None:
        return
    if usd is None:
        name = line(model.name, 200).partition(":")[2]
        raise SettingError(
            f"budget_usd is {budget:g}, but the price of {name!r} is unknown, so it cannot be enforced; add "
            "it to the file of the setting models, in US dollars per million tokens "
            f"(prices: {{{name!r}: {{input: 2.5, output: 10}}}}), or set budget_tokens instead"
        )
    if usd > budget:
        raise SettingError(
            f"budget_usd is {budget:g}, but one call of {line(model.name, 200)!r} may cost {money(usd)}; "
            "raise it, or lower max_tokens"
        )


def _require_room(model: Completer, tokens: float | None, settings: Mapping[str, object]) -> None:
    budget = BUDGET_TOKENS.of(settings)
    if budget is not None and tokens is not None and tokens > budget:
        raise SettingError(
            f"budget_tokens is {budget}, but one call of {line(model.name, 200)!r} may use {tokens:g}; "
            "raise it, or lower max_tokens"
        )
