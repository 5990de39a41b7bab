"""Clients of the fake server: time stands still, every reservation is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from pytest_tfgrpo.core.errors import BudgetError
from pytest_tfgrpo.llm.endpoints import Endpoint, ModelsConfig
from pytest_tfgrpo.llm.limits.pace import Pace
from pytest_tfgrpo.llm.limits.slots import Standing
from pytest_tfgrpo.llm.models import Models
from pytest_tfgrpo.llm.prices import Price, PriceTable
from pytest_tfgrpo.llm.protocol import Completer, Completion, Message, Request
from support.fake_model import Answer, FakeModel, echo

KEY = "plain-words-make-up-this-key"
"""No pattern of secrets finds it."""
PRICES = PriceTable(prices={"priced": Price(input=1.0, output=10.0, cached_input=0.5)})


class Ledger:
    """A purse that keeps what was reserved and settled."""

    def __init__(self, most_calls: int | None = None) -> None:
        self.open: list[Mapping[str, float | None]] = []
        self.settled: list[tuple[float | None, int | None]] = []
        self._left = most_calls

    async def reserve(self, bound: Mapping[str, float | None]) -> None:
        if self._left == 0:
            raise BudgetError("used up")
        self._left = None if self._left is None else self._left - 1
        self.open.append(bound)

    def settle(self, bound: Mapping[str, float | None], *, usd: float | None, tokens: int | None) -> None:
        self.open.remove(bound)
        self.settled.append((usd, tokens))


class StillTime:
    """A clock that goes on only while the client waits between attempts."""

    def __init__(self, chance: float = 0.5) -> None:
        self.waits: list[float] = []
        self.pace = Pace(sleep=self._sleep, chance=lambda: chance, clock=lambda: sum(self.waits))

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


class Client:
    """Models that know one server as the endpoint ``fake``; closed at the end of an ``async with`` block."""

    def __init__(
        self,
        server: FakeModel,
        *,
        spending: Ledger | None = None,
        chance: float = 0.5,
        pace: Pace | None = None,
        standing: Standing = nullcontext,
        **fields: Any,
    ) -> None:
        """`fields` are those of the endpoint."""
        self.server = server
        self.spending = Ledger() if spending is None else spending
        self.time = StillTime(chance)
        endpoint = Endpoint(
            **{"name": "fake", "base_url": server.base_url, "api_key_env": "FAKE_KEY", **fields}
        )
        self.models = Models(
            ModelsConfig(endpoints={"fake": endpoint}, prices=PRICES),
            environ={"FAKE_KEY": KEY},
            spending=self.spending,
            max_tokens=1000,
            pace=pace or self.time.pace,
            standing=standing,
        )

    async def __aenter__(self) -> Completer:
        return self.models.open("openai:priced@fake")

    async def complete(self, request: Request) -> Completion:
        return await self.models.open("openai:priced@fake").complete(request)

    async def __aexit__(self, *_: object) -> None:
        await self.models.aclose()


@asynccontextmanager
async def connected(
    answer: Answer = echo, *, delay_s: float = 0.0, keys: Sequence[str] = (), **fields: Any
) -> AsyncIterator[Client]:
    """Connect a client, of these fields, with a server that lasts as long as it."""
    with FakeModel(answer, delay_s=delay_s, keys=keys) as server:
        client = Client(server, **fields)
        async with client:
            yield client


def request(content: str = "hello", **fields: Any) -> Request:
    return Request(**{"messages": (Message(role="user", content=content),), "temperature": 0.5, **fields})
