"""Clients of the fake server whose calls are made in batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pytest_tfgrpo.llm.completer import ChatCompleter
from pytest_tfgrpo.llm.endpoints import Batching
from pytest_tfgrpo.llm.protocol import Completion
from support.fake_batches import FakeBatches
from support.fake_model import Answer, FakeModel, echo
from support.model_clients import KEY, Client, request


class Batched(Client):
    """A client whose calls are made in batches."""

    fake: FakeBatches

    async def all(self, count: int, **fields: Any) -> list[Completion | BaseException]:
        """Return what came of so many different calls at once, in their order."""
        calls = (self.complete(request(f"call {n}", **fields)) for n in range(count))
        return await asyncio.gather(*calls, return_exceptions=True)

    @property
    def model(self) -> ChatCompleter:
        found = self.models.open("openai:priced@fake")
        assert isinstance(found, ChatCompleter)
        return found


@asynccontextmanager
async def batched(
    fake: FakeBatches | None = None,
    answer: Answer = echo,
    *,
    notes: Path | None = None,
    options: Mapping[str, Any] | None = None,
    **fields: Any,
) -> AsyncIterator[Batched]:
    """Connect a client with a server that has batch routes; its batches are noted in `notes`."""
    fake = fake or FakeBatches()
    batching = Batching(**{"gather_s": 0.02, "poll_s": 10.0, **(options or {})})
    with FakeModel(answer, keys=[KEY], batches=fake) as server:
        client = Batched(server, batch=batching, **fields)
        client.fake = fake
        async with client:
            if notes is not None:
                client.models.keep_batches(notes)
            yield client


def texts(found: Sequence[Completion | BaseException]) -> list[str]:
    return [one.text if isinstance(one, Completion) else f"{type(one).__name__}: {one}" for one in found]
