"""Hedged calls: sent twice when slow, paid twice, answered once."""

import asyncio
import threading
from typing import Any

import pytest
from support import fake_model
from support.fake_model import Answer, Body, FakeModel, Reply
from support.model_clients import Client, Ledger, connected, request

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.llm.completer import ChatCompleter
from pytest_tfgrpo.llm.limits.hedging import Hedges, hedged
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.llm.protocol import Completion

pytestmark = pytest.mark.asyncio

SOON: dict[str, Any] = {"hedge_after_s": 0.1, "timeout_s": 100.0}


def in_turn(*replies: Reply | str) -> Answer:
    """Answer the calls in the order of their arrival."""
    left, lock = iter(replies), threading.Lock()

    def answer(body: Body, attempt: int) -> Reply | str:
        with lock:
            return next(left)

    return answer


async def test_a_slow_call_is_sent_again_and_the_first_answer_counts() -> None:
    ledger, second = Ledger(), fake_model.text("second", usage=fake_model.usage(3_000, 100))
    async with connected(in_turn(fake_model.SILENT, second), spending=ledger, **SOON) as client:
        found = await asyncio.wait_for(client.complete(request("word " * 3_000)), 100)
        completer = client.models.open("openai:priced@fake")
        assert isinstance(completer, ChatCompleter)
    assert found.text == "second"
    assert found.cost_usd is None, "nobody says what the cancelled call used"
    assert sorted(usd is None for usd, _ in ledger.settled) == [False, True]
    assert ledger.open == []
    assert completer.hedges.count == 1
    assert completer.warnings == [
        "openai:priced@fake: 1 call was sent a second time after 0.1 s (hedge_after_s); one answer counts, "
        "both are paid for. Costs are a lower bound: no server says what 1 cancelled call used; sums leave "
        "out $0.0040 for the answers that came instead, about $0.0030 for the prompts that were sent twice, "
        "and what was written until then"
    ]


async def test_of_a_model_without_a_price_the_cost_of_a_cancelled_call_is_not_guessed() -> None:
    async with connected(in_turn(fake_model.SILENT, "second"), **SOON) as client:
        completer = client.models.open("openai:other@fake")
        assert (await completer.complete(request())).cost_usd is None
    assert isinstance(completer, ChatCompleter)
    (warning,) = completer.warnings
    assert warning.endswith(". Costs are a lower bound: no server says what 1 cancelled call used")


async def test_at_an_endpoint_that_is_free_a_cancelled_call_costs_nothing() -> None:
    async with connected(in_turn(fake_model.SILENT, "second"), free=True, **SOON) as client:
        found = await client.complete(request())
        completer = client.models.open("openai:priced@fake")
    assert found.cost_usd == 0
    assert isinstance(completer, ChatCompleter)
    assert completer.warnings[0].endswith("one answer counts, both are paid for")


async def test_a_call_that_is_fast_enough_is_sent_once() -> None:
    async with connected(hedge_after_s=100.0, timeout_s=200.0) as client:
        await client.complete(request())
        assert len(client.server.requests) == 1


async def test_a_second_call_that_fails_leaves_the_first() -> None:
    slow = fake_model.Reply(body=fake_model.text("first").body, delay_s=1.0)
    async with connected(in_turn(slow, fake_model.refused(400)), **SOON) as client:
        found = await client.complete(request())
        completer = client.models.open("openai:priced@fake")
    assert found.text == "first"
    assert found.cost_usd is not None
    assert isinstance(completer, ChatCompleter)
    assert completer.hedges.cancelled == 0


async def test_when_both_fail_the_error_is_that_of_the_first() -> None:
    slow = fake_model.Reply(status=400, body=fake_model.refused(400, "first").body, delay_s=1.0)
    async with connected(in_turn(slow, fake_model.refused(400, "second")), **SOON) as client:
        with pytest.raises(ModelError, match="first"):
            await client.complete(request())


@pytest.mark.parametrize("concurrency", [1, "auto"])
async def test_a_busy_endpoint_gets_no_second_call(concurrency: int | str) -> None:
    with FakeModel(delay_s=0.15) as server:
        client = Client(server, concurrency=concurrency, hedge_after_s=0.05, timeout_s=20.0)
        async with client as completer:
            at_once = 1 if concurrency == 1 else 12
            await asyncio.gather(*(completer.complete(request()) for _ in range(at_once)))
        assert len(server.requests) == at_once


async def test_a_cancelled_call_cancels_both() -> None:
    ledger = Ledger()
    async with connected(in_turn(fake_model.SILENT, fake_model.SILENT), spending=ledger, **SOON) as client:
        call = asyncio.create_task(client.complete(request()))
        while len(client.server.requests) < 2:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert ledger.open == []
    assert len(ledger.settled) == 2


@pytest.mark.parametrize(
    ("first", "second", "cost"),
    [
        ((9.0, 1.0), (0.0, 2.0), 2.5),  # the first is dropped
        ((0.05, 1.0), (9.0, 2.0), 1.5),
        ((0.05, 1.0), (0.0, ModelError("no", "provider", cost_usd=0.25)), 1.25),
        ((0.05, 1.0), (0.0, ModelError("no", "provider", cost_usd=None)), None),
        ((0.05, ModelError("no", "provider", cost_usd=0.25)), (0.1, 1.0), 1.25),
    ],
)
async def test_an_answer_costs_what_both_calls_do(first: Any, second: Any, cost: float | None) -> None:
    left = iter((first, second))

    async def ask() -> Completion:
        wait_s, outcome = next(left)
        await asyncio.sleep(wait_s)
        if isinstance(outcome, ModelError):
            raise outcome
        return Completion(text="", cost_usd=outcome)

    found = await hedged(ask, after_s=0.01, may=lambda: True, dropped=lambda _: 0.5)
    assert found.cost_usd == cost


async def test_a_warning_says_what_is_known_of_the_calls_that_were_cancelled() -> None:
    hedges = Hedges(count=2)
    assert hedges.warning(1.5) == (
        "2 calls were sent a second time after 1.5 s (hedge_after_s); one answer counts, both are paid for"
    )
    hedges.dropped(Completion(text="a"), Price(input=2.0, output=8.0))
    assert hedges.warning(1.5).endswith("Costs are a lower bound: no server says what 1 cancelled call used")
    answer = Completion(text="a", cost_usd=0.5, usage=Usage(prompt=100_000, completion=9))
    hedges.dropped(answer, Price(input=2.0, output=8.0))
    assert (hedges.cancelled, hedges.answers_usd, hedges.prompts_usd) == (2, 0.5, 0.2)
    told = hedges.warning(1.5)
    assert (
        "2 cancelled calls used; sums leave out $0.50 for the answers that came instead, about $0.20" in told
    )
    hedges.dropped(answer, None)
    assert (hedges.answers_usd, hedges.prompts_usd) == (1.0, 0.2)
