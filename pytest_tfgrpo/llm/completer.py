"""The completer of a model at an endpoint: calls it, retries where that may help, and accounts for both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import BudgetError, ModelError
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.core.sampled import Sampled, temperature_of
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.llm.calls import HELLO
from pytest_tfgrpo.llm.config import HOSTED, MaxTokensField
from pytest_tfgrpo.llm.limits.concurrency import AUTO
from pytest_tfgrpo.llm.limits.hedging import Hedges, hedged
from pytest_tfgrpo.llm.limits.pace import Pace
from pytest_tfgrpo.llm.limits.slots import AdaptiveSlots, SlotEnd, Slots
from pytest_tfgrpo.llm.model_call import (
    BUDGET,
    NOTHING,
    UNKNOWN,
    AttemptFailed,
    BatchFailed,
    ModelAttempts,
    Used,
    one_line,
)
from pytest_tfgrpo.llm.prices import Price, PriceTable
from pytest_tfgrpo.llm.protocol import Completion, Request, Spending, ToolCall
from pytest_tfgrpo.llm.replies.provider_faults import ProviderFault
from pytest_tfgrpo.llm.replies.response import Malformed, parse_body, read_answer, read_sampled, read_usage
from pytest_tfgrpo.llm.request_body import body_of, most_prompt_tokens
from pytest_tfgrpo.llm.server.door import Door
from pytest_tfgrpo.llm.server.http_errors import HttpRefusal, read_fault, read_refusal
from pytest_tfgrpo.llm.server.streamed import BrokenStream, by_stream, is_stream, put_together
from pytest_tfgrpo.llm.server.transport import Reply, Transport, TransportError
from pytest_tfgrpo.retry import BUSY

if TYPE_CHECKING:
    from pytest_tfgrpo.llm.batch.batches import Batches

FREE = Price(input=0.0, output=0.0)
SAMPLED_BYTES, SAMPLED_MOST_BYTES = 512, 64_000_000
"""What an answer may have above its limit for the log-probabilities of each token asked for, and of all."""
SHOWN = 300
"""Characters of a server's words that an error shows."""


class ChatCompleter:
    """A language model behind the chat-completions protocol."""

    def __init__(
        self,
        model: str,
        door: Door,
        *,
        name: str,
        transport: Transport,
        spending: Spending,
        prices: PriceTable,
        max_tokens: int,
        pace: Pace,
        pooled: bool = False,
        batches: Batches | None = None,
    ) -> None:
        """`name` is the spec; `max_tokens` limits completions of requests that state no limit.

        One that is `pooled` makes one attempt, and never gives its server up: its pool does both.
        """
        self.name = name
        self.endpoint = door.endpoint.name
        self._pooled = pooled
        self._retries = 0 if pooled else door.endpoint.retries
        self.paid = not door.endpoint.free
        own = door.endpoint.concurrency
        self.concurrency: int | None = None if own == AUTO else own
        """Calls in flight at most, with those of other models of the endpoint; None: no limit is known."""
        slots = door.slots
        self.adaptive = (slots,) if isinstance(slots, AdaptiveSlots) else ()
        """What finds out how many calls its endpoint takes, where that is wanted."""
        self.batches = batches
        """What makes its calls in batches, where its endpoint is set so."""
        self.batched = batches is not None
        self._model = model
        self._door = door
        self._endpoint = door.endpoint
        self._transport = transport
        self._spending = spending
        known = FREE if door.endpoint.free else prices.find(model, door.endpoint.name)
        batching = door.endpoint.batch
        self.price = known if known is None or batching is None else known.times(batching.price_factor)
        """What its tokens cost; None when that is unknown."""
        self._max_tokens = door.endpoint.max_tokens or max_tokens
        self._pace = pace
        self._broken: ModelError | None = None
        self.hedges = Hedges()
        self._answered = False
        self._forms: bool | None = None
        """Whether the server can hold an answer to a form; None: not known yet."""
        self._streams = False
        """Whether the server answers by stream alone, as it said."""
        self._limit_field = _limit_field(door)
        self.identity: Mapping[str, Json] = self._identify()

    def __repr__(self) -> str:
        return f"ChatCompleter({self.name!r})"

    def _identify(self) -> dict[str, Json]:
        endpoint = self._endpoint
        return {
            "model": self._model,
            "base_url": self._door.address.base_url,
            "headers": dict(endpoint.headers),
            "system_role": endpoint.system_role,
            "max_tokens": self._max_tokens,
            "seed": endpoint.seed,
            "temperature": endpoint.temperature,
            "structured": endpoint.structured,
            "reasoning_effort": endpoint.reasoning_effort,
            "extra_body": dict(endpoint.extra_body),
            **({} if endpoint.thoughts is True else {"thoughts": to_wire(endpoint.thoughts)}),
        }

    def bound(self, request: Request) -> Mapping[str, float | None]:
        """Return the most that one attempt at `request` can use."""
        return self._bound(most_prompt_tokens(request), request.max_tokens or self._max_tokens)

    def _bound(self, prompt: int, completion: int) -> dict[str, float | None]:
        usd = None if self.price is None else self.price.most(prompt, completion)
        return {"usd": usd, "tokens": float(prompt + completion)}

    def _used(self, usage: Usage | None) -> Used:
        if usage is None:
            return (0.0 if self._endpoint.free else None), None
        return (None if self.price is None else self.price.cost(usage)), usage.total

    async def complete(self, request: Request) -> Completion:
        """Ask once, retries inside; raises ModelError without a usable answer, BudgetError without money."""
        if self.batches is not None and request is HELLO:
            return await self._reach(self.batches)
        after_s = self._endpoint.hedge_after_s
        if after_s is None:
            return await self._ask(request)
        return await hedged(
            partial(self._ask, request), after_s=after_s, may=self._may_hedge, dropped=self._dropped_usd
        )

    async def _reach(self, batches: Batches) -> Completion:
        """Find out for nothing whether batches can be submitted: a call in one may take a day."""
        try:
            await batches.reach()
        except BatchFailed as failed:
            error = self._error(str(failed), failed.code)
            raise ModelError(str(error), error.code, cost_usd=0.0) from None
        return Completion(text="", cost_usd=0.0)

    def _may_hedge(self) -> bool:
        """Return, and count, whether a call may be sent a second time: places are free that nobody wants."""
        slots = self._door.slots
        idle = slots.is_idle if isinstance(slots, AdaptiveSlots) else slots is None or not slots.locked()
        self.hedges.count += idle
        return idle

    def _dropped_usd(self, answer: Completion) -> float | None:
        if self._endpoint.free:
            return 0.0
        self.hedges.dropped(answer, self.price)
        return None

    @property
    def warnings(self) -> list[str]:
        """What to say of calls that were sent twice, and of batches."""
        if self.batches is not None:
            return self.batches.warnings
        after_s = self._endpoint.hedge_after_s
        if not self.hedges.count or after_s is None:
            return []
        return [f"{self.name}: {self.hedges.warning(after_s)}"]

    async def _ask(self, request: Request) -> Completion:
        completion_tokens = request.max_tokens or self._max_tokens
        try:
            body, in_words = self._bodies(request, completion_tokens)
        except (TypeError, ValueError) as error:
            text = f"{self.name}: the request is not valid JSON: {error}"
            raise ModelError(text, "rejected", cost_usd=0.0) from None
        prompt_tokens = most_prompt_tokens(request)
        limit_s = min(request.timeout_s or math.inf, self._endpoint.timeout_s)
        sampled = self._to_sample(request)
        more_bytes = 0 if sampled is None else min(SAMPLED_BYTES * completion_tokens, SAMPLED_MOST_BYTES)
        call = ModelAttempts(
            body=body,
            in_words=in_words,
            bound=self._bound(prompt_tokens, completion_tokens),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            limit_s=limit_s,
            sampled=sampled,
            max_bytes=self._endpoint.response_max_bytes + more_bytes,
            tools=frozenset(tool.name for tool in request.tools),
            seed=request.seed,
        )
        if self._streams:
            self._by_stream(call)
        slots = self._door.slots
        async with slots if isinstance(slots, Slots) else nullcontext():
            return await self._complete(call)

    @staticmethod
    def _by_stream(call: ModelAttempts) -> None:
        """Ask by stream, which spends some bytes on each token."""
        call.body, call.streamed = by_stream(call.body), True
        call.in_words = by_stream(call.in_words) if call.in_words else b""
        call.max_bytes += min(SAMPLED_BYTES * call.completion_tokens, SAMPLED_MOST_BYTES)

    def _to_sample(self, request: Request) -> Sampled | None:
        kind = self._endpoint.logprobs
        if kind == "off" or not request.logprobs:
            return None
        own = self._endpoint.extra_body.get("temperature")
        sent = request.temperature if self._endpoint.temperature else temperature_of(own)
        return Sampled(kind=kind, temperature=sent)

    def _bodies(self, request: Request, max_tokens: int) -> tuple[bytes, bytes]:
        """Return the request as it is sent, and without the demand for a form where that is another."""
        model, limit_field = self._model, self._limit_field
        body = body_of(request, model, self._endpoint, limit_field, max_tokens)
        if request.schema is None or self._endpoint.structured == "none":
            return body, b""
        formless = replace(self._endpoint, structured="none")
        in_words = body_of(request, model, formless, limit_field, max_tokens)
        return (in_words, b"") if self._forms is False else (body, in_words)

    async def _complete(self, call: ModelAttempts) -> Completion:
        formed, refused_form = bool(call.in_words), False
        while True:
            if self._broken is not None:
                raise ModelError(str(self._broken), self._broken.code, cost_usd=call.cost_usd)
            try:
                completion = await self._attempt(call)
            except AttemptFailed as failed:
                if failed.form and call.in_words and not self._forms:
                    call.body, call.in_words, refused_form = call.in_words, b"", True
                    continue
                if failed.stream and not call.streamed and self.batches is None:
                    self._streams = True
                    self._by_stream(call)
                    continue
                if failed.lasting and not self._answered and not self._pooled:
                    self._broken = failed.error
                await self._wait(call, failed)
                call.attempt += 1
            else:
                self._answered = True
                if formed and self._forms is None:
                    self._forms = not refused_form
                return completion

    async def _wait(self, call: ModelAttempts, failed: AttemptFailed) -> None:
        """Wait until it is time for another attempt; raises ModelError when there is none."""
        wait_s = failed.wait_s + self._pace.backoff_s(call.attempt)
        if failed.again and call.attempt < self._retries and wait_s < call.left_s:
            started = self._pace.clock()
            await self._pace.sleep(wait_s)
            call.pass_time(self._pace.clock() - started)
            return
        text = str(failed.error)
        if call.attempt:
            text += f" ({call.attempt + 1} attempts)"
        if failed.wait_s > 0 and failed.wait_s >= call.left_s:
            text += f"; the server asks to wait {failed.wait_s:g} s, but {call.left_s:.3g} s are left"
        error = ModelError(text, failed.error.code, cost_usd=call.cost_usd)
        if error.code == "connection" and not self._answered and not self._pooled:
            self._broken = error  # nobody is there: further calls need not find out each for itself
        raise error

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
            sending = self._send(call, ended) if self.batches is None else self._batch(self.batches, call)
            completion = self._read(await sending, call)
            used = self._used(completion.usage)
            return completion
        except AttemptFailed as failed:
            used = failed.used
            call.pay(used[0])
            raise
        finally:
            self._spending.settle(call.bound, usd=used[0], tokens=used[1])

    async def _send(self, call: ModelAttempts, ended: SlotEnd) -> Reply:
        """Return the server's reply to one request; raises AttemptFailed unless it is a success.

        `ended` is told what that says about the server's load.
        """
        started = self._pace.clock()
        try:
            reply = await self._transport.send(
                "POST",
                self._door.address.url,
                self._door.headers,
                call.body,
                timeout_s=call.left_s,
                max_bytes=call.max_bytes,
                direct=self._door.address.loopback,
            )
        except TransportError as error:
            if error.late:
                ended.tell("ok", latency_s=call.left_s)
                text = f"no answer within {call.limit_s:g} s"
                raise AttemptFailed(self._error(text, "timeout"), self._used(None)) from None
            used = self._used(None) if error.sent else NOTHING
            raise AttemptFailed(self._error(str(error), "connection"), used, again=True) from None
        finally:
            call.pass_time(self._pace.clock() - started)
        if 200 <= reply.status < 300:
            ended.tell("ok", latency_s=self._pace.clock() - started)
            return reply
        failed = self._refused(reply)
        if reply.status in BUSY and failed.again and failed.wait_s < call.left_s:
            ended.tell("refused", wait_s=failed.wait_s)
        raise failed

    async def _batch(self, batches: Batches, call: ModelAttempts) -> Reply:
        """Return the reply to one request in a batch; raises AttemptFailed unless it is a success.

        One that a batch ends without is asked again once.
        """
        try:
            reply = await batches.ask(call.body, seed=call.seed, max_bytes=call.max_bytes)
        except BatchFailed as failed:
            call.unanswered += failed.again
            error, used = self._error(str(failed), failed.code), self._used(None) if failed.sent else NOTHING
            again = failed.again and call.unanswered == 1
            raise AttemptFailed(error, used, again=again, lasting=failed.lasting) from None
        if 200 <= reply.status < 300:
            return reply
        raise self._refused(reply)

    def _refused(self, reply: Reply) -> AttemptFailed:
        """Return what a reply that is no success means for a call."""
        return self._failed(read_refusal(self._scrubbed(reply)), NOTHING)

    def _scrubbed(self, reply: Reply) -> Reply:
        return reply._replace(body=self._door.scrubber.scrub_bytes(reply.body))

    def _failed(self, refusal: HttpRefusal, used: Used) -> AttemptFailed:
        return AttemptFailed(
            self._error(refusal.message, refusal.code),
            used,
            again=refusal.again,
            lasting=refusal.lasting,
            form=refusal.form,
            stream=refusal.stream,
            wait_s=refusal.wait_s,
        )

    def _read(self, reply: Reply, call: ModelAttempts) -> Completion:
        """Return the completion that a reply holds, which is paid for; raises AttemptFailed."""
        if reply.cut:
            text = f"the answer is larger than {call.max_bytes} bytes (response_max_bytes)"
            raise AttemptFailed(self._error(text, "oversize"), self._used(None))
        usage: Usage | None = None
        try:
            whole = put_together(reply.body) if is_stream(reply.body) else reply.body
            body = parse_body(whole, lenient=call.sampled is not None)
            usage = read_usage(body, call.prompt_tokens, call.completion_tokens)
            answer = read_answer(body, self._endpoint.thoughts, call.tools)
        except BrokenStream as error:
            raise AttemptFailed(self._error(str(error), "connection"), self._used(None), again=True) from None
        except ProviderFault as error:
            known = usage is not None or body.get("choices")
            used = self._used(usage) if known else NOTHING  # where nothing was generated, nobody pays
            raise self._failed(read_fault(error, self._scrubbed(reply)), used) from None
        except Malformed as error:
            text = f"the answer is not a completion: {error}"
            raise AttemptFailed(self._error(text, "bad_response"), self._used(usage)) from None
        if answer.finish == "content_filter" and not answer.text and not answer.tool_calls:
            text = "the server's content filter withheld the answer"
            raise AttemptFailed(self._error(text, "content_filter"), self._used(usage))
        scrub = self._door.scrubber.scrub
        text = scrub(answer.text)
        calls = tuple(
            ToolCall(id=scrub(c.id), name=scrub(c.name), arguments=scrub(c.arguments))
            for c in answer.tool_calls
        )
        sampled = call.sampled
        thoughts = scrub(answer.thoughts) if answer.thoughts else ""
        as_it_was = (text, calls, thoughts) == (answer.text, answer.tool_calls, answer.thoughts)
        if sampled is not None and not as_it_was:
            sampled = sampled.without_tokens()  # the ids would say what the text no longer does
        elif sampled is not None:
            sampled = read_sampled(body, sampled.kind, sampled.temperature, usage)
        call.pay(self._used(usage)[0])
        return Completion(
            text=text,
            thoughts=thoughts,
            why_empty=answer.why_empty,
            tool_calls=calls,
            finish=answer.finish,
            usage=usage,
            cost_usd=call.cost_usd,
            latency_ms=1000 * call.spent_s,
            model=scrub(answer.model),
            retries=call.attempt,
            sampled=sampled,
        )

    def _error(self, text: str, code: str) -> ModelError:
        """Return an error fit for journal and terminal: no key, no control characters, short."""
        shown = one_line(self._door.scrubber.redact(text, 20 * SHOWN), SHOWN)
        return ModelError(f"{self.name}: {shown}", code)


def _limit_field(door: Door) -> MaxTokensField:
    hosted = door.address.host == HOSTED
    return door.endpoint.max_tokens_field or ("max_completion_tokens" if hosted else "max_tokens")
