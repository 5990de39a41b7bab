"""Each fault of a server has its outcome; none leaves money reserved."""

from typing import Any

import pytest
from support import fake_model
from support.fake_model import FakeModel, Reply
from support.model_clients import Client, Ledger, connected, request

from pytest_tfgrpo.core.errors import BudgetError, ModelError
from pytest_tfgrpo.llm.protocol import Completion

pytestmark = pytest.mark.asyncio

PAID_FOR_NOTHING = (0.0, 0)
UNKNOWN = (None, None)


async def outcome(reply: Reply, **fields: Any) -> tuple[Completion | ModelError, Client]:
    """Ask a server that always answers `reply`, once, without retries."""
    async with connected(lambda *_: reply, **{"retries": 0, **fields}) as client:
        try:
            return await client.complete(request()), client
        except ModelError as error:
            return error, client


@pytest.mark.parametrize(
    ("reply", "code", "settled"),
    [
        pytest.param(fake_model.refused(400), "rejected", PAID_FOR_NOTHING, id="400"),
        pytest.param(fake_model.refused(401), "auth", PAID_FOR_NOTHING, id="401"),
        pytest.param(fake_model.refused(402, "Insufficient balance"), "auth", PAID_FOR_NOTHING, id="402"),
        pytest.param(fake_model.refused(403), "auth", PAID_FOR_NOTHING, id="403"),
        pytest.param(fake_model.refused(404), "not_found", PAID_FOR_NOTHING, id="404"),
        pytest.param(fake_model.refused(422), "rejected", PAID_FOR_NOTHING, id="422"),
        pytest.param(fake_model.rate_limited(), "rate_limit", PAID_FOR_NOTHING, id="429"),
        pytest.param(fake_model.refused(500), "server", PAID_FOR_NOTHING, id="500"),
        pytest.param(fake_model.OVERLOADED, "server", PAID_FOR_NOTHING, id="503 in HTML"),
        pytest.param(fake_model.REDIRECT, "not_found", PAID_FOR_NOTHING, id="redirect"),
        pytest.param(
            fake_model.refused(400, "blocked", code="content_filter"),
            "content_filter",
            PAID_FOR_NOTHING,
            id="filtered prompt",
        ),
        pytest.param(
            fake_model.refused(403, "Your input was flagged"),
            "content_filter",
            PAID_FOR_NOTHING,
            id="flagged prompt",
        ),
        pytest.param(fake_model.RESET, "connection", UNKNOWN, id="reset in mid-body"),
        pytest.param(fake_model.TOO_SHORT, "connection", UNKNOWN, id="body shorter than announced"),
        pytest.param(fake_model.TOO_LONG, "bad_response", UNKNOWN, id="body longer than announced"),
        pytest.param(fake_model.NOT_JSON, "bad_response", UNKNOWN, id="invalid JSON"),
        pytest.param(fake_model.WRONG_SHAPE, "bad_response", UNKNOWN, id="wrong shape"),
        pytest.param(fake_model.huge(5_000_000), "oversize", UNKNOWN, id="too large"),
    ],
)
async def test_a_fault_has_its_code_and_its_price(
    reply: Reply, code: str, settled: tuple[float | None, int | None]
) -> None:
    error, client = await outcome(reply)
    assert isinstance(error, ModelError)
    assert error.code == code
    assert str(error).startswith("openai:priced@fake: ")
    assert "\n" not in str(error)
    assert len(str(error)) < 500
    assert client.spending.settled == [settled]
    assert client.spending.open == []
    assert len(client.server.requests) == 1


async def test_empty_choices_and_filtered_answers_cost_what_the_server_counted() -> None:
    empty = {**fake_model.EMPTY_CHOICES.body, "usage": fake_model.usage(100, 10)}  # type: ignore[dict-item]
    filtered = fake_model.text(None, finish="content_filter", usage=fake_model.usage(100, 10))
    for reply, code in ((Reply(body=empty), "bad_response"), (filtered, "content_filter")):
        error, client = await outcome(reply)
        assert isinstance(error, ModelError)
        assert error.code == code
        assert client.spending.settled == [(pytest.approx(0.0002), 110)]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            "'max_tokens' is not supported, use 'max_completion_tokens'",
            "max_tokens_field: max_completion_tokens",
        ),
        ("Unsupported value: 'temperature' does not support 0.5", "temperature: false"),
        ("response_format of type json_schema is not available", "structured: json_object or none"),
        ("Extra inputs are not permitted: seed", "seed: false"),
        ("System role not supported", "system_role: user"),
    ],
)
async def test_a_server_that_refuses_a_part_of_the_protocol_gets_a_hint(said: str, line: str) -> None:
    error, *_ = await outcome(fake_model.refused(400, said))
    assert f"try '{line}' for this endpoint" in str(error)


async def test_a_server_without_model_or_path_makes_the_client_say_what_to_check() -> None:
    error, *_ = await outcome(fake_model.refused(404, "no such path"))
    assert "HTTP 404: no such path; check the name of the model, and the base URL" in str(error)


async def test_a_request_that_is_no_json_is_not_sent() -> None:
    async with connected() as client:
        with pytest.raises(ModelError, match="the request is not valid JSON") as caught:
            await client.complete(request(schema={"maximum": float("nan")}))
    assert caught.value.code == "rejected"
    assert client.spending.settled == []
    assert client.server.connections == 0


async def test_a_filter_that_leaves_text_is_an_outcome_and_no_error() -> None:
    answer, *_ = await outcome(fake_model.text("half", finish="content_filter"))
    assert isinstance(answer, Completion)
    assert (answer.text, answer.finish) == ("half", "content_filter")


@pytest.mark.parametrize("reply", [fake_model.SILENT, fake_model.DRIP], ids=["never", "slow drip"])
async def test_an_answer_that_takes_too_long_is_a_timeout_and_perhaps_paid_for(reply: Reply) -> None:
    error, client = await outcome(reply, timeout_s=0.1, retries=4)
    assert isinstance(error, ModelError)
    assert error.code == "timeout"
    assert "0.1 s" in str(error)
    assert client.spending.settled == [UNKNOWN]


async def test_what_a_free_server_does_costs_nothing_even_if_it_does_not_count() -> None:
    for reply in (fake_model.text("42", usage=None), fake_model.NOT_JSON):
        answer, client = await outcome(reply, free=True)
        assert getattr(answer, "cost_usd", 0.0) == 0.0
        assert client.spending.settled == [(0.0, None)]


async def test_a_server_that_is_not_there_costs_nothing() -> None:
    with FakeModel() as server:
        pass
    client = Client(server, retries=1)
    async with client as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(request())
    assert caught.value.code == "connection"
    assert "(2 attempts)" in str(caught.value)
    assert client.spending.settled == [PAID_FOR_NOTHING, PAID_FOR_NOTHING]


@pytest.mark.parametrize("usage", fake_model.WRONG_USAGE)
async def test_figures_that_cannot_be_true_are_unknown(usage: Any) -> None:
    answer, client = await outcome(fake_model.text("42", usage=usage))
    assert isinstance(answer, Completion)
    assert answer.usage is None
    assert answer.cost_usd is None
    assert client.spending.settled == [UNKNOWN]


async def test_broken_arguments_reach_the_caller_as_they_were_written() -> None:
    answer, *_ = await outcome(fake_model.BROKEN_ARGUMENTS)
    assert isinstance(answer, Completion)
    assert answer.finish == "tool_calls"
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("lookup", '{"key": "a')]


async def test_a_body_up_to_the_limit_is_read_whole() -> None:
    answer, *_ = await outcome(fake_model.huge(3_000_000))
    assert isinstance(answer, Completion)
    assert len(answer.text) == 3_000_000


async def test_a_failed_call_with_no_money_left_is_not_made_again() -> None:
    async with connected(lambda *_: fake_model.OVERLOADED, spending=Ledger(most_calls=2)) as client:
        with pytest.raises(BudgetError):
            await client.complete(request())
    assert len(client.server.requests) == 2
    assert client.spending.open == []
