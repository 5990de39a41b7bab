"""The OpenAPI document, and the application held to it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from support.buses import EmbeddedPlace
from support.services import Local, real_intake

from pytest_tfgrpo.core.events import FEEDBACK, REWARD, TRAJECTORY
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.production.service.app import EXPORTS, PAYLOADS
from pytest_tfgrpo.production.service.openapi import _moved, openapi


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    place = EmbeddedPlace(tmp_path)
    yield Local(real_intake(place.open()))
    place.close()


def test_the_document_describes_every_path_and_its_schemas_are_valid() -> None:
    document = json.loads(Local().get("/openapi.json").body)
    assert document == openapi()
    assert set(document["paths"]) == {
        *PAYLOADS, *EXPORTS, "/healthz", "/openapi.json", "/models", "/metrics",
        *(f"/training/{path}" for path in ("start", "queue", "{job_id}/status", "{job_id}/cancel")),
    }  # fmt: skip
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


TAKEN = {"accepted": 1, "opted_out": 0, "refused": []}
REFUSED = {"index": 0, "code": "schema", "pointer": "", "message": "no"}


@pytest.mark.parametrize(
    ("name", "answer", "allowed"),
    [
        ("Taken", TAKEN, True),
        ("Taken", TAKEN | {"refused": [REFUSED]}, True),
        ("Taken", TAKEN | {"accepted": 0}, True),
        ("Taken", TAKEN | {"accepted": -1}, False),
        ("Taken", TAKEN | {"opted_out": "0"}, False),
        ("Taken", {"accepted": 1, "opted_out": 0}, False),
        ("Taken", TAKEN | {"refused": {}}, False),
        ("Taken", TAKEN | {"refused": ["no"]}, False),
        ("Taken", TAKEN | {"refused": [{"index": 0, "code": "schema", "pointer": ""}]}, False),
        ("Taken", TAKEN | {"refused": [REFUSED | {"message": 5}]}, False),
        ("Taken", [], False),
        ("Error", {"error": "no"}, True),
        ("Error", {"error": 5}, False),
        ("Error", {}, False),
        ("Health", {"status": "degraded", "parts": {"intake": "failing"}}, True),
        ("Health", {"status": "bad", "parts": {}}, False),
        ("Health", {"status": "ok", "parts": {"intake": "bad"}}, False),
        ("Health", {"status": "ok"}, False),
        ("ExportAnswer", {"partialSuccess": {"rejectedSpans": "1", "errorMessage": "bad_id"}}, True),
        ("ExportAnswer", {"partialSuccess": {"errorMessage": 1}}, False),
        ("ExportAnswer", {"partialSuccess": "no"}, False),
    ],
)
def test_the_schemas_of_answers_allow_what_is_answered_and_nothing_else(
    name: str, answer: object, allowed: bool
) -> None:
    schema = {**openapi(), "$ref": f"#/components/schemas/{name}"}
    assert Draft202012Validator(schema).is_valid(answer) is allowed


def test_every_path_says_how_it_answers_and_what_it_takes() -> None:
    paths = openapi()["paths"]
    refusals = {"200", "400", "401", "408", "413", "415", "421", "500", "503"}
    for path in (*PAYLOADS, *EXPORTS):
        post = paths[path]["post"]
        assert set(post["responses"]) == refusals | ({"422"} if path in PAYLOADS else set())
        assert post["requestBody"]["required"] is True
        types = {"application/json"} | ({"application/x-protobuf"} if path in EXPORTS else set())
        assert set(post["requestBody"]["content"]) == types
        assert all(set(answer["content"]) == types for answer in post["responses"].values())
    body = paths["/feedback"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert [one.get("maxItems") for one in body["anyOf"]] == [None, 1000]
    assert {paths[path]["post"]["operationId"] for path in (*PAYLOADS, *EXPORTS)} == {
        "postTrajectory", "postFeedback", "postReward", "exportSpans", "exportLogRecords",
    }  # fmt: skip
    assert [paths[path]["get"]["security"] for path in ("/healthz", "/openapi.json")] == [[{}], [{}]]


def test_the_paths_of_training_say_how_they_answer() -> None:
    paths = openapi()["paths"]
    own = {
        "/training/start": {"202", "400", "409", "422", "429"},
        "/training/{job_id}/status": {"200", "404"},
        "/training/{job_id}/cancel": {"202", "404", "409"},
        "/models": {"200"},
    }
    for path, wanted in own.items():
        (operation,) = paths[path].values()
        refused = {"401", "408", "413", "415", "421", "500", "503"}
        assert set(operation["responses"]) == wanted | refused
        assert [one["name"] for one in operation.get("parameters", ())] == ["job_id"] * ("{" in path)
    embedded = openapi()["components"]["schemas"]
    assert embedded["TrainingRequest"]["examples"] == load_schema("agent-rl/training-request")["examples"]


def test_references_of_a_schema_lead_to_their_place_in_the_document() -> None:
    given = {"a": [{"$ref": "#/$defs/x"}], "b": {"$ref": "other"}, "properties": {"$ref": {"const": "#/x"}}}
    assert _moved(given, "#/components/schemas/One/") == {
        "a": [{"$ref": "#/components/schemas/One/$defs/x"}],
        "b": {"$ref": "other"},
        "properties": {"$ref": {"const": "#/x"}},
    }
