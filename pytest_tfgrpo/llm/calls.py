"""Calls: the model calls of a run besides rollouts, journaled before anything depends on them.

A resumed run takes the answers that it has already paid for from its journal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from pytest_tfgrpo.core.clock import elapsed_ms, utc_now
from pytest_tfgrpo.core.errors import ModelError, OutageError
from pytest_tfgrpo.core.records import ModelCall
from pytest_tfgrpo.core.redact import redact
from pytest_tfgrpo.llm.fingerprint import fingerprint, text_of
from pytest_tfgrpo.llm.protocol import Completer, Completion, Finish, Message, Request

HELLO = Request(
    messages=(
        Message(role="system", content="This call finds out whether you can be reached."),
        Message(role="user", content="Answer with the word: ok"),
    ),
    temperature=0.0,
)
"""The first call of a model that a run asks only later."""


class Calls:
    """Makes the calls of one run; used on the event loop only.

    Secrets are taken out of an answer before anything depends on it, so that it is the same when it is read
    back from the journal.
    """

    def __init__(self, write: Callable[[ModelCall], None], recorded: Mapping[str, ModelCall]) -> None:
        """`write` journals a call; `recorded` has those of an interrupted run by key."""
        self._write = write
        self._recorded = recorded
        self._made = dict(recorded)

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
        """Ask `completer`; the answer is journaled under `key`, which must be unique in the run.

        Raises ModelError when there is no usable answer, which is journaled too, and BudgetError when the
        call was not made.
        """
        stamp = fingerprint(completer, request)
        known = self._recorded.get(key)
        if known is not None and known.fingerprint == stamp and known.error is None:
            return _completion(known)
        started_at, started = utc_now(), time.perf_counter()
        answer, error = Completion(text=""), None
        try:
            answer = await completer.complete(request)
            answer = replace(answer, text=redact(answer.text))
        except ModelError as caught:
            error = caught
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
        self._made[key] = call
        if error is not None:
            raise error
        return answer

    async def reach(self, completer: Completer, *, role: str, epoch: int) -> None:
        """Ask `completer` for a word, as `role` of the run; raises OutageError with what its server says."""
        purpose = "judge" if role == "judge" else "learn"
        try:
            await self.complete(completer, HELLO, key=f"hello.{role}", purpose=purpose, epoch=epoch)
        except ModelError as error:
            raise OutageError(
                f"the {role} cannot be asked, so nothing else was; check the settings {role} and models, "
                f"then start again: {error}"
            ) from error


def _completion(call: ModelCall) -> Completion:
    return Completion(
        text=redact(call.answer),
        finish=cast("Finish", call.finish or "stop"),
        usage=call.usage,
        cost_usd=call.cost_usd,
        latency_ms=call.latency_ms,
    )
