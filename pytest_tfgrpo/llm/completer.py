"""The completer of a model at an endpoint: calls it, retries where that may help, and accounts for both."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace

from pytest_tfgrpo.core.errors import BudgetError, ModelError
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.core.sampled import REDACTED, Sampled, temperature_of
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.llm.config import HOSTED, Endpoint, MaxTokensField
from pytest_tfgrpo.llm.http_errors import read_refusal, retry_after_s
from pytest_tfgrpo.llm.keys import Scrubber, Secret
from pytest_tfgrpo.llm.prices import Price, PriceTable
from pytest_tfgrpo.llm.protocol import Completion, Request, Spending, ToolCall
from pytest_tfgrpo.llm.request_body import body_of, most_prompt_tokens
from pytest_tfgrpo.llm.response import Malformed, parse_body, read_answer, read_sampled, read_usage
from pytest_tfgrpo.llm.transport import Reply, Transport, TransportError
from pytest_tfgrpo.llm.url import Address

BACKOFF_S = 0.5
BACKOFF_MOST_S = 20.0
FREE = Price(input=0.0, output=0.0)
BUDGET = "budget"
"""Code of a call that the budget ended between two attempts."""
SAMPLED_BYTES, SAMPLED_MOST_BYTES = 512, 64_000_000
"""What an answer may have above its limit for the log-probabilities of each token asked for, and of all."""
SHOWN = 300
"""Characters of a server's words that an error shows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Where waiting and chance come from."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    """Returns a number in [0, 1)."""
    clock: Callable[[], float] = time.perf_counter

    def backoff_s(self, attempt: int) -> float:
        """Return how long to wait after failed `attempt` (0, 1, ...): exponential, with full jitter."""
        return self.chance() * min(BACKOFF_MOST_S, BACKOFF_S * 2.0**attempt)


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """A server: an endpoint with its address and keys."""

    endpoint: Endpoint
    address: Address
    headers: Mapping[str, Secret]
    scrubber: Scrubber
    slots: asyncio.Semaphore | None
    """Calls in flight; None: no limit."""


Used = tuple[float | None, int | None]
"""Dollars and tokens that an attempt used; None if unknown."""
NOTHING: Used = (0.0, 0)
UNKNOWN: Used = (None, None)


class _Failed(Exception):
    """One attempt gave no completion."""

    def __init__(
        self,
        error: ModelError,
        used: Used,
        *,
        again: bool = False,
        lasting: bool = False,
        form: bool = False,
        wait_s: float = 0.0,
    ) -> None:
        """`again`: the same request may succeed; `lasting`: none will; `form`: one without a form may.

        The server asks to wait `wait_s`.
        """
        super().__init__(str(error))
        self.error = error
        self.used = used
        self.again = again
        self.lasting = lasting
        self.form = form
        self.wait_s = wait_s


@dataclass(slots=True)
class _Call:
    """One call with its retries."""

    body: bytes
    in_words: bytes
    """The same, with the form of the answer only asked for; empty when that is all that is done anyway."""
    bound: Mapping[str, float | None]
    prompt_tokens: int
    completion_tokens: int
    left_s: float
    """Time that is left; waiting for money or for a free slot does not count."""
    limit_s: float
    sampled: Sampled | None
    """What is known of its tokens before they come; None when nobody asks for them."""
    max_bytes: int
    """What an answer may have."""
    attempt: int = 0
    spent_s: float = 0.0
    cost_usd: float | None = 0.0
    """Of all attempts; None when that of one is unknown."""

    def pay(self, usd: float | None) -> None:
        self.cost_usd = None if usd is None or self.cost_usd is None else self.cost_usd + usd

    def pass_time(self, seconds: float) -> None:
        self.left_s -= seconds
        self.spent_s += seconds


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
    ) -> None:
        """`name` is the spec; `max_tokens` limits completions of requests that state no limit."""
        self.name = name
        self.paid = not door.endpoint.free
        self.concurrency = door.endpoint.concurrency
        """Calls in flight at most, with those of other models of the endpoint; None: no limit."""
        self._model = model
        self._door = door
        self._endpoint = door.endpoint
        self._transport = transport
        self._spending = spending
        self.price = FREE if door.endpoint.free else prices.find(model, door.endpoint.name)
        """What its tokens cost; None when that is unknown."""
        self._max_tokens = door.endpoint.max_tokens or max_tokens
        self._pace = pace
        self._broken: ModelError | None = None
        self._answered = False
        self._forms: bool | None = None
        """Whether the server can hold an answer to a form; None: not known yet."""
        hosted = door.address.host == HOSTED
        self._limit_field: MaxTokensField = door.endpoint.max_tokens_field or (
            "max_completion_tokens" if hosted else "max_tokens"
        )
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
        call = _Call(
            body=body,
            in_words=in_words,
            bound=self._bound(prompt_tokens, completion_tokens),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            left_s=limit_s,
            limit_s=limit_s,
            sampled=sampled,
            max_bytes=self._endpoint.response_max_bytes + more_bytes,
        )
        async with self._door.slots or nullcontext():
            return await self._complete(call)

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
        formless = replace(self._endpoint, structured="none")
        if request.schema is None or self._endpoint.structured == "none" or self._forms is False:
            return body_of(request, model, formless, limit_field, max_tokens), b""
        body = body_of(request, model, self._endpoint, limit_field, max_tokens)
        return body, body_of(request, model, formless, limit_field, max_tokens)

    async def _complete(self, call: _Call) -> Completion:
        formed, refused_form = bool(call.in_words), False
        while True:
            if self._broken is not None:
                raise ModelError(str(self._broken), self._broken.code, cost_usd=call.cost_usd)
            try:
                completion = await self._attempt(call)
            except _Failed as failed:
                if failed.form and call.in_words and not self._forms:
                    call.body, call.in_words, refused_form = call.in_words, b"", True
                    continue
                if failed.lasting and not self._answered:
                    self._broken = failed.error
                await self._wait(call, failed)
                call.attempt += 1
            else:
                self._answered = True
                if formed and self._forms is None:
                    self._forms = not refused_form
                return completion

    async def _wait(self, call: _Call, failed: _Failed) -> None:
        """Wait until it is time for another attempt; raises ModelError when there is none."""
        wait_s = failed.wait_s + self._pace.backoff_s(call.attempt)
        if failed.again and call.attempt < self._endpoint.retries and wait_s < call.left_s:
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
        if error.code == "connection" and not self._answered:
            self._broken = error  # nobody is there: further calls need not find out each for itself
        raise error

    async def _attempt(self, call: _Call) -> Completion:
        """Make one HTTP call, reserved before and settled after, whatever the result; raises _Failed."""
        try:
            await self._spending.reserve(call.bound)
        except BudgetError as error:
            if call.cost_usd == 0:
                raise
            text = f"{self.name}: {error}; an earlier attempt may have been billed"
            raise ModelError(text, BUDGET, cost_usd=call.cost_usd) from error
        used = UNKNOWN
        try:
            completion = self._read(await self._send(call), call)
            used = self._used(completion.usage)
            call.pay(used[0])
            return replace(completion, cost_usd=call.cost_usd)
        except _Failed as failed:
            used = failed.used
            call.pay(used[0])
            raise
        finally:
            self._spending.settle(call.bound, usd=used[0], tokens=used[1])

    async def _send(self, call: _Call) -> Reply:
        """Return the server's reply to one request; raises _Failed unless it is a success."""
        started = self._pace.clock()
        try:
            reply = await self._transport.post(
                self._door.address.url,
                self._door.headers,
                call.body,
                timeout_s=call.left_s,
                max_bytes=call.max_bytes,
                direct=self._door.address.loopback,
            )
        except TransportError as error:
            if error.late:
                text = f"no answer within {call.limit_s:g} s"
                raise _Failed(self._error(text, "timeout"), self._used(None)) from None
            used = self._used(None) if error.sent else NOTHING
            raise _Failed(self._error(str(error), "connection"), used, again=True) from None
        finally:
            call.pass_time(self._pace.clock() - started)
        if 200 <= reply.status < 300:
            return reply
        refusal = read_refusal(reply._replace(body=self._door.scrubber.scrub_bytes(reply.body)))
        raise _Failed(
            self._error(refusal.message, refusal.code),
            NOTHING,
            again=refusal.again,
            lasting=refusal.lasting,
            form=refusal.form,
            wait_s=(retry_after_s(reply.retry_after) or 0.0) if refusal.again else 0.0,
        )

    def _read(self, reply: Reply, call: _Call) -> Completion:
        """Return the completion that a reply holds; raises _Failed."""
        if reply.cut:
            text = f"the answer is larger than {call.max_bytes} bytes (response_max_bytes)"
            raise _Failed(self._error(text, "oversize"), self._used(None))
        usage: Usage | None = None
        try:
            body = parse_body(reply.body, lenient=call.sampled is not None)
            usage = read_usage(body, call.prompt_tokens, call.completion_tokens)
            answer = read_answer(body)
        except Malformed as error:
            text = f"the answer is not a completion: {error}"
            raise _Failed(self._error(text, "bad_response"), self._used(usage)) from None
        if answer.finish == "content_filter" and not answer.text and not answer.tool_calls:
            text = "the server's content filter withheld the answer"
            raise _Failed(self._error(text, "content_filter"), self._used(usage))
        scrub = self._door.scrubber.scrub
        text = scrub(answer.text)
        calls = tuple(
            ToolCall(id=scrub(c.id), name=scrub(c.name), arguments=scrub(c.arguments))
            for c in answer.tool_calls
        )
        sampled = call.sampled
        if sampled is not None and (text, calls) != (answer.text, answer.tool_calls):
            sampled = sampled.without_tokens(REDACTED)  # the ids would say what the text no longer does
        elif sampled is not None:
            sampled = read_sampled(body, sampled.kind, sampled.temperature, usage)
        return Completion(
            text=text,
            tool_calls=calls,
            finish=answer.finish,
            usage=usage,
            latency_ms=1000 * call.spent_s,
            model=scrub(answer.model),
            retries=call.attempt,
            sampled=sampled,
        )

    def _error(self, text: str, code: str) -> ModelError:
        """Return an error fit for journal and terminal: no key, no control characters, short."""
        shown = one_line(self._door.scrubber.redact(text, 20 * SHOWN), SHOWN)
        return ModelError(f"{self.name}: {shown}", code)


def one_line(text: str, limit: int) -> str:
    """Return `text` as one printable line of at most about `limit` characters."""
    flat = " ".join(text.split())
    fit = "".join(c if c.isprintable() else repr(c)[1:-1] for c in flat[: limit + 1])
    return fit if len(flat) <= limit else fit[:limit].rstrip() + "..."
