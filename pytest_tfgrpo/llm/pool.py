"""Pools: one model at several endpoints, by weight, a breaker each; what fails at one goes to another."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_tfgrpo.core.errors import AWAY, BudgetError, ModelError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.completer import ChatCompleter
from pytest_tfgrpo.llm.limits.pace import Pace
from pytest_tfgrpo.llm.model_call import BUDGET
from pytest_tfgrpo.llm.protocol import Completion, Request
from pytest_tfgrpo.retry import backoff_s

IN_A_ROW = 3
"""Failures in a row after which a member is left alone."""
LASTING = frozenset({"auth", "not_found"})
"""Reason codes of failures of which one is enough."""
REST_S, REST_MOST_S = 1.0, 30.0
"""How long a member is left alone; it doubles each time that it fails again."""


@dataclass(slots=True)
class PoolMember:
    """An endpoint of a pool, with its breaker."""

    completer: ChatCompleter
    weight: int
    retries: int
    timeout_s: float
    in_flight: int = 0
    calls: int = 0
    failed: int = 0
    """Calls that it did not answer, in all."""
    last: str = ""
    """How it failed last."""
    in_a_row: int = 0
    rests: int = 0
    """How often it was left alone since it last answered."""
    closed_until: float = 0.0

    def is_ready(self, now: float) -> bool:
        """Return whether it may be called: after a rest, by one call that finds out."""
        return now >= self.closed_until and not (self.rests and self.in_flight)

    def take(self, error: ModelError, now: float) -> None:
        """Count a failure; leave the member alone where there are too many."""
        self.failed, self.in_a_row, self.last = self.failed + 1, self.in_a_row + 1, str(error)
        if self.rests or self.in_a_row >= IN_A_ROW or error.code in LASTING:
            rest_s = backoff_s(self.rests, REST_S, REST_MOST_S)
            self.closed_until, self.rests = max(self.closed_until, now + rest_s), self.rests + 1

    def work(self) -> None:
        """Count an answer."""
        self.in_a_row = self.rests = 0
        self.closed_until = 0.0


class PooledCompleter:
    """A language model at several endpoints."""

    def __init__(
        self, name: str, model: str, members: Sequence[PoolMember], pace: Pace, *, alike: bool = False
    ) -> None:
        """`members` make no further attempts of their own; if `alike`, they are no part of its identity."""
        completers = [member.completer for member in members]
        self.name = name
        self.paid = any(completer.paid for completer in completers)
        prices = [completer.price for completer in completers]
        self.price = prices[0] if all(price == prices[0] for price in prices) else None
        """What its tokens cost; None when that is unknown or differs."""
        numbers = [completer.concurrency for completer in completers]
        known = [number for number in numbers if number is not None]
        self.concurrency: int | None = sum(known) if len(known) == len(numbers) else None
        self.adaptive = tuple(slots for completer in completers for slots in completer.adaptive)
        identities = sorted((dict(completer.identity) for completer in completers), key=json.dumps)
        self.identity: Mapping[str, Json] = {"model": model, "pool": "alike" if alike else identities}
        self.members = tuple(members)
        self._retries = max(member.retries for member in members)
        self._timeout_s = max(member.timeout_s for member in members)
        self._pace = pace

    def __repr__(self) -> str:
        return f"PooledCompleter({self.name!r})"

    @property
    def warnings(self) -> list[str]:
        """What to say of members that failed."""
        return [
            f"{self.name}: endpoint {member.completer.endpoint!r} did not answer {member.failed} of "
            f"{plural(member.calls, 'call')}, which went to another; the last one: {line(member.last, 200)}"
            for member in self.members
            if member.failed
        ] + [text for member in self.members for text in member.completer.warnings]

    def bound(self, request: Request) -> Mapping[str, float | None]:
        """Return the most that one attempt at `request` can use, at any member."""
        bounds = [member.completer.bound(request) for member in self.members]
        return {unit: _most(bound[unit] for bound in bounds) for unit in ("usd", "tokens")}

    async def complete(self, request: Request) -> Completion:
        """Make one call, at other members after a failure; raises ModelError and BudgetError."""
        clock = self._pace.clock
        limit_s = min(request.timeout_s or math.inf, self._timeout_s)
        left_s, failures, tried = limit_s, list[ModelError](), list[PoolMember]()
        while True:
            member = self._choose(tried)
            try:
                found = await self._ask(member, replace(request, timeout_s=left_s))
            except BudgetError as error:
                if not failures or _cost(failures) == 0:
                    raise
                text = f"{self.name}: {error}; an earlier attempt may have been billed"
                raise ModelError(text, BUDGET, cost_usd=_cost(failures)) from error
            except ModelError as error:
                failures.append(error)
                tried = [*tried, member]
                wait_s = 0.0
                if len(tried) >= len(self.members):
                    tried, wait_s = [], self._pace.backoff_s(len(failures) // len(self.members) - 1)
                if not self._goes_on(failures, left_s - wait_s):
                    raise self._given_up(failures) from error
                if wait_s:
                    began = clock()
                    await self._pace.sleep(wait_s)
                    left_s -= clock() - began
            else:
                if not failures:
                    return found
                costs = _cost(failures)
                usd = None if costs is None or found.cost_usd is None else costs + found.cost_usd
                return replace(found, cost_usd=usd, retries=found.retries + len(failures))

    async def _ask(self, member: PoolMember, request: Request) -> Completion:
        """Call one member, and record in its breaker how that went."""
        member.in_flight += 1
        member.calls += 1
        try:
            found = await member.completer.complete(request)
        except ModelError as error:
            if error.code in AWAY:
                member.take(error, self._pace.clock())
            raise
        finally:
            member.in_flight -= 1
        member.work()
        return found

    def _choose(self, tried: Sequence[PoolMember]) -> PoolMember:
        """Return the member with the least to do for its weight; of those left alone the first to be back."""
        now = self._pace.clock()
        fresh = [member for member in self.members if all(member is not one for one in tried)]
        ready = [member for member in fresh if member.is_ready(now)]
        if not ready:
            return min(fresh, key=lambda member: member.closed_until)
        return min(ready, key=lambda one: (one.in_flight / one.weight, one.calls / one.weight))

    def _goes_on(self, failures: Sequence[ModelError], left_s: float) -> bool:
        last = failures[-1]
        rounds = len(failures) / len(self.members)
        return last.code in AWAY and last.code != "timeout" and rounds < self._retries + 1 and left_s > 0

    def _given_up(self, failures: Sequence[ModelError]) -> ModelError:
        last = failures[-1]
        text = str(last) if len(failures) == 1 else f"{last} ({plural(len(failures), 'attempt')} in the pool)"
        return ModelError(f"{self.name}: {text}", last.code, cost_usd=_cost(failures))


def _most(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else max(value for value in known if value is not None)


def _cost(failures: Iterable[ModelError]) -> float | None:
    costs = [error.cost_usd for error in failures]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
