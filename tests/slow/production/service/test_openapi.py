"""The application, held to its OpenAPI document."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from support.buses import EmbeddedPlace
from support.services import Local, real_intake

from pytest_tfgrpo.production.service.app import EXPORTS, PAYLOADS

CHECKS = (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
LOCALHOST = {"Host": "localhost"}


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    place = EmbeddedPlace(tmp_path)
    yield Local(real_intake(place.open()))
    place.close()


@pytest.mark.parametrize("path", [*PAYLOADS, *EXPORTS])
def test_whatever_comes_is_answered_as_the_document_says(local: Local, path: str) -> None:
    operation = schemathesis.openapi.from_asgi("/openapi.json", local.app)[path]["POST"]
    both = operation.as_strategy(GenerationMode.POSITIVE) | operation.as_strategy(GenerationMode.NEGATIVE)

    @settings(max_examples=10, database=None, phases=[Phase.generate])
    @given(case=both)
    def check(case: Case) -> None:
        answer = case.call(headers=LOCALHOST)
        seen.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    seen: set[int] = set()
    check()
    assert seen <= {200, 400, 413, 415, 422}
    assert local.reports == []


BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "no text": b"\xff",
    "null": b"null",
    "an empty array": b"[]",
    "an empty object": b"{}",
    "what fits no schema": b'[{"a": 1}, 2]',
    "no spans": b'{"resourceSpans": 1}',
    "too many": b"[" + b",".join([b"{}"] * 1001) + b"]",
}
