"""Budgets: no rollout starts that could overrun one, as far as the actor can say beforehand."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pytest_tfgrpo.core.records import Rollout

ROUNDING = 1e-9
"""Relative slack, so that sums of decimal prices reach a decimal limit."""


class Budget:
    """Money, tokens and time of a run; declared maxima of calls in flight are reserved (design 5)."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        call_bound: Mapping[str, float | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take limits from `settings` and the actor's declared maxima of one call from `call_bound`."""
        limits = {"usd": settings.get("budget_usd"), "tokens": settings.get("budget_tokens")}
        self._limits = {unit: float(limit) for unit, limit in limits.items() if limit is not None}
        self._bound = {unit: call_bound.get(unit) for unit in self._limits}
        self._spent = dict.fromkeys(self._limits, 0.0)
        self._in_flight = 0
        self._clock = clock
        seconds = settings.get("budget_s")
        self._seconds = seconds
        self._deadline = None if seconds is None else clock() + seconds
        self.exhausted: str | None = None
        """Why no further rollout may start; None while one may."""

    def admit(self) -> bool:
        """Reserve one call and return True, or return False: the budget is used up."""
        if self.exhausted is None:
            self.exhausted = self._reason()
        if self.exhausted is not None:
            return False
        self._in_flight += 1
        return True

    def _reason(self) -> str | None:
        if self._deadline is not None and self._clock() >= self._deadline:
            return f"budget_s of {self._seconds:g} s is used up"
        for unit, limit in self._limits.items():
            bound = self._bound[unit]
            reserved = (bound or 0.0) * (self._in_flight + 1)
            room = limit * (1 + ROUNDING) - self._spent[unit]
            over = reserved > room if bound else self._spent[unit] >= limit
            if over:
                return f"budget_{unit} of {limit:g} is used up ({self._spent[unit]:g} spent)"
        return None

    def settle(self) -> None:
        """End the reservation of one admitted call."""
        self._in_flight -= 1

    def spend(self, rollout: Rollout) -> None:
        """Count what a rollout used; unknown cost counts as nothing (see `warning`)."""
        if "usd" in self._spent:
            self._spent["usd"] += rollout.cost_usd or 0.0
        if "tokens" in self._spent:
            self._spent["tokens"] += rollout.tokens

    @property
    def warning(self) -> str | None:
        """Say which limits may be overshot, because the actor declares no maximum for its calls."""
        loose = [f"budget_{unit}" for unit in self._limits if self._bound[unit] is None]
        if not loose:
            return None
        return (
            f"{' and '.join(loose)}: the actor reports its use only after a call, so the limit may be "
            "overshot by what is in flight"
        )
