"""Whose fault it was: errors that a server reports in a reply that its status calls a success."""

import json
from typing import Any

import pytest
from support.fake_model import Body, Reply
from support.model_clients import connected, request

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.llm.replies.provider_faults import broken_off, fault_in

EMPTY = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "stop"}
NO_USE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def beside(**error: Any) -> Body:
    """Return an error beside empty choices, as OpenRouter sends it."""
    return {"choices": [EMPTY], "usage": NO_USE, "error": {"message": "Provider returned error", **error}}


def finished(reason: str) -> Body:
    return {"choices": [{**EMPTY, "finish_reason": reason}], "usage": NO_USE}


def cut_off(reason: str, **more: str) -> Body:
    return {"choices": [{"message": {"content": "half of"}, "finish_reason": reason, **more}]}


def minimax(code: int | str) -> Body:
    """Return an empty reply with a fault beside its choices, as MiniMax sends it."""
    return {"choices": [EMPTY], "usage": NO_USE, "base_resp": {"status_code": code, "status_msg": "no"}}


PASSING = [
    (beside(code=429), "rate_limit"),
    (beside(code="429"), "rate_limit"),
    (beside(code="rate_limit_exceeded"), "rate_limit"),
    (beside(code=503), "server"),
    (beside(code=524), "server"),
    (beside(type="overloaded_error"), "server"),
    (beside(code=None), "server"),
    ({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}, "rate_limit"),
    ({"error": {"message": "The engine is overloaded, try again"}}, "server"),
    ({"error": "Too many requests"}, "rate_limit"),
    ({"object": "error", "message": "overloaded", "type": "InternalServerError", "code": 50301}, "server"),
    ({"code": 500, "msg": "internal", "success": False}, "server"),
    ({"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}, "rate_limit"),
    ({"choices": [{**EMPTY, "error": {"code": 502, "message": "upstream"}}]}, "server"),
    ({"choices": [{"message": None, "error": {"message": "upstream"}}]}, "server"),
    ({"choices": [], "error": {"code": 529, "message": "busy"}}, "server"),
    (finished("error"), "server"),
    (finished("network_error"), "server"),
    (finished("insufficient_system_resource"), "server"),
    (finished("abort"), "server"),
    ({"choices": [{"message": {"content": "half of"}, "finish_reason": "error"}]}, "server"),
    (cut_off("engine_overloaded"), "server"),
    (cut_off("OTHER"), "server"),
    (cut_off("stop", native_finish_reason="network_error"), "server"),
    (minimax(1002), "rate_limit"),
    (minimax("1013"), "server"),
    (minimax(9999), "server"),
]


class Once:
    """Answers with a fault once, then well."""

    def __init__(self, fault: Body | Reply) -> None:
        self._faults = [fault]

    def __call__(self, asked: Body, attempt: int) -> Reply | Body | str:
        return self._faults.pop() if self._faults else "at last"


@pytest.mark.asyncio
@pytest.mark.parametrize(("body", "code"), PASSING)
async def test_a_fault_that_passes_is_asked_again_and_no_answer(body: Body, code: str) -> None:
    async with connected(Once(body)) as client:
        found = await client.complete(request())
    assert (found.text, found.retries) == ("at last", 1)
    async with connected(lambda *_: body, retries=1) as client:
        with pytest.raises(ModelError) as caught:
            await client.complete(request())
    assert caught.value.code == code
    assert len(client.server.requests) == 2


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (beside(code=401, message="no such key"), "auth"),
        (beside(code="invalid_api_key"), "auth"),
        (beside(code=404), "not_found"),
        (beside(code=400, message="context length exceeded"), "rejected"),
        (beside(type="invalid_request_error"), "rejected"),
        (beside(code="content_filter"), "content_filter"),
        (beside(code="insufficient_quota"), "rate_limit"),
        ({"error": {"message": "odd"}}, "bad_response"),
        (minimax(1004), "auth"),
        (minimax(1008), "auth"),
        (minimax(2013), "rejected"),
        (minimax(1026), "content_filter"),
    ],
)
async def test_a_fault_that_stays_is_an_error_at_once(body: Body, code: str) -> None:
    async with connected(lambda *_: body) as client:
        with pytest.raises(ModelError) as caught:
            await client.complete(request())
    assert caught.value.code == code
    assert len(client.server.requests) == 1


@pytest.mark.parametrize(
    ("code", "status"),
    [
        *((code, 429) for code in (1002, 1039, 1041, 2045, 2056)),
        *((code, 401) for code in (1004, 2049)),
        *((code, 403) for code in (1026, 1027)),
        *((code, 400) for code in (1042, 2013)),
        (1001, 504),
        (1008, 402),
        (1000, 502),
    ],
)
def test_a_code_of_minimax_stands_for_a_status(code: int, status: int) -> None:
    fault = fault_in(minimax(code))
    assert fault is not None
    assert fault.status == status


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        ({"errors": [{"code": 429, "message": "slow"}, {"code": 500}]}, 429, "errors: slow (429)"),
        ({"errors": "no such model"}, 404, "errors: no such model"),
        ({"type": "error", "message": "busy"}, 503, "error: busy (error)"),
        ({"error": {"code": 599, "message": "x"}}, 599, "error: x (599)"),
        ({"error": {"code": 400, "message": "x"}}, 400, "error: x (400)"),
        ({"error": {"code": 600, "message": "x"}}, None, "error: x (600)"),
        ({"error": {"code": "bad_request", "status": 503, "message": "x"}}, 503, "error: x (503)"),
        ({"error": {"code": "rate limit"}}, 429, "error: rate limit"),
        ({"error": {"code": 400, "message": "no", "metadata": {"raw": "why"}}}, 400, "error: no: why (400)"),
        ({"error": {"metadata": {"raw": {"a": 1}}, "code": 400}}, 400, 'error: {"a": 1} (400)'),
        ({"error": {"message": "Deadline exceeded"}}, 504, "error: Deadline exceeded"),
        ({"error": {"message": "x", "code": "No Error", "type": "None"}}, None, "error: x (No Error)"),
    ],
)
def test_a_fault_says_where_it_stood_and_what_it_stands_for(
    error: Body, status: int | None, said: str
) -> None:
    fault = fault_in(error)
    assert fault is not None
    assert (str(fault), fault.status) == (said, status)


@pytest.mark.parametrize(
    "reason",
    [
        *("errored", "failed", "aborted", "cancelled", "canceled", "timeout", "overloaded"),
        *("server_error", "internal_error", "Internal Server-Error", "upstream_error"),
        *("service_unavailable", "rate_limit", "load_shed", "preempted"),
    ],
)
def test_a_provider_that_gave_up_has_not_answered(reason: str) -> None:
    fault = broken_off({"finish_reason": "stop", "native_finish_reason": reason})
    assert fault is not None
    assert str(fault) == f"the provider broke off: native_finish_reason {reason!r}"
    assert broken_off({"finish_reason": "stop", "native_finish_reason": "end_turn"}) is None


@pytest.mark.parametrize(
    "error",
    [None, {}, "", False, {"code": 0, "message": ""}, {"code": None}, {"code": "Success"}, "null", [], 0],
)
def test_an_empty_error_is_none(error: Any) -> None:
    assert fault_in({"choices": [EMPTY], "error": error}) is None


def test_a_code_without_words_beside_choices_is_no_error() -> None:
    assert fault_in({"choices": [EMPTY], "code": 0, "message": "ok"}) is None
    assert fault_in({"id": "x", "code": 7}) is None
    assert fault_in(minimax(0)) is None
    assert fault_in({"choices": [EMPTY], "base_resp": {"status_msg": "fine"}}) is None


@pytest.mark.asyncio
async def test_what_a_fault_used_is_counted_and_one_that_generated_nothing_costs_nothing() -> None:
    async with connected(Once(beside(code=429))) as client:
        assert (await client.complete(request())).cost_usd is not None
    async with connected(Once({"error": {"code": 429, "message": "x"}})) as client:
        assert (await client.complete(request())).cost_usd is not None
    half = {"choices": [{"message": {"content": "half"}, "finish_reason": "error"}]}
    async with connected(Once(half)) as client:
        assert (await client.complete(request())).cost_usd is None


@pytest.mark.asyncio
async def test_the_words_of_the_provider_behind_the_router_are_shown() -> None:
    error = beside(code=400, metadata={"raw": '{"error": "tools are not supported"}', "provider_name": "x"})
    async with connected(lambda *_: error) as client:
        with pytest.raises(ModelError, match="tools are not supported"):
            await client.complete(request())


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "waited_s"),
    [
        (beside(code=429, metadata={"headers": {"Retry-After": "7"}}), 7.0),
        (beside(code=429, message="Please try again in 20s"), 20.0),
        (Reply(status=429, headers={"retry-after-ms": "1500"}), 1.5),
        (Reply(status=429, headers={"x-ratelimit-reset-requests": "1m0s"}), 0.0),
        (Reply(status=503, body={"error": "Model is loading", "estimated_time": 4.5}), 4.5),
        (
            Reply(status=429, body=json.dumps([{"error": {"details": [{"retryDelay": "34s"}]}}]).encode()),
            34.0,
        ),
        (
            Reply(status=400, body={"error": {"code": "rate_limit_exceeded", "message": "try again in 3s"}}),
            3.0,
        ),
        (
            Reply(
                status=429, body={"error": {"message": "Check your billing details. Please retry in 9.5s."}}
            ),
            9.5,
        ),
    ],
)
async def test_the_wait_that_is_asked_for_is_waited(fault: Body | Reply, waited_s: float) -> None:
    async with connected(Once(fault), chance=0.0, timeout_s=50) as client:
        if waited_s:
            await client.complete(request())
            assert client.time.waits == [pytest.approx(waited_s)]
        else:
            with pytest.raises(ModelError, match="asks to wait 60 s, but"):
                await client.complete(request())
