"""Log-probabilities of a server: kept as they are, or null with the reason, whatever it sends."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fake_model
from support.fake_model import OVERLOADED, Answer, Body, FakeModel, Reply
from support.model_clients import KEY, Client, connected, request
from support.reached import reached, reaches

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.llm.protocol import Completion
from pytest_tfgrpo.llm.replies.response import read_sampled

VALUES = (-0.25, -1.0625, -3.5)


def complete(answer: Answer | Reply, *, extra: tuple[str, ...] = (), **fields: Any) -> Completion:
    """Return the completion of a request that wants log-probabilities; `fields` are those of the endpoint."""

    async def ask() -> Completion:
        with FakeModel((lambda *_: answer) if isinstance(answer, Reply) else answer, extra=extra) as server:
            async with Client(server, **{"logprobs": "raw", **fields}) as client:
                return await client.complete(request(logprobs=True))

    return asyncio.run(ask())


@pytest.mark.parametrize("kind", ["raw", "processed", "unknown"])
def test_values_come_with_their_temperature_and_the_kind_that_the_endpoint_says(kind: str) -> None:
    found = complete(fake_model.sampled("abc", VALUES), logprobs=kind)
    assert found.sampled == Sampled(kind=kind, logprobs=VALUES, temperature=0.5)  # type: ignore[arg-type]
    assert found.text == "abc"


def test_ids_come_where_the_server_is_asked_for_them() -> None:
    def answer(body: Body, _: int) -> Reply:
        return fake_model.sampled("abc", VALUES, ids=[5, 0, 151643] if body.get("return_token_ids") else None)

    asking = {"extra_body": {"return_token_ids": True}}
    found = complete(answer, extra=("return_token_ids",), **asking)
    assert found.sampled is not None
    assert found.sampled.token_ids == (5, 0, 151643)
    plain = complete(answer)
    assert plain.sampled == replace(found.sampled, token_ids=None)


@pytest.mark.parametrize(
    ("fields", "temperature"),
    [
        ({"temperature": False}, None),
        ({"temperature": False, "extra_body": {"temperature": 1}}, 1.0),
        ({"extra_body": {"temperature": 2.0}}, 0.5),
    ],
)
def test_a_temperature_is_known_only_where_it_was_sent(
    fields: dict[str, Any], temperature: float | None
) -> None:
    found = complete(fake_model.sampled("abc", VALUES), extra=("temperature",), **fields).sampled
    assert found is not None
    assert (found.temperature, found.logprobs) == (temperature, VALUES)


def test_nobody_who_does_not_ask_gets_any() -> None:
    reply = fake_model.sampled("abc", VALUES)
    assert complete(reply, logprobs="off").sampled is None

    async def unasked() -> Completion:
        async with connected(lambda *_: reply, logprobs="raw") as client:
            return await client.complete(request())

    assert asyncio.run(unasked()).sampled is None


def test_a_retry_counts_only_what_it_answers() -> None:
    def answer(_: Body, attempt: int) -> Reply:
        return OVERLOADED if attempt == 0 else fake_model.sampled("abc", VALUES)

    found = complete(answer)
    assert (found.retries, found.sampled and found.sampled.logprobs) == (1, VALUES)


def test_tokens_of_tool_calls_and_of_reasoning_are_tokens_too() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    reply = fake_model.sampled(None, VALUES, tool_calls=[call], reasoning_content="two of the tokens")
    found = complete(reply)
    assert found.finish == "tool_calls"
    assert found.sampled == Sampled(kind="raw", logprobs=VALUES, temperature=0.5)


def test_tokens_that_would_spell_the_key_are_not_kept() -> None:
    reply = replace(fake_model.sampled("the key is KEY", VALUES, ids=[1, 2, 3]), echo_key=True)
    found = complete(reply)
    assert KEY not in found.text
    assert found.sampled == Sampled(kind="raw", temperature=0.5, reason="redacted")


def test_a_server_that_offers_none_is_asked_and_its_answer_kept() -> None:
    found = complete(fake_model.text("abc"))
    assert found.sampled == Sampled(kind="raw", temperature=0.5, reason="missing_logprobs")
    refused = fake_model.refused(400, "This model does not support logprobs")
    with pytest.raises(ModelError, match="try 'logprobs: off' for this endpoint"):
        complete(refused)


def test_log_probabilities_make_no_answer_too_large_unless_there_are_more_than_tokens_asked_for() -> None:
    """The client asks for at most 1000 tokens, each of which may have 512 bytes."""
    reply = fake_model.sampled("abc", [-1.0] * 1000)
    assert len(json.dumps(reply.body)) > 60_000
    assert complete(reply, response_max_bytes=1000).text == "abc"
    with pytest.raises(ModelError, match="larger than 1000 bytes"):
        complete(reply, response_max_bytes=1000, logprobs="off")
    with pytest.raises(ModelError, match="larger than 513000 bytes") as raised:
        complete(fake_model.sampled("abc", [-1.0] * 10_000), response_max_bytes=1000)
    assert raised.value.code == "oversize"


@pytest.mark.parametrize("written", ["NaN", "-Infinity", "Infinity", "1e999", "-1e999", "null"])
def test_a_number_that_is_none_costs_the_log_probabilities_and_not_the_answer(written: str) -> None:
    body = json.dumps(fake_model.sampled("abc", [-1.0, -0.125]).body).replace("-0.125", written)
    found = complete(Reply(body=body.encode()))
    assert found.sampled == Sampled(kind="raw", temperature=0.5, reason="not_finite")
    assert found.text == "abc"


@pytest.mark.parametrize("place", ['"content": "abc"', '"prompt_tokens": 10'])
def test_elsewhere_such_a_number_is_still_none(place: str) -> None:
    name = place.partition(":")[0]
    body = json.dumps(fake_model.sampled("abc", VALUES).body).replace(place, f"{name}: NaN")
    reply = Reply(body=body.encode())
    with pytest.raises(ModelError, match="not JSON: NaN"):
        complete(reply, logprobs="off")
    if "content" in place:
        with pytest.raises(ModelError, match="content nan is neither"):
            complete(reply)
    else:
        assert complete(reply).usage is None


def read(logprobs: Any, token_ids: Any = None, count: int | None = None) -> Sampled:
    body = fake_model.completion({"role": "assistant", "content": "abc"})
    body["choices"][0] |= {"logprobs": logprobs, "token_ids": token_ids}
    usage = None if count is None else Usage(prompt=10, completion=count)
    return read_sampled(body, "raw", 0.5, usage)


def entries(*values: Any, **more: Any) -> dict[str, Any]:
    return {"content": [{"token": "x", "logprob": value, **more} for value in values]}


@pytest.mark.parametrize(
    ("logprobs", "token_ids", "count", "reason"),
    [
        (None, None, 2, "missing_logprobs"),
        ({}, None, 2, "missing_logprobs"),
        ({"content": None, "refusal": None}, None, 2, "missing_logprobs"),
        ({"content": []}, None, None, "missing_logprobs"),
        ({"content": []}, None, 2, "short"),
        (entries(-1.0), None, 2, "short"),
        (entries(-1.0, -1.0, -1.0), None, 2, "long"),
        (entries(-1.0, None), None, 2, "not_finite"),
        (entries(-1.0, math.nan), None, 2, "not_finite"),
        (entries(-1.0, -math.inf), None, 2, "not_finite"),
        (entries(-1.0, -(10**400)), None, 2, "not_finite"),
        (entries(-1.0, -9999.0), None, 2, "placeholder"),
        (entries(-1.0, -3.4028234663852886e38), None, 2, "placeholder"),
        (entries(-1.0, 0.01), None, 2, "positive"),
        (entries(-1.0, "-1.0"), None, 2, "malformed"),
        (entries(-1.0, [-1.0]), None, 2, "malformed"),
        (entries(-1.0, True), None, 2, "malformed"),
        ("none", None, 2, "malformed"),
        ([-1.0, "x"], None, 2, "malformed"),
        ({"content": "none"}, None, 2, "malformed"),
        ({"content": {"logprob": -1.0}}, None, 2, "malformed"),
        ({"content": [-1.0, {"logprob": -1.0}]}, None, 2, "malformed"),
        ({"content": [{"token": "x"}, {"token": "y"}]}, None, 2, "not_finite"),
        ({"token_logprobs": [None, -1.0]}, None, 2, "not_finite"),
        ({"content": [{"prob": 0.0}, {"prob": 1.0}]}, None, 2, "not_finite"),
        ({"content": [{"prob": 1.5}, {"prob": 1.0}]}, None, 2, "positive"),
        (entries(-1.0, -1.0), [1], 2, "token_ids"),
        (entries(-1.0, -1.0), [1, -1], 2, "token_ids"),
        (entries(-1.0, -1.0), [1, 1.0], 2, "token_ids"),
        (entries(-1.0, -1.0), [1, True], 2, "token_ids"),
        (entries(-1.0, -1.0), "12", 2, "token_ids"),
        (entries(-1.0, -1.0, id="5"), None, 2, "token_ids"),
    ],
)
def test_what_cannot_be_relied_on_is_null_with_the_reason(
    logprobs: Any, token_ids: Any, count: int | None, reason: str
) -> None:
    assert read(logprobs, token_ids, count) == Sampled(kind="raw", temperature=0.5, reason=reason)


def test_dialects_of_servers_are_read() -> None:
    assert read(entries(-1.0, -2, 0.0, id=7), count=3).token_ids == (7, 7, 7)
    assert read({"content": [{"token": "token_id:31", "logprob": -1.0}]}).token_ids == (31,)
    assert read({"content": [{"id": 4, "prob": 0.5}]}, count=1).logprobs == (math.log(0.5),)
    assert read({"tokens": ["a"], "token_logprobs": [-1.5]}, count=1).logprobs == (-1.5,)
    assert read({"content": None, "refusal": [{"logprob": -1.5}]}, count=1).logprobs == (-1.5,)
    assert read({"content": []}, count=0).logprobs == ()


def test_a_rounded_zero_is_zero() -> None:
    assert read(entries(1e-7, -1.0), count=2).logprobs == (0.0, -1.0)


garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["content", "refusal", "logprob", "prob", "token", "id", "token_logprobs", "top_logprobs"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


sound = st.lists(st.tuples(st.floats(-20, 0), st.integers(0, 9)), max_size=5).flatmap(
    lambda drawn: st.tuples(
        st.just(entries(*[logprob for logprob, _ in drawn])),
        st.just([id_ for _, id_ in drawn]) | garbage,
        st.sampled_from([None, len(drawn)]),
    )
)


@reaches("sound", "with ids", "null")
@given(st.tuples(garbage, garbage, st.none() | st.integers(0, 5)) | sound)
def test_whatever_a_server_sends_is_sound_or_null(sent: tuple[Any, Any, int | None]) -> None:
    logprobs, token_ids, count = sent
    found = read(logprobs, token_ids, count)
    assert (found.logprobs is None) is bool(found.reason)
    if found.logprobs is None:
        reached("null")
        assert found.token_ids is None
        return
    reached("sound")
    reached("with ids", found.token_ids)
    assert all(type(value) is float and -9999 < value <= 0 for value in found.logprobs)
    assert count in (None, len(found.logprobs))
    assert found.token_ids is None or len(found.token_ids) == len(found.logprobs)
    json.dumps(found.logprobs, allow_nan=False)
