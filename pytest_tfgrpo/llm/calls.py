"""Calls: the model calls of a run besides rollouts, journaled before anything depends on them.

A resumed run takes the answers that it has already paid for from its journal.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from pytest_tfgrpo.core.errors import AWAY, ModelError, OutageError
from pytest_tfgrpo.core.python.clock import elapsed_ms, utc_now
from pytest_tfgrpo.core.records import ModelCall
from pytest_tfgrpo.llm.fingerprint import fingerprint, text_of
from pytest_tfgrpo.llm.limits import patience
from pytest_tfgrpo.llm.protocol import Completer, Completion, Finish, Message, Request
from pytest_tfgrpo.privacy.redact import redact

HELLO = Request(
    messages=(
        Message(role="system", content="This call finds out whether you can be reached."),
        Message(role="user", content="Answer with the word: ok"),
    ),
    temperature=0.0,
)
"""The first call of a model that a run uses only later, and what finds out whether it is back."""
TRIES_AGAIN = 1
"""How often a call is made again whose model was away, as it seemed."""


class Calls:
    """Makes the calls of one run; used on the event loop only.

    Secrets are taken out of an answer before anything depends on it, so that it is the same when it is read
    back from the journal.
    """

    def __init__(
        self,
        write: Callable[[ModelCall], None],
        recorded: Mapping[str, ModelCall],
        tell: patience.Tell | None = None,
    ) -> None:
        """`write` journals a call; `recorded` has those of an interrupted run by key.

        `tell` takes notices of pauses; without it no call waits for a server that is away.
        """
        self._tell = tell
        self._answered_at: dict[str, float] = {}
        """When the last call of each model began that was answered, by the loop's clock."""
        self._given_up_at: dict[str, float] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._write = write
        self._recorded = recorded
        self._made = dict(recorded)
        self.in_flight: Counter[str] = Counter()
        """Calls that wait for their answer, by purpose."""
        self.answered = 0
        self.spent_usd = 0.0

    def of(self, epoch: int) -> tuple[ModelCall, ...]:
        """Return the calls of an epoch, also those that failed, sorted by key."""
        return tuple(self._made[key] for key in sorted(self._made) if self._made[key].epoch == epoch)

    async def complete(
        self,
        completer: Completer,
        request: Request,
        *,
        key: str,
        purpose: str,
        epoch: int,
        subject: str = "",
    ) -> Completion:
        """Call `completer`; the answer is journaled under `key`, which must be unique in the run.

        Raises ModelError when there is no usable answer, which is journaled too, OutageError when the
        model's server stays away, and BudgetError when the call was not made.
        """
        stamp = fingerprint(completer, request)
        known = self._recorded.get(key)
        if known is not None and known.fingerprint == stamp and known.error is None:
            return _completion(known)
        started_at, started = utc_now(), time.perf_counter()
        answer, error = Completion(text=""), None
        try:
            answer = await self._counted(purpose, self._ask(completer, request))
        except ModelError as caught:
            error = caught
        self.answered += 1
        call = ModelCall(
            key=key,
            purpose=purpose,
            epoch=epoch,
            subject=subject,
            model=completer.name,
            fingerprint=stamp,
            prompt=redact(text_of(request)),
            answer=answer.text,
            usage=answer.usage,
            cost_usd=answer.cost_usd if error is None else error.cost_usd,
            latency_ms=answer.latency_ms or elapsed_ms(started),
            finish=answer.finish if error is None else "",
            error=None if error is None else redact(f"{error.code}: {error}"),
            started_at=started_at,
        )
        self._write(call)
        self.spent_usd += call.cost_usd or 0.0
        self._made[key] = call
        if error is not None:
            raise error
        return answer

    async def _counted(self, purpose: str, asked: Awaitable[Completion]) -> Completion:
        """Return an answer without secrets; it counts as in flight until it is there."""
        self.in_flight[purpose] += 1
        try:
            answer = await asked
            return replace(answer, text=redact(answer.text))
        finally:
            self.in_flight[purpose] -= 1

    async def _ask(self, completer: Completer, request: Request) -> Completion:
        """Call, and call once again after an error that the server's being away may explain.

        Its cost is that of all calls. Raises ModelError, OutageError and BudgetError.
        """
        clock, spent, tries = asyncio.get_running_loop().time, list[float | None](), 0
        while True:
            began = clock()
            try:
                answer = await completer.complete(request)
            except ModelError as error:
                spent.append(error.cost_usd)
                passing = error.code in AWAY and self._tell is not None and request is not HELLO
                if passing:
                    spent.append(await self._wait_for(completer, error))
                tries += 1
                if not passing or tries > TRIES_AGAIN:
                    raise ModelError(str(error), error.code, cost_usd=_sum(spent)) from error
            else:
                self._answered_at[completer.name] = max(began, self._answered_at.get(completer.name, began))
                return replace(answer, cost_usd=_sum([*spent, answer.cost_usd])) if spent else answer

    async def _wait_for(self, completer: Completer, error: ModelError) -> float | None:
        """Return once a model answers again, with what finding that out cost; raises OutageError.

        Of several that wait one calls. A model that has not answered yet gets no more time.
        """
        name, clock, spent = completer.name, asyncio.get_running_loop().time, list[float | None]()
        failed_at = clock()

        async def answers() -> bool:
            began = clock()
            try:
                spent.append((await completer.complete(HELLO)).cost_usd)
            except ModelError as again:
                spent.append(again.cost_usd)
                return False
            self._answered_at[name] = began
            return True

        def notice() -> None:
            if self._tell is not None:
                self._tell(f"paused, a model does not answer: {error}")

        async with self._locks[name]:
            if self._answered_at.get(name, -1.0) > failed_at:
                return 0.0
            if self._given_up_at.get(name, -1.0) < failed_at:
                back = await (patience.outwait(answers, notice) if name in self._answered_at else answers())
                if back is not None and back is not False:
                    return _sum(spent)
                self._given_up_at[name] = clock()
        raise OutageError(f"{name} does not answer: {error}") from error

    async def reach(self, completer: Completer, *, role: str, epoch: int) -> None:
        """Request a word of `completer`, as `role` of the run; raises OutageError with its server's words."""
        purpose = role if role in ("judge", "user") else "learn"
        try:
            await self.complete(completer, HELLO, key=f"hello.{role}", purpose=purpose, epoch=epoch)
        except ModelError as error:
            raise OutageError(
                f"the {role} does not answer, so no rollout started; check the settings {role} and models: "
                f"{error}"
            ) from error


def _sum(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def _completion(call: ModelCall) -> Completion:
    return Completion(
        text=redact(call.answer),
        finish=cast("Finish", call.finish or "stop"),
        usage=call.usage,
        cost_usd=call.cost_usd,
        latency_ms=call.latency_ms,
    )
