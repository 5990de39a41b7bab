"""Batches of servers that fail, lose results or give them twice, and routes that are away."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from support import fake_model
from support.batched_clients import Batched, batched, texts
from support.fake_batches import FakeBatches, Lines
from support.fake_model import FakeModel, Reply, echo
from support.model_clients import KEY, connected, request

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.llm.calls import HELLO
from pytest_tfgrpo.llm.endpoints import Batching
from pytest_tfgrpo.llm.limits import patience

pytestmark = pytest.mark.asyncio


def lost(lines: Lines) -> Lines:
    return [line for line in lines if b"call 1" not in line]


async def test_a_missing_result_is_asked_again_once() -> None:
    times = iter(range(2))
    fake = FakeBatches(meddle=lambda lines: lost(lines) if next(times) == 0 else lines)
    async with batched(fake) as client:
        assert texts(await client.all(4)) == [f"call {n}" for n in range(4)]
        assert [len(batch["keys"]) for batch in fake.batches.values()] == [4, 1]
        assert len(client.spending.settled) == 5
        assert client.spending.settled.count((None, None)) == 1, "the server may have made it"


async def test_a_result_that_is_missing_twice_is_an_error_of_its_call_alone() -> None:
    async with batched(FakeBatches(meddle=lost)) as client:
        found = await client.all(4)
        assert [len(batch["keys"]) for batch in client.fake.batches.values()] == [4, 1]
    assert texts(found)[0] == "call 0"
    assert isinstance(found[1], ModelError)
    assert found[1].code == "bad_response"
    assert "batch_1 has no result for this call (2 attempts)" in str(found[1])


async def test_results_that_come_twice_or_for_nobody_or_as_garbage_count_once_and_are_told() -> None:
    def meddle(lines: Lines) -> Lines:
        stranger = lines[0].replace(b'"custom_id": "', b'"custom_id": "x')
        second = lines[1].replace(b"call 1", b"another")
        shapeless = [b'{"custom_id": 7}', b"[]", b"[" * 100_000, b'{"id": "half', b"\xff"]
        return [*lines, second, stranger, *shapeless, lines[0].replace(b"200", b'"200"')]

    async with batched(FakeBatches(meddle=meddle)) as client:
        assert texts(await client.all(3)) == ["call 0", "call 1", "call 2"]
        assert len(client.spending.settled) == 3
        assert client.model.warnings == [
            "openai:priced@fake: 2 results of batches for calls that were not in them",
            "openai:priced@fake: 1 result of batches given twice",
            "openai:priced@fake: 5 results of batches not readable",
        ]


async def test_what_is_wrong_with_the_results_of_several_batches_is_counted_together() -> None:
    def meddle(lines: Lines) -> Lines:
        return [*lines, lines[0].replace(b'"custom_id": "', b'"custom_id": "x')]

    async with batched(FakeBatches(meddle=meddle)) as client:
        for _ in range(2):
            assert texts(await client.all(1)) == ["call 0"]
        assert client.model.warnings == [
            "openai:priced@fake: 2 results of batches for calls that were not in them"
        ]


@pytest.mark.parametrize("end", ["expired", "cancelled"])
async def test_what_a_batch_ended_without_is_asked_again_and_the_rest_counts(end: str) -> None:
    async with batched(FakeBatches(ends=[end])) as client:
        assert texts(await client.all(6)) == [f"call {n}" for n in range(6)]
        assert [len(batch["keys"]) for batch in client.fake.batches.values()] == [6, 3]
        assert set(client.fake.asked.values()) == {1}
        assert client.spending.settled.count((0.0, 0)) == 3, "nobody pays for what was not made"


async def test_a_batch_that_expires_twice_is_an_error() -> None:
    async with batched(FakeBatches(ends=["expired", "expired"])) as client:
        (found,) = await client.all(1)
    assert isinstance(found, ModelError)
    assert (found.code, found.cost_usd) == ("server", 0.0)
    assert "batch_1 ended before this call was made" in str(found)


async def test_a_batch_that_failed_says_why_and_costs_nothing() -> None:
    async with batched(FakeBatches(ends=["failed"])) as client:
        found = await client.all(2)
        assert set(client.spending.settled) == {(0.0, 0)}
    assert isinstance(found[0], ModelError)
    assert found[0].code == "rejected"
    assert "batch batch_0 failed: model_not_found: sorry" in str(found[0])


async def test_a_batch_with_too_many_tokens_is_told_how_to_be_smaller() -> None:
    async with batched(FakeBatches(ends=["failed"], problem="token_limit_exceeded")) as client:
        with pytest.raises(ModelError, match="set a lower 'concurrency' for this endpoint") as caught:
            await client.complete(request())
    assert caught.value.code == "rate_limit"


TOOL = fake_model.calls(("lookup", {"key": "a"}))
SAME: list[Reply] = [
    *(fake_model.refused(status, "no KEY") for status in (400, 401, 403, 404, 429, 500)),
    *(fake_model.WRONG_SHAPE, fake_model.EMPTY_CHOICES, fake_model.filtered(), TOOL, fake_model.huge(5000)),
    *(fake_model.text("x", usage=usage) for usage in fake_model.WRONG_USAGE[:8]),
    *(
        fake_model.text("cut", finish="length"),
        fake_model.text(None, refusal="no"),
        fake_model.text(f"a {KEY}"),
    ),
    fake_model.sampled("ab", [-0.5, -1.5]),
]


@pytest.mark.parametrize("reply", SAME, ids=lambda reply: f"{reply.status} {str(reply.body)[-60:]}")
async def test_a_server_says_in_a_batch_what_it_says_otherwise(reply: Reply) -> None:
    fields: dict[str, Any] = {"retries": 0, "response_max_bytes": 1000, "logprobs": "raw"}
    asked = request(logprobs=True)
    async with connected(lambda *_: reply, keys=[KEY], **fields) as client:
        (direct,) = await asyncio.gather(client.complete(asked), return_exceptions=True)
        settled = client.spending.settled
    async with batched(None, lambda *_: reply, options={"price_factor": 1.0}, **fields) as client:
        (found,) = await asyncio.gather(client.complete(asked), return_exceptions=True)
        assert client.spending.settled == settled
    if isinstance(direct, ModelError) and isinstance(found, ModelError):
        assert (found.code, str(found), found.cost_usd) == (direct.code, str(direct), direct.cost_usd)
    else:
        assert found == direct


async def test_a_server_that_refuses_a_form_is_asked_in_words_in_the_next_batch() -> None:
    def answer(body: Mapping[str, Any], attempt: int) -> Reply | str:
        return fake_model.refused(400, "no response_format here") if "response_format" in body else "{}"

    async with batched(None, answer, retries=0) as client:
        assert texts(await client.all(3, schema={"type": "object"})) == ["{}"] * 3
        assert [len(batch["keys"]) for batch in client.fake.batches.values()] == [3, 3]


@pytest.mark.parametrize(("status", "code"), [(400, "rejected"), (429, "rate_limit"), (500, "server")])
async def test_a_call_that_is_refused_within_a_batch_is_like_any_other(status: int, code: str) -> None:
    refusals = iter(range(1))

    def answer(body: Mapping[str, Any], attempt: int) -> Reply | str:
        return fake_model.refused(status) if next(refusals, None) is not None else "well"

    async with batched(None, answer, retries=1) as client:
        (found,) = await client.all(1)
    if status == 400:
        assert isinstance(found, ModelError)
        assert found.code == code
    else:
        assert texts([found]) == ["well"]
        assert len(client.fake.batches) == 2


async def test_an_endpoint_without_batch_routes_is_named_before_anything_is_sent() -> None:
    with FakeModel(echo) as server:
        client = Batched(server, batch=Batching(gather_s=0.02))
        async with client:
            found = await client.all(2)
            with pytest.raises(ModelError, match="has no batch routes"):
                await client.complete(HELLO)
    assert isinstance(found[0], ModelError)
    assert found[0].code == "not_found"
    assert "has no batch routes (GET /batches: HTTP 404" in str(found[0])
    assert client.spending.settled == [(0.0, 0)] * 2


PASSING = [fake_model.refused(503), fake_model.rate_limited("40"), fake_model.NOT_JSON, fake_model.RESET]


@pytest.mark.parametrize("route", ["GET /batches", "POST /files", "GET /batches/*", "GET /files/*/content"])
async def test_faults_of_the_routes_that_pass_are_waited_for(
    route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "TOTAL_S", 120.0)  # of a clock that is not the machine's
    faults = PASSING if route != "GET /files/*/content" else PASSING[:2]
    async with batched(FakeBatches(faults={route: faults})) as client:
        assert texts(await client.all(3)) == [f"call {n}" for n in range(3)]
        assert 40.0 in client.time.waits, "as the server asks"
        assert set(client.fake.asked.values()) == {1}


async def test_a_batch_whose_submission_got_no_answer_is_looked_for_before_it_is_submitted_again() -> None:
    other = {"input_file_id": "file-0", "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    faults = [fake_model.refused(503), FakeBatches.MADE_UNHEARD]
    async with batched(FakeBatches(faults={"POST /batches": faults})) as client:
        names = [f"other_{n}" for n in range(250)]
        client.fake.batches = {name: {**other, "id": name, "metadata": None} for name in names}
        assert texts(await client.all(3)) == [f"call {n}" for n in range(3)]
        assert len(client.fake.batches) == 251
        assert set(client.fake.asked.values()) == {1}


async def test_a_batch_that_never_ends_is_an_error_after_its_window() -> None:
    async with batched(
        FakeBatches(looks=10**9), options={"completion_window": "2h", "poll_s": 100}
    ) as client:
        (found,) = await client.all(1)
        assert client.spending.settled == [(None, None)]
    assert isinstance(found, ModelError)
    assert found.code == "timeout"
    assert "batch_0 was not completed within 2h" in str(found)
    assert 2 * 3600 < sum(client.time.waits) < 4 * 3600


@pytest.mark.parametrize(
    ("route", "fault", "settled"),
    [
        ("POST /files", fake_model.refused(500), (0.0, 0)),
        ("POST /batches", fake_model.refused(400), (0.0, 0)),
        ("POST /batches", fake_model.refused(500), (None, None)),
        ("GET /batches/*", fake_model.refused(401), (None, None)),
        ("GET /files/*/content", fake_model.refused(404), (None, None)),
    ],
)
async def test_what_the_server_may_bill_counts_against_the_budget(
    route: str, fault: Reply, settled: tuple[float | None, int | None]
) -> None:
    async with batched(FakeBatches(faults={route: [fault] * 1000})) as client:
        (found,) = await client.all(1)
        assert isinstance(found, ModelError)
        assert found.cost_usd == settled[0]
        assert client.spending.settled == [settled]
