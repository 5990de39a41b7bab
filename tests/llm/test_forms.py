"""Forms of answers: demanded of servers that can hold a model to one, else asked for in words."""

import pytest
from support import fake_model
from support.fake_model import Answer, Body, Reply
from support.model_clients import connected, request

from pytest_tfgrpo.core.errors import ModelError

pytestmark = pytest.mark.asyncio
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
UNKNOWN = [
    fake_model.refused(400, "response_format.type must be text"),
    fake_model.refused(422, "unsupported: json_schema"),
    fake_model.refused(400, "parser generation failed: JSON schema error at #: unrecognized type x"),
    fake_model.refused(500, "1 validation error"),
    fake_model.refused(501, "not implemented"),
]


def formless(refusal: Reply) -> Answer:
    """Answer as a server that refuses every demand for a form."""
    return lambda body, attempt: refusal if "response_format" in body else "{}"


def in_words(body: Body) -> bool:
    return "response_format" not in body and "JSON Schema" in str(body["messages"][-1]["content"])


@pytest.mark.parametrize("refusal", UNKNOWN, ids=lambda reply: str(reply.status))
async def test_a_server_that_refuses_a_form_is_asked_in_words_at_once_and_from_then_on(
    refusal: Reply,
) -> None:
    async with connected(formless(refusal)) as client:
        answers = [await client.complete(request(schema=SCHEMA)) for _ in range(3)]
    assert [answer.text for answer in answers] == ["{}"] * 3
    assert [in_words(body) for body in client.server.requests] == [False, True, True, True]
    assert client.time.waits == []
    assert client.spending.open == []


async def test_a_server_that_has_held_a_form_is_not_doubted_for_one_fault() -> None:
    def answer(body: Body, attempt: int) -> Reply | str:
        return fake_model.refused(500) if len(client.server.requests) == 2 else "{}"

    async with connected(answer) as client:
        for _ in range(3):
            await client.complete(request(schema=SCHEMA))
    assert not any(map(in_words, client.server.requests))
    assert len(client.server.requests) == 4


async def test_a_server_that_refuses_words_too_is_told_for_what_it_is() -> None:
    async with connected(lambda body, attempt: fake_model.refused(500, "out of order"), retries=2) as client:
        with pytest.raises(ModelError, match="out of order") as caught:
            await client.complete(request(schema=SCHEMA))
    assert caught.value.code == "server"
    assert [in_words(body) for body in client.server.requests] == [False, True, True, True]


async def test_another_mistake_in_a_request_with_a_form_is_no_reason_to_ask_again() -> None:
    async with connected(lambda body, attempt: fake_model.refused(400, "too many tokens")) as client:
        with pytest.raises(ModelError, match="too many tokens"):
            await client.complete(request(schema=SCHEMA))
    assert len(client.server.requests) == 1


async def test_without_a_form_a_refusal_is_final_as_ever() -> None:
    async with connected(lambda body, attempt: fake_model.refused(400, "no response_format here")) as client:
        with pytest.raises(ModelError):
            await client.complete(request())
    assert len(client.server.requests) == 1
