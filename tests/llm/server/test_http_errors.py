"""What a refusal of a server means for the next call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_tfgrpo.llm.replies.provider_faults import ProviderFault
from pytest_tfgrpo.llm.server.http_errors import HttpRefusal, read_fault, read_refusal
from pytest_tfgrpo.llm.server.transport import Reply


def reply(status: int, said: Any = "no", code: str = "", location: str = "", **waits: str) -> Reply:
    body = (
        said if isinstance(said, bytes) else json.dumps({"error": {"message": said, "code": code}}).encode()
    )
    return Reply(
        status, body, False, {name.replace("_", "-"): value for name, value in waits.items()}, location
    )


def refused(status: int, said: Any = "no", code: str = "", **waits: str) -> HttpRefusal:
    return read_refusal(reply(status, said, code, **waits))


@pytest.mark.parametrize(
    ("status", "said", "code", "waits", "expected"),
    [
        (429, "slow down", "", {}, ("rate_limit", True, False)),
        (429, "you exceeded", "insufficient_quota", {}, ("rate_limit", False, True)),
        (429, "see your billing page", "", {}, ("rate_limit", False, True)),
        (429, "see your billing page", "", {"retry_after": "3"}, ("rate_limit", True, False)),
        (429, "no", "insufficient_quota", {"retry_after": "3"}, ("rate_limit", False, True)),
        (429, "your credit balance is low", "", {"retry_after": "3"}, ("rate_limit", False, True)),
        (400, "no", "rate_limit_exceeded", {}, ("rate_limit", True, False)),
        (400, "no", "overloaded", {}, ("rate_limit", True, False)),
        (403, "no", "RESOURCE_EXHAUSTED", {}, ("rate_limit", True, False)),
        (403, "no", "too_many_requests", {}, ("rate_limit", True, False)),
        (422, "no", "rate_limit_exceeded", {}, ("rejected", False, False)),
        (400, "it was flagged", "", {}, ("content_filter", False, False)),
        (422, "it was flagged", "", {}, ("rejected", False, False)),
        (403, "stopped by moderation", "", {}, ("content_filter", False, False)),
        (400, "against our content policy", "", {}, ("content_filter", False, False)),
        (422, "no", "content_filter", {}, ("content_filter", False, False)),
        (408, "no", "", {}, ("server", True, False)),
        (409, "no", "", {}, ("server", True, False)),
        (425, "no", "", {}, ("server", True, False)),
        (503, "no", "", {}, ("server", True, False)),
        (402, "no", "", {}, ("auth", False, True)),
        (405, "no", "", {}, ("not_found", False, True)),
        (413, "no", "", {}, ("rejected", False, False)),
    ],
)
def test_whose_fault_a_refusal_is_and_whether_it_passes(
    status: int, said: str, code: str, waits: dict[str, str], expected: tuple[str, bool, bool]
) -> None:
    found = refused(status, said, code, **waits)
    assert (found.code, found.again, found.lasting) == expected
    assert found.message.startswith(f"HTTP {status}: {said}")
    assert found.wait_s == (3.0 if waits and found.again else 0.0)


@pytest.mark.parametrize(
    ("status", "said", "form"),
    [
        (400, "response_format is unknown", True),
        (422, "the grammar is unknown", True),
        (400, "the model is unknown", False),
        (404, "response_format is unknown", False),
        (500, "no", True),
        (501, "no", True),
        (502, "no", False),
    ],
)
def test_which_refusals_may_be_of_the_form_of_the_answer(status: int, said: str, form: bool) -> None:
    assert refused(status, said).form is form


@pytest.mark.parametrize(("status", "stream"), [(400, True), (422, True), (404, False)])
def test_a_server_that_wants_a_stream_says_so_with_a_status_of_the_request(status: int, stream: bool) -> None:
    assert refused(status, "only stream mode is supported, set stream to true").stream is stream


@pytest.mark.parametrize(
    ("status", "said", "hint"),
    [
        (400, "logprobs are unknown", "try 'logprobs: off' for this endpoint"),
        (422, "logprobs are unknown", "try 'logprobs: off' for this endpoint"),
        (422, "roles must alternate", "try 'system_role: user' for this endpoint"),
        (400, "temperature and logprobs are unknown", "try 'temperature: false' for this endpoint"),
        (413, "logprobs are unknown", None),
        (404, "no", "check the name of the model, and the base URL, which usually ends in /v1"),
        (405, "no", "check the name of the model, and the base URL, which usually ends in /v1"),
    ],
)
def test_a_refusal_says_what_to_try(status: int, said: str, hint: str | None) -> None:
    assert refused(status, said).message == f"HTTP {status}: {said}" + (f"; {hint}" if hint else "")


def test_of_a_long_page_the_beginning_is_told() -> None:
    assert refused(502, b"x" * 3000).message == "HTTP 502: " + "x" * 2000


def test_a_redirect_names_where_to_if_the_server_does() -> None:
    told = read_refusal(reply(307, location="https://other.example/v1"))
    assert told == (
        "not_found", "HTTP 307: redirected to https://other.example/v1; set base_url to it", False, True,
        False, False, 0.0,
    )  # fmt: skip
    assert read_refusal(reply(301)).message == "HTTP 301: redirected; set base_url to it"
    assert refused(400).code == "rejected"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<h1>Bad</h1><p>gateway</p>", "HTTP 502:  Bad  gateway "),
        (b'[{"error": {"message": "in a list"}}]', "HTTP 502: in a list"),
        (b"", "HTTP 502"),
    ],
)
def test_the_words_of_a_server_are_found_in_json_lists_and_pages(body: bytes, message: str) -> None:
    found = refused(502, body)
    assert " ".join(found.message.split()) == " ".join(message.split())


def test_an_error_in_the_body_of_a_success_is_what_its_code_would_be_as_a_status() -> None:
    answered = reply(200, "too busy", retry_after="3")
    busy = read_fault(ProviderFault("too busy", 503), answered)
    assert (busy.code, busy.again, busy.wait_s) == ("server", True, 3.0)
    assert busy.message == "HTTP 200 with an error (503) in its body: too busy"
    odd = read_fault(ProviderFault("odd", None), answered)
    assert (odd.code, odd.again, odd.lasting) == ("bad_response", False, False)
    assert odd.message == "the answer is not a completion: odd"
