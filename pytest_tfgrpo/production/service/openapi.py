"""The OpenAPI 3.1 document of the service, with the schemas of the events in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from types import MappingProxyType

from pytest_tfgrpo.core.events import (
    FEEDBACK,
    REWARD,
    SCHEMAS,
    TRAINING_REQUEST,
    TRAINING_STATUS,
    TRAJECTORY,
)
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.core.wire.wire import Json

_NAMES = MappingProxyType({TRAJECTORY: "Trajectory", FEEDBACK: "Feedback", REWARD: "Reward"})
_PAYLOADS = MappingProxyType({"/trajectories": TRAJECTORY, "/feedback": FEEDBACK, "/rewards": REWARD})
_COUNT: Json = {"type": "integer", "minimum": 0}
_TEXT: Json = {"type": "string"}
_TAKEN: Json = {
    "type": "object",
    "required": ["accepted", "opted_out", "refused"],
    "properties": {
        "accepted": {**_COUNT, "description": "stored for good"},
        "opted_out": {**_COUNT, "description": "dropped, as their users or sessions wish"},
        "refused": {
            "type": "array",
            "description": "kept as dead letters",
            "items": {
                "type": "object",
                "required": ["index", "code", "pointer", "message"],
                "properties": {"index": _COUNT, "code": _TEXT, "pointer": _TEXT, "message": _TEXT},
            },
        },
    },
}
_ERROR: Json = {"type": "object", "required": ["error"], "properties": {"error": _TEXT}}
_PARTIAL: Json = {
    "type": "object",
    "properties": {"partialSuccess": {"type": "object", "properties": {"errorMessage": _TEXT}}},
}
_HEALTH: Json = {
    "type": "object",
    "required": ["status", "parts"],
    "properties": {
        "status": {"enum": ["ok", "degraded"]},
        "parts": {"type": "object", "additionalProperties": {"enum": ["ok", "failing"]}},
    },
}


_JOB_ID: Json = {
    "name": "job_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "format": "uuid"},
}
_JOB: Json = {
    "type": "object",
    "required": ["training_job_id", "status"],
    "properties": {"training_job_id": _TEXT, "status": {"enum": ["queued", "running", "cancelled"]}},
}
_QUEUE: Json = {
    "type": "object",
    "required": ["depth", "running"],
    "properties": {
        "depth": {"type": "integer", "minimum": 0, "description": "jobs that wait"},
        "running": {"type": ["string", "null"], "description": "the job that runs"},
    },
}
_MODELS: Json = {
    "type": "object",
    "required": ["models"],
    "properties": {
        "models": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["training_job_id", "base_model", "algorithm", "final_checkpoint", "timestamp"],
            },
        }
    },
}


@cache
def openapi() -> Mapping[str, Json]:
    """Return the document; do not modify it."""
    paths: dict[str, Json] = {path: {"post": _post_payloads(_NAMES[of])} for path, of in _PAYLOADS.items()}
    for path, what in (("/v1/traces", "spans"), ("/v1/logs", "log records")):
        paths[path] = {"post": _post_export(what)}
    paths |= _training_paths()
    paths["/metrics"] = {"get": _metrics()}
    paths["/healthz"] = {"get": _get("Whether all is well", _reference("Health"))}
    paths["/openapi.json"] = {"get": _get("This document", {"type": "object"})}
    schemas = {name: _embedded(name, SCHEMAS[of]) for of, name in _NAMES.items()}
    schemas["TrainingRequest"] = _embedded("TrainingRequest", SCHEMAS[TRAINING_REQUEST])
    schemas["TrainingStatus"] = _embedded("TrainingStatus", SCHEMAS[TRAINING_STATUS])
    schemas |= {"Taken": _TAKEN, "Error": _ERROR, "ExportAnswer": _PARTIAL, "Health": _HEALTH}
    return {
        "openapi": "3.1.0",
        "info": {"title": "pytest-tfgrpo feedback loop", "version": version("pytest-tfgrpo")},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _post_payloads(name: str) -> Json:
    one = _reference(name)
    body: Json = {"anyOf": [one, {"type": "array", "items": one, "maxItems": 1000}]}
    return {
        "summary": f"Store one payload of the schema {name}, or several",
        "operationId": f"post{name}",
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": _content("Stored for good, but for what is refused of an array", _reference("Taken")),
            "400": _content("The body is no JSON", {"anyOf": [_reference("Taken"), _reference("Error")]}),
            "422": _content("The payload, which came alone, is refused", _reference("Taken")),
            **_refusals(_reference("Error")),
        },
    }


def _training_paths() -> dict[str, Json]:
    """Return the paths of training jobs."""
    error, unknown = _reference("Error"), "There is no such job"
    refusals = _refusals(error)
    body = {"required": True, "content": {"application/json": {"schema": _reference("TrainingRequest")}}}
    start: Json = {
        "summary": "Ask for a training job",
        "operationId": "startTraining",
        "requestBody": body,
        "responses": {
            "202": _content("The job is queued", _JOB),
            "400": _content("The body is no JSON", error),
            "409": _content("Another job has the id or the watermark: duplicate_data", error),
            "422": _content("The request is refused; pointer says where", error),
            "429": _content("The queue is full; ask again after Retry-After", error),
            **refusals,
        },
    }
    status: Json = {
        "summary": "How a job goes",
        "operationId": "trainingStatus",
        "parameters": [_JOB_ID],
        "responses": {
            "200": _content("The newest status", _reference("TrainingStatus")),
            "404": _content(unknown, error),
            **refusals,
        },
    }
    cancel: Json = {
        "summary": "Cancel a job",
        "operationId": "cancelTraining",
        "parameters": [_JOB_ID],
        "responses": {
            "202": _content("It is cancelled, or ends soon", _JOB),
            "404": _content(unknown, error),
            "409": _content("It has ended", error),
            **refusals,
        },
    }
    return {
        "/training/start": {"post": start},
        "/training/{job_id}/status": {"get": status},
        "/training/{job_id}/cancel": {"post": cancel},
        **_training_lists(refusals),
    }


def _training_lists(refusals: Mapping[str, Json]) -> dict[str, Json]:
    """Return the paths about all jobs."""
    queue: Json = {
        "summary": "How many jobs wait",
        "operationId": "trainingQueue",
        "responses": {"200": _content("The depth of the queue", _QUEUE), **refusals},
    }
    models: Json = {
        "summary": "What the jobs that completed made",
        "operationId": "listModels",
        "responses": {"200": _content("The newest first", _MODELS), **refusals},
    }
    return {"/training/queue": {"get": queue}, "/models": {"get": models}}


def _post_export(what: str) -> Json:
    status: Json = {"type": "object", "properties": {"message": _TEXT}}
    binary: Json = {"application/x-protobuf": {}}
    return {
        "summary": f"Store the {what} of an OTLP export request",
        "operationId": f"export{what.title().replace(' ', '')}",
        "externalDocs": {"url": "https://opentelemetry.io/docs/specs/otlp/#otlphttp"},
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": "object"}}, **binary},
        },
        "responses": {
            "200": _content("Stored for good, as far as not rejected", _reference("ExportAnswer"), binary),
            "400": _content("The body is no export request", status, binary),
            **_refusals(status, binary),
        },
    }


def _metrics() -> Json:
    """Return the path of the metrics."""
    text: Json = {"text/plain": {"schema": _TEXT}}
    refused = ("401", "421")
    refusals = {code: one for code, one in _refusals(_reference("Error")).items() if code in refused}
    return {
        "summary": "Metrics of the loop, for Prometheus",
        "operationId": "metrics",
        "externalDocs": {"url": "https://prometheus.io/docs/instrumenting/exposition_formats/"},
        "responses": {
            "200": {"description": "In the text format", "content": text},
            **refusals,
            "503": _content("Nothing is counted yet, or for some minutes", _reference("Error")),
        },
    }


def _refusals(schema: Json, more: Mapping[str, Json] = MappingProxyType({})) -> dict[str, Json]:
    messages = {
        "401": "The token is missing or another",
        "408": "The body took too long",
        "413": "The body is too large",
        "415": "The content type or encoding is not taken",
        "421": "The host name is another machine's, and there is no token",
        "500": "The service failed at this request",
        "503": "Nothing can be stored now; send it again after Retry-After",
    }
    return {code: _content(message, schema, more) for code, message in messages.items()}


def _get(summary: str, schema: Json) -> Json:
    return {"summary": summary, "security": [{}], "responses": {"200": _content(summary, schema)}}


def _content(description: str, schema: Json, more: Mapping[str, Json] = MappingProxyType({})) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}, **more}}


def _reference(name: str) -> dict[str, Json]:
    return {"$ref": f"#/components/schemas/{name}"}


def _embedded(name: str, packaged: str) -> Json:
    """Return a packaged schema as a part of the document, to which its references lead."""
    schema = {key: value for key, value in load_schema(packaged).items() if key not in ("$id", "$schema")}
    return _moved(schema, f"#/components/schemas/{name}/")


def _moved(value: Json, place: str) -> Json:
    if isinstance(value, dict):
        return {
            key: place + part.removeprefix("#/")
            if key == "$ref" and isinstance(part, str) and part.startswith("#/")
            else _moved(part, place)
            for key, part in value.items()
        }
    return [_moved(part, place) for part in value] if isinstance(value, list) else value
