"""The completer of a model at an endpoint: calls it, retries where that may help, and accounts for both."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import BudgetError, ModelError
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.calls import HELLO
from pytest_tfgrpo.llm.limits.call_retries import CallRetries
from pytest_tfgrpo.llm.limits.concurrency import AUTO
from pytest_tfgrpo.llm.limits.hedging import Hedges, hedged
from pytest_tfgrpo.llm.limits.slots import AdaptiveSlots, SlotEnd, Slots
from pytest_tfgrpo.llm.model_call import BUDGET, UNKNOWN, AttemptFailed, ModelAttempts
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.llm.protocol import Completion, Request, Spending
from pytest_tfgrpo.llm.request_writer import RequestWriter, ask_by_stream
from pytest_tfgrpo.llm.senders import BatchSender, HttpSender
from pytest_tfgrpo.llm.server.door import Door

if TYPE_CHECKING:
    from pytest_tfgrpo.llm.batch.batches import Batches
    from pytest_tfgrpo.llm.reply_reader import ReplyReader


class ChatCompleter:
    """A language model behind the chat-completions protocol."""

    def __init__(
        self,
        name: str,
        door: Door,
        *,
        price: Price | None,
        spending: Spending,
        retries: CallRetries,
        writer: RequestWriter,
        sender: HttpSender | BatchSender,
        reader: ReplyReader,
    ) -> None:
        """`name` is the spec; the other parts are those of this model at this `door`."""
        self.name = name
        self.paid = not door.endpoint.free
        own = door.endpoint.concurrency
        self.concurrency: int | None = None if own == AUTO else own
        """Calls in flight at most, with those of other models of the endpoint; None: no limit is known."""
        slots = door.slots
        self.adaptive = (slots,) if isinstance(slots, AdaptiveSlots) else ()
        """What finds out how many calls its endpoint takes, where that is wanted."""
        self.price = price
        """What its tokens cost; None when that is unknown."""
        self.hedges = Hedges()
        self._door = door
        self._spending = spending
        self._retries = retries
        self._writer, self._sender, self._reader = writer, sender, reader
        self.identity: Mapping[str, Json] = writer.identity()

    def __repr__(self) -> str:
        return f"ChatCompleter({self.name!r})"

    @property
    def endpoint(self) -> str:
        """Name of its endpoint."""
        return self._door.endpoint.name

    @property
    def batches(self) -> Batches | None:
        """What makes its calls in batches, where its endpoint is set so."""
        return self._sender.batches if isinstance(self._sender, BatchSender) else None

    @property
    def batched(self) -> bool:
        """Whether its calls are made in batches."""
        return self.batches is not None

    def bound(self, request: Request) -> Mapping[str, float | None]:
        """Return the most that one attempt at `request` can use."""
        return self._writer.bound(request)

    async def complete(self, request: Request) -> Completion:
        """Make one call, retries inside; raises ModelError without an answer, BudgetError without money."""
        if request is HELLO and isinstance(self._sender, BatchSender):
            return await self._sender.reach()
        after_s = self._door.endpoint.hedge_after_s
        if after_s is None:
            return await self._ask(request)
        return await hedged(
            partial(self._ask, request), after_s=after_s, may=self._may_hedge, dropped=self._dropped_usd
        )

    def _may_hedge(self) -> bool:
        """Return, and count, whether a call may be sent a second time: places are free that nobody wants."""
        slots = self._door.slots
        idle = slots.is_idle if isinstance(slots, AdaptiveSlots) else slots is None or not slots.locked()
        self.hedges.count += idle
        return idle

    def _dropped_usd(self, answer: Completion) -> float | None:
        if self._door.endpoint.free:
            return 0.0
        self.hedges.dropped(answer, self.price)
        return None

    @property
    def warnings(self) -> list[str]:
        """What to say of calls that were sent twice, and of batches."""
        if self.batches is not None:
            return self.batches.warnings
        after_s = self._door.endpoint.hedge_after_s
        if not self.hedges.count or after_s is None:
            return []
        return [f"{self.name}: {self.hedges.warning(after_s)}"]

    async def _ask(self, request: Request) -> Completion:
        call = self._writer.write(request)
        slots = self._door.slots
        async with slots if isinstance(slots, Slots) else nullcontext():
            return await self._complete(call)

    async def _complete(self, call: ModelAttempts) -> Completion:
        writer, retries = self._writer, self._retries
        formed, refused_form = bool(call.in_words), False
        while True:
            retries.require_hope(call)
            try:
                completion = await self._attempt(call)
            except AttemptFailed as failed:
                if failed.form and call.in_words and not writer.forms:
                    call.body, call.in_words, refused_form = call.in_words, b"", True
                elif failed.stream and not call.streamed and not self.batched:
                    writer.streams = True
                    ask_by_stream(call)
                else:
                    await retries.wait(call, failed)
            else:
                retries.answered = True
                if formed and writer.forms is None:
                    writer.forms = not refused_form
                return completion

    async def _attempt(self, call: ModelAttempts) -> Completion:
        """Make one HTTP call in a slot of its own, if slots adapt; raises AttemptFailed."""
        if not self.adaptive:
            return await self._attempt_in(SlotEnd(), call)
        async with self.adaptive[0].slot() as ended:
            return await self._attempt_in(ended, call)

    async def _attempt_in(self, ended: SlotEnd, call: ModelAttempts) -> Completion:
        """Make one HTTP call, reserved before and settled after in any case; raises AttemptFailed."""
        try:
            await self._spending.reserve(call.bound)
        except BudgetError as error:
            if call.cost_usd == 0:
                raise
            text = f"{self.name}: {error}; an earlier attempt may have been billed"
            raise ModelError(text, BUDGET, cost_usd=call.cost_usd) from error
        used = UNKNOWN
        try:
            completion = self._reader.completion(await self._sender.send(call, ended), call)
            used = self._reader.used(completion.usage)
            return completion
        except AttemptFailed as failed:
            used = failed.used
            call.pay(used[0])
            raise
        finally:
            self._spending.settle(call.bound, usd=used[0], tokens=used[1])
