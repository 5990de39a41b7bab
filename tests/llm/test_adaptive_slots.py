"""Slots that adapt, against a real server with a hidden limit."""

import asyncio
import time
from contextlib import nullcontext, suppress

import pytest
from support import fake_model
from support.fake_model import Body, FakeModel, Reply
from support.model_clients import Client, request

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.llm.limits.concurrency import START, Concurrency
from pytest_tfgrpo.llm.limits.pace import Pace
from pytest_tfgrpo.llm.limits.queueing import take_ticket
from pytest_tfgrpo.llm.limits.slots import AdaptiveSlots, SlotEnd, adaptive_slots, endpoint_uses
from pytest_tfgrpo.llm.protocol import Completer

pytestmark = pytest.mark.asyncio


def limited(limit: int, retry_after: str | None = None) -> FakeModel:
    """Return a server that refuses calls beyond `limit` in flight."""

    def answer(body: Body, attempt: int) -> Reply | str:
        return fake_model.rate_limited(retry_after) if server.in_flight > limit else "ok"

    server = FakeModel(answer, delay_s=0.02)
    return server


async def asked(completer: Completer, calls: int, at_once: int = 100) -> int:
    """Return how many of `calls` were answered."""
    left, answered = iter(range(calls)), 0

    async def work() -> None:
        nonlocal answered
        for _ in left:
            with suppress(ModelError):
                await completer.complete(request())
                answered += 1

    await asyncio.gather(*(work() for _ in range(at_once)))
    return answered


async def test_a_server_with_a_hidden_limit_answers_every_call() -> None:
    with limited(6) as server:
        client = Client(server, concurrency="auto", retries=8, pace=Pace(chance=lambda: 0.1))
        async with client as completer:
            assert await asked(completer, 300) == 300
            (use,) = endpoint_uses([completer])
    assert use.found
    assert use.concurrency <= 7, "where it settles exactly, on a clock of its own, see test_concurrency"
    assert use.calls == 300 + use.refused
    assert use.refused < 80


async def test_without_a_limit_no_call_is_refused() -> None:
    with FakeModel(delay_s=0.01) as server:
        async with Client(server, concurrency="auto") as completer:
            assert await asked(completer, 200) == 200
            (use,) = endpoint_uses([completer])
        assert server.most_in_flight > START
    assert use.refused == 0


async def test_models_of_one_endpoint_share_its_slots() -> None:
    with FakeModel() as server:
        client = Client(server, concurrency="auto")
        async with client as completer:
            other = client.models.open("openai:other@fake")
            assert len(adaptive_slots([completer, other])) == 1


async def test_an_endpoint_with_a_number_of_its_own_keeps_it() -> None:
    with FakeModel() as server:
        async with Client(server, concurrency=3) as completer:
            assert adaptive_slots([completer]) == ()
            assert completer.concurrency == 3


async def test_everybody_waits_as_long_as_the_server_asks() -> None:
    arrived: list[float] = []

    def answer(body: Body, attempt: int) -> Reply | str:
        arrived.append(time.monotonic())
        return fake_model.rate_limited("0.3") if len(arrived) == 1 else "ok"

    with FakeModel(answer) as server:
        async with Client(server, concurrency="auto", pace=Pace(chance=lambda: 0.0)) as completer:
            await asyncio.gather(completer.complete(request()), _once_held(completer))
    assert len(arrived) == 3
    assert min(arrived[1:]) - arrived[0] >= 0.29


async def _once_held(completer: Completer) -> None:
    (slots,) = adaptive_slots([completer])
    while not slots.held_s:
        await asyncio.sleep(0.01)
    await completer.complete(request())


async def test_a_wait_beyond_the_time_limit_is_an_error_and_holds_up_nobody() -> None:
    with FakeModel(lambda *_: fake_model.rate_limited("3600")) as server:
        async with Client(server, concurrency="auto") as completer:
            for _ in range(3):
                with pytest.raises(ModelError, match="asks to wait 3600 s, but 60 s are left"):
                    await completer.complete(request())
            (slots,) = adaptive_slots([completer])
    assert slots.held_s == 0
    assert slots.concurrency.limit == START


async def test_in_a_storm_few_calls_are_sent_and_the_others_wait() -> None:
    ends_at = time.monotonic() + 0.4

    def answer(body: Body, attempt: int) -> Reply | str:
        return fake_model.OVERLOADED if time.monotonic() < ends_at else "ok"

    with FakeModel(answer) as server:
        async with Client(server, concurrency="auto", retries=6, pace=Pace()) as completer:
            assert await asked(completer, 100) == 100
            (use,) = endpoint_uses([completer])
    assert use.refused < 60, "fixed at 100 each would have been refused about twice"


def slots_of(number: int) -> AdaptiveSlots:
    return AdaptiveSlots("x", nullcontext, Concurrency(start=number, most=number))


async def test_rollouts_that_began_first_go_first() -> None:
    slots, order = slots_of(1), list[int]()

    async def call(place: int) -> None:
        take_ticket(place)
        async with slots.slot():
            order.append(place)
            await asyncio.sleep(0)

    await asyncio.gather(*(asyncio.create_task(call(place)) for place in (0, 5, 3, 9, 1)))
    assert order == [0, 1, 3, 5, 9]


async def test_a_waiting_call_that_is_cancelled_leaves_its_slot_to_the_next() -> None:
    slots, got = slots_of(1), asyncio.Event()

    async def wait() -> None:
        async with slots.slot():
            got.set()

    async with slots.slot():
        first, second = asyncio.create_task(wait()), asyncio.create_task(wait())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
    await asyncio.wait_for(second, 100)
    assert got.is_set()
    assert slots.concurrency.in_flight == 0


async def test_a_call_that_is_cancelled_as_it_gets_its_slot_gives_it_back() -> None:
    slots = slots_of(1)

    async def wait() -> None:
        async with slots.slot():
            raise AssertionError

    async with slots.slot():
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    assert slots.concurrency.in_flight == 0
    async with slots.slot() as ended:
        assert isinstance(ended, SlotEnd)
