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
        assert "type" in schema or "properties" in schema or "oneOf" in schema or "anyOf" in schema
        assert not {"$id", "$schema"} & schema.keys()


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


def test_every_reference_of_the_document_leads_to_a_part_of_it() -> None:
    def references(value: object) -> Iterator[str]:
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from references(part)
        if isinstance(value, dict) and isinstance(value.get("$ref"), str):
            yield value["$ref"]

    document = openapi()
    found = set(references(document))
    assert len(found) > 5
    for reference in found:
        part: object = document
        for step in reference.removeprefix("#/").split("/"):
            assert isinstance(part, dict), reference
            part = part[step]
