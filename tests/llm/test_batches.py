"""Calls made in batches: gathered, answered by their keys, paid at the lower price."""

import asyncio

import pytest
from support import fake_model
from support.batched_clients import batched, texts
from support.fake_batches import FakeBatches
from support.model_clients import Client, Ledger, request

from pytest_tfgrpo.core.errors import BudgetError, ModelError
from pytest_tfgrpo.llm.batch import batches as batches_module
from pytest_tfgrpo.llm.calls import HELLO
from pytest_tfgrpo.llm.limits.pace import Pace
from pytest_tfgrpo.llm.limits.queueing import take_ticket

pytestmark = pytest.mark.asyncio


async def test_calls_are_one_batch_and_answered_by_their_keys_in_whatever_order() -> None:
    async with batched(FakeBatches(meddle=lambda lines: lines[::-1])) as client:
        assert texts(await client.all(40)) == [f"call {n}" for n in range(40)]
        assert [len(batch["keys"]) for batch in client.fake.batches.values()] == [40]
        assert client.server.refusals == []
        assert client.model.warnings == []


async def test_a_call_costs_its_share_of_the_price_and_cached_tokens_count() -> None:
    usage = fake_model.usage(1000, 100, cached=400)
    async with batched(None, lambda *_: fake_model.text("x", usage=usage)) as client:
        answer = await client.complete(request())
        assert answer.cost_usd == pytest.approx((600 * 1.0 + 400 * 0.5 + 100 * 10.0) / 1e6 / 2)
        assert client.spending.settled == [(answer.cost_usd, 1100)]
        assert client.spending.open == []
    async with batched(
        None, lambda *_: fake_model.text("x", usage=usage), options={"price_factor": 1.0}
    ) as dear:
        assert (await dear.complete(request())).cost_usd == pytest.approx(2 * (answer.cost_usd or 0.0))


async def test_what_may_be_spent_is_reserved_at_the_price_of_batches() -> None:
    async with batched(spending=Ledger(most_calls=2)) as client:
        found = await client.all(3)
        assert [isinstance(one, BudgetError) for one in found] == [False, False, True]
        assert len(client.server.requests) == 2
        half = client.model.bound(request())["usd"]
    async with Client(client.server) as whole:
        assert half == pytest.approx((whole.bound(request())["usd"] or 0.0) / 2)


async def test_waiting_for_a_batch_is_no_part_of_any_time_limit() -> None:
    ticket, rung = take_ticket(0), list[bool]()
    options = {"gather_s": 0.7}
    async with batched(timeout_s=5.0, standing=ticket.waiting, options=options) as client:
        timer = ticket.timer(0.4, lambda: rung.append(True))
        answer = await client.complete(request(timeout_s=1.0))
        timer.cancel()
        assert sum(client.time.waits) >= 10, "by the client's clock"
    assert (answer.text, answer.latency_ms, rung) == ("hello", 0.0, [])


async def test_a_batch_takes_so_many_calls_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches_module, "MOST_CALLS", 10)
    async with batched() as client:
        assert texts(await client.all(25)) == [f"call {n}" for n in range(25)]
        assert sorted(len(batch["keys"]) for batch in client.fake.batches.values()) == [5, 10, 10]
    monkeypatch.setattr(batches_module, "MOST_BYTES", 1000)
    async with batched() as client:
        assert texts(await client.all(8)) == [f"call {n}" for n in range(8)]
        assert len(client.fake.batches) > 1
        assert all(len(file) <= 1000 for name, file in client.fake.files.items() if b"custom_id" in file[:12])
        with pytest.raises(ModelError, match="a batch takes 1000"):
            await client.complete(request("x" * 2000))
        assert client.spending.open == []


async def test_the_concurrency_of_an_endpoint_limits_its_batches() -> None:
    async with batched(concurrency=4) as client:
        assert texts(await client.all(10)) == [f"call {n}" for n in range(10)]
        assert [len(batch["keys"]) for batch in client.fake.batches.values()] == [4, 4, 2]


async def test_whether_a_model_can_be_reached_is_found_out_without_a_batch() -> None:
    async with batched() as client:
        answer = await client.complete(HELLO)
        assert (answer.cost_usd, client.fake.batches, client.server.hellos) == (0.0, {}, [])
    async with batched() as client:
        client.server._keys = ["another"]
        with pytest.raises(ModelError, match="HTTP 401"):
            await client.complete(HELLO)


async def test_progress_can_be_read_while_a_batch_is_waited_for() -> None:
    async with batched(FakeBatches(looks=10**9), options={"poll_s": 0.01}, pace=Pace()) as client:
        waiting = asyncio.ensure_future(client.all(5))
        batches = client.model.batches
        assert batches is not None
        while not batches.progress:
            await asyncio.sleep(0.005)
        assert [(one.calls, one.done) for one in batches.progress] == [(5, 0)]
        waiting.cancel()
        await asyncio.wait([waiting])


async def test_a_cancelled_call_is_not_submitted_and_others_are_not_disturbed() -> None:
    async with batched() as client:
        calls = [asyncio.ensure_future(client.complete(request(f"call {n}"))) for n in range(3)]
        await asyncio.sleep(0)
        calls[1].cancel()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert texts([found[0], found[2]]) == ["call 0", "call 2"]
        assert len(client.fake.asked) == 2
