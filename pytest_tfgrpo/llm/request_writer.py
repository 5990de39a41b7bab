"""Writes the requests of a model at an endpoint, and learns of its server what it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.core.sampled import Sampled, temperature_of
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.llm.endpoints import HOSTED
from pytest_tfgrpo.llm.limits.answer_bytes import bytes_of_tokens
from pytest_tfgrpo.llm.model_call import ModelAttempts
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.llm.protocol import Request
from pytest_tfgrpo.llm.request_body import body_of, most_prompt_tokens
from pytest_tfgrpo.llm.server.door import Door
from pytest_tfgrpo.llm.server.streamed import by_stream


class RequestWriter:
    """The requests of one model."""

    def __init__(self, name: str, model: str, door: Door, price: Price | None, max_tokens: int) -> None:
        """`max_tokens` limits completions where neither request nor endpoint do; errors have the `name`."""
        self._name, self._model, self._price = name, model, price
        self._endpoint, self._base_url = door.endpoint, door.address.base_url
        self._max_tokens = door.endpoint.max_tokens or max_tokens
        hosted = door.address.host == HOSTED
        self._limit_field = door.endpoint.max_tokens_field or (
            "max_completion_tokens" if hosted else "max_tokens"
        )
        self.forms: bool | None = None
        """Whether the server can hold an answer to a form; None: not known yet."""
        self.streams = False
        """Whether the server answers by stream alone, as it said."""

    def identity(self) -> dict[str, Json]:
        """Return what shapes the answers: model, address and options."""
        endpoint = self._endpoint
        return {
            "model": self._model,
            "base_url": self._base_url,
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
        usd = None if self._price is None else self._price.most(prompt, completion)
        return {"usd": usd, "tokens": float(prompt + completion)}

    def write(self, request: Request) -> ModelAttempts:
        """Return a call for `request`; raises ModelError for one that is not valid JSON."""
        completion_tokens = request.max_tokens or self._max_tokens
        try:
            body, in_words = self._bodies(request, completion_tokens)
        except (TypeError, ValueError) as error:
            text = f"{self._name}: the request is not valid JSON: {error}"
            raise ModelError(text, "rejected", cost_usd=0.0) from None
        prompt_tokens = most_prompt_tokens(request)
        sampled = self._to_sample(request)
        more_bytes = 0 if sampled is None else bytes_of_tokens(completion_tokens)
        call = ModelAttempts(
            body=body,
            in_words=in_words,
            bound=self._bound(prompt_tokens, completion_tokens),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            limit_s=min(request.timeout_s or math.inf, self._endpoint.timeout_s),
            sampled=sampled,
            max_bytes=self._endpoint.response_max_bytes + more_bytes,
            tools=frozenset(tool.name for tool in request.tools),
            seed=request.seed,
        )
        if self.streams:
            ask_by_stream(call)
        return call

    def _bodies(self, request: Request, max_tokens: int) -> tuple[bytes, bytes]:
        """Return the request as it is sent, and without the demand for a form where that is another."""
        model, limit_field = self._model, self._limit_field
        body = body_of(request, model, self._endpoint, limit_field, max_tokens)
        if request.schema is None or self._endpoint.structured == "none":
            return body, b""
        formless = replace(self._endpoint, structured="none")
        in_words = body_of(request, model, formless, limit_field, max_tokens)
        return (in_words, b"") if self.forms is False else (body, in_words)

    def _to_sample(self, request: Request) -> Sampled | None:
        kind = self._endpoint.logprobs
        if kind == "off" or not request.logprobs:
            return None
        own = self._endpoint.extra_body.get("temperature")
        sent = request.temperature if self._endpoint.temperature else temperature_of(own)
        return Sampled(kind=kind, temperature=sent)


def ask_by_stream(call: ModelAttempts) -> None:
    """Request by stream, which spends some bytes on each token."""
    call.body, call.streamed = by_stream(call.body), True
    call.in_words = by_stream(call.in_words) if call.in_words else b""
    call.max_bytes += bytes_of_tokens(call.completion_tokens)
