"""Language models for tests: answers written in the test, every request kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pytest_tfgrpo.core.records import ModelCall, Usage
from pytest_tfgrpo.llm.calls import Calls
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.llm.protocol import Completion, Request

Answer = Callable[[Request], Completion | str | Awaitable[Completion | str]]
USAGE = Usage(prompt=100, completion=20)


class ScriptedCompleter:
    """Answers as a function of the request says; an exception that it raises is the model's error."""

    paid = True
    price: Price | None = None
    concurrency: int | None = None

    def __init__(
        self, answer: Answer, *, name: str = "openai:scripted", cost_usd: float | None = 0.01
    ) -> None:
        self.name = name
        self.identity: Mapping[str, Any] = {"model": name}
        self.requests: list[Request] = []
        self.in_flight = self.most_in_flight = 0
        self._answer = answer
        self._cost_usd = cost_usd

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
            answer = self._answer(request)
            if isinstance(answer, Awaitable):
                answer = await answer
        finally:
            self.in_flight -= 1
        if isinstance(answer, Completion):
            return answer
        return Completion(text=answer, usage=USAGE, cost_usd=self._cost_usd, latency_ms=1.0)

    def bound(self, request: Request) -> Mapping[str, float | None]:
        return {"usd": self._cost_usd, "tokens": float(USAGE.total)}


def make_calls(
    written: list[ModelCall] | None = None, recorded: Mapping[str, ModelCall] | None = None
) -> Calls:
    """Return the calls of a run without files; those made are appended to `written`."""
    made: list[ModelCall] = [] if written is None else written
    return Calls(made.append, recorded or {})
