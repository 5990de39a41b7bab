"""What the files of a batch say of its calls."""

import json
from typing import Any

import pytest

from pytest_tfgrpo.llm.batch.results import read_results

GOOD = {"custom_id": "a", "response": {"status_code": 200, "body": {"id": 1}}, "error": None}


def results(*lines: Any) -> Any:
    return read_results(["\n".join(json.dumps(line) for line in lines).encode()], {"a", "b"})


def test_a_reply_counts_once_also_where_another_line_says_that_it_was_not_made() -> None:
    unmade = {"custom_id": "a", "response": None, "error": {"code": "batch_expired"}}
    found = results(unmade, GOOD, GOOD, {**unmade, "custom_id": "b"})
    assert {key: reply.status for key, reply in found.replies.items()} == {"a": 200}
    assert "b" in found.unmade
    assert dict(found.odd) == {"given twice": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"response": None},
        {"response": None, "error": "no"},
        {"response": {"status_code": 99, "body": {}}},
        {"response": {"status_code": 600, "body": {}}},
        {"response": {"status_code": "200", "body": {}}},
        {"response": {"status_code": 200, "body": []}},
    ],
)
def test_a_line_without_a_response_or_an_error_is_not_readable(change: Any) -> None:
    found = results(GOOD | change)
    assert (found.replies, found.unmade, dict(found.odd)) == ({}, set(), {"not readable": 1})


@pytest.mark.parametrize("status", [100, 599])
def test_any_status_of_http_is_a_response(status: int) -> None:
    found = results(GOOD | {"response": {"status_code": status, "body": None}})
    assert found.replies["a"].status == status


def test_what_is_said_of_other_calls_is_counted_alone() -> None:
    assert dict(results(GOOD | {"custom_id": "c"}, GOOD | {"custom_id": 1}).odd) == {
        "for calls that were not in them": 2
    }


def test_an_error_of_a_call_that_was_made_is_its_reply() -> None:
    error = {"code": "invalid_request", "message": "no such model"}
    found = results(GOOD | {"response": None, "error": error})
    reply = found.replies["a"]
    assert (reply.status, json.loads(reply.body), found.unmade) == (500, {"error": error}, set())
