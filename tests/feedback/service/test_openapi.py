"""The OpenAPI document, and the application held to it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support.buses import EmbeddedPlace
from support.services import Local, real_intake

from pytest_tfgrpo.core.events import FEEDBACK, REWARD, TRAJECTORY
from pytest_tfgrpo.core.schema import load_schema
from pytest_tfgrpo.feedback.service.app import EXPORTS, PAYLOADS
from pytest_tfgrpo.feedback.service.openapi import openapi


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    place = EmbeddedPlace(tmp_path)
    yield Local(real_intake(place.open()))
    place.close()


def test_the_document_describes_every_path_and_its_schemas_are_valid() -> None:
    document = json.loads(Local().get("/openapi.json").body)
    assert document == openapi()
    assert set(document["paths"]) == {*PAYLOADS, *EXPORTS, "/healthz", "/openapi.json"}
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    ("path", "subject", "name"),
    [
        ("/trajectories", TRAJECTORY, "trajectory"),
        ("/feedback", FEEDBACK, "feedback"),
        ("/rewards", REWARD, "reward"),
    ],
)
def test_the_examples_of_the_document_are_taken(local: Local, path: str, subject: str, name: str) -> None:
    examples = openapi()["components"]["schemas"][name.title()]["examples"]
    assert examples == load_schema(f"agent-rl/{name}")["examples"]
    assert PAYLOADS[path] == subject
    answer = local.post(path, json.dumps(examples).encode())
    assert answer.value == {"accepted": len(examples), "opted_out": 0, "refused": []}


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


@pytest.mark.parametrize("kind", ["application/json", "application/x-protobuf", "text/plain", ""])
@pytest.mark.parametrize("path", [*PAYLOADS, *EXPORTS])
def test_whatever_comes_is_answered_as_the_document_says(local: Local, path: str, kind: str) -> None:
    document = openapi()
    answers = document["paths"][path]["post"]["responses"]
    for body in BODIES.values():
        found = local.post(path, body, kind)
        assert found.status in (200, 400, 413, 415, 422)
        content = answers[str(found.status)]["content"]
        media = found.headers["content-type"].partition(";")[0]
        assert media in content
        if media == "application/json":
            schema = {"components": document["components"], **content[media]["schema"]}
            Draft202012Validator(schema).validate(found.value)
    assert local.reports == []
