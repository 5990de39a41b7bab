"""Observations and scores of Langfuse, as its exports and its API have them.

https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields: names are as there
(``trace_id``) or as in the API (``traceId``). An observation becomes a span of the GenAI conventions; a score
becomes a span of its own with an evaluation, below the observation or in the trace that it is of. Ids that
OpenTelemetry cannot have are hashed, so that the same row always has the same id.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from types import MappingProxyType
from typing import BinaryIO, TypeAlias

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.imports.json_rows import json_rows
from pytest_tfgrpo.telemetry.traces.dialects.genai_logs import NO_SPAN
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace, SpanEvent, TraceSpan

ScoreScales: TypeAlias = Mapping[str, tuple[float, float]]
"""Lowest and highest value of scores that are not from 0 to 1, by their names."""
_OPERATIONS = MappingProxyType({"GENERATION": "chat", "AGENT": "invoke_agent", "TOOL": "execute_tool"})
"""Operations of the GenAI conventions by types of observations; others have a place in the tree alone."""
_HEX = {32: re.compile(r"[0-9a-f]{32}"), 16: re.compile(r"[0-9a-f]{16}")}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MARK = "tfgrpo."
_EVALUATION = "gen_ai.evaluation.result"
_USAGE = (("input", "input_tokens"), ("output", "output_tokens"), ("total", "total_tokens"))


class _NotUsed(Exception):
    """A row is not used."""

    def __init__(self, reason: RefusedTrace) -> None:
        self.reason = reason


def read_langfuse(
    file: BinaryIO, name: str, scales: ScoreScales = MappingProxyType({})
) -> Iterator[TraceSpan | RefusedSpan]:
    """Yield the spans that the rows of a file called `name` are, or why one is none; raises OSError.

    A numeric score counts from 0 to 1; `scales` says what the lowest and the highest value of others are.
    """
    for found in json_rows(file, name):
        if isinstance(found, RefusedSpan):
            yield found
            continue
        place, row = found
        try:
            if not isinstance(row, dict):
                raise _NotUsed(RefusedTrace.MALFORMED)
            is_score = _get(row, "data_type") is not None or ("value" in row and "type" not in row)
            yield _score(row, place, scales) if is_score else _observation(row, place)
        except _NotUsed as error:
            yield RefusedSpan(error.reason, place)
        except RecursionError:
            yield RefusedSpan(RefusedTrace.MALFORMED, place)


def is_score(span: TraceSpan) -> bool:
    """Return whether a span is what `read_langfuse` makes of a score."""
    return span.start_ns == span.end_ns and any(event.name == _EVALUATION for event in span.events)


def _observation(row: Mapping[str, Json], place: str) -> TraceSpan:
    kind, metadata = _get(row, "type"), _table(_get(row, "metadata"))
    if not isinstance(kind, str):
        raise _NotUsed(RefusedTrace.MALFORMED)
    trace = _trace(row)
    parent = _text(_get(row, "parent_observation_id"))
    start_ns = _time(_get(row, "start_time"))
    name, operation = _text(_get(row, "name")), _OPERATIONS.get(kind.upper())
    attributes = _identity(row) | _marks(metadata) | _marks(_table(metadata.get("attributes")))
    if operation is not None:
        attributes |= {"gen_ai.operation.name": operation} | _content(row, operation, name)
    resource = {
        "deployment.environment.name": _text(_get(row, "environment")),
        "service.version": _text(_get(row, "release")),
    }
    said = _get(row, "end_time")
    return TraceSpan(
        key=(trace, _span_id(trace, _text(_get(row, "id")))),
        parent=_span_id(trace, parent) if parent else "",
        name=name,
        start_ns=start_ns,
        end_ns=start_ns if said in (None, "") else max(start_ns, _time(said)),
        attributes=attributes,
        failed=_get(row, "level") == "ERROR",
        message=_text(_get(row, "status_message")),
        place=place,
        resource={key: value for key, value in resource.items() if value}
        | _marks(_table(metadata.get("resourceAttributes"))),
    )


def _score(row: Mapping[str, Json], place: str, scales: ScoreScales) -> TraceSpan:
    trace, name = _trace(row), _text(_get(row, "name"))
    observation, identity = _text(_get(row, "observation_id")), _text(_get(row, "id"))
    if not name or not identity:
        raise _NotUsed(RefusedTrace.MALFORMED)
    at_ns = _time(_get(row, "timestamp") or _get(row, "created_at"))
    said: dict[str, Json] = {"gen_ai.evaluation.name": name}
    comment = _text(_get(row, "comment"))
    if comment:
        said["gen_ai.evaluation.explanation"] = comment
    label = _text(_get(row, "string_value"))
    match _text(_get(row, "data_type")) or "NUMERIC":
        case "NUMERIC" | "BOOLEAN":
            said["gen_ai.evaluation.score.value"] = _scaled(row.get("value"), scales.get(name, (0.0, 1.0)))
        case "CATEGORICAL" | "TEXT" if label:
            said["gen_ai.evaluation.score.label"] = label
        case _:
            raise _NotUsed(RefusedTrace.MALFORMED)
    return TraceSpan(
        key=(trace, _hashed(f"score {identity}", 16)),
        parent=_span_id(trace, observation) if observation else NO_SPAN,
        name=name,
        start_ns=at_ns,
        end_ns=at_ns,
        attributes=_identity(row),
        events=(SpanEvent(_EVALUATION, at_ns, said),),
        place=place,
    )


def _scaled(value: Json, scale: tuple[float, float]) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise _NotUsed(RefusedTrace.OUTCOME_NOT_A_NUMBER)
    low, high = scale
    if not low <= value <= high:  # a whole number may have more digits than a float holds
        raise _NotUsed(RefusedTrace.OUTCOME_OUT_OF_RANGE)
    score = (value - low) / (high - low)
    if not 0.0 <= score <= 1.0:
        raise _NotUsed(RefusedTrace.OUTCOME_OUT_OF_RANGE)
    return score


def _content(row: Mapping[str, Json], operation: str, name: str) -> dict[str, Json]:
    """Return input and output of an agent, a model or a tool, as attributes."""
    given, gave = _parsed(_get(row, "input")), _parsed(_get(row, "output"))
    if operation == "execute_tool":
        found = {"gen_ai.tool.call.arguments": given, "gen_ai.tool.call.result": gave}
        said = {key: _as_text(value) for key, value in found.items() if value is not None}
        return {"gen_ai.tool.name": name} | said
    attributes: dict[str, Json] = {}
    for key, value, role in (("input", given, "user"), ("output", gave, "assistant")):
        if messages := _messages(value, role):
            attributes[f"gen_ai.{key}.messages"] = json.dumps(messages)
    if operation == "invoke_agent":
        attributes["gen_ai.agent.name"] = name
    return attributes | _of_model(row)


def _of_model(row: Mapping[str, Json]) -> dict[str, Json]:
    """Return model, temperature, tokens and dollars, as far as they are known."""
    attributes: dict[str, Json] = {}
    if model := _text(_get(row, "provided_model_name")) or _text(row.get("model")):
        attributes["gen_ai.request.model"] = model
    parameters = _table(_get(row, "model_parameters"))
    if (temperature := _number(parameters.get("temperature"))) is not None:
        attributes["gen_ai.request.temperature"] = temperature
    usage = _table(_get(row, "usage_details")) or _table(row.get("usage"))
    for key, said in _USAGE:
        if (tokens := _number(usage.get(key))) is not None:
            attributes[f"gen_ai.usage.{said}"] = int(tokens)
    costs = _table(_get(row, "cost_details"))
    total = _number(costs.get("total")) if "total" in costs else _number(_get(row, "total_cost"))
    if total is not None and (total or costs):
        attributes["gen_ai.usage.cost"] = total
    return attributes


def _messages(value: Json, role: str) -> list[Json]:
    """Return messages in OpenAI's form; what has another is the text of one message."""
    if value in (None, "", [], {}):
        return []
    if isinstance(value, dict):
        if isinstance(inner := value.get("messages"), list):
            return _messages(inner, role)
        if isinstance(choices := value.get("choices"), list):
            said = [choice.get("message") for choice in choices if isinstance(choice, dict)]
            return _messages([one for one in said if one is not None], role)
        if _is_message(value | {"role": value.get("role", role)}):
            return [value | {"role": value.get("role", role)}]
    if isinstance(value, list) and all(map(_is_message, value)):
        return value
    return [{"role": role, "content": _as_text(value)}]


def _is_message(value: Json) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    content = value.get("parts", value.get("content"))
    has_parts = isinstance(content, list) and all(isinstance(part, dict | str) for part in content)
    calls = isinstance(value.get("tool_calls"), list) and ("content" not in value or content is None)
    return isinstance(content, str) or has_parts or calls or ("content" in value and content is None)


def _identity(row: Mapping[str, Json]) -> dict[str, Json]:
    found = {"session.id": _text(_get(row, "session_id")), "user.id": _text(_get(row, "user_id"))}
    return {key: value for key, value in found.items() if value}


def _marks(table: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in table.items() if key.startswith(_MARK)}


def _trace(row: Mapping[str, Json]) -> str:
    said = _text(_get(row, "trace_id"))
    if not said:
        raise _NotUsed(RefusedTrace.BAD_ID)
    return said if _is_id(said, 32) else _hashed(f"trace {said}", 32)


def _span_id(trace: str, said: str) -> str:
    if not said:
        raise _NotUsed(RefusedTrace.BAD_ID)
    return said if _is_id(said, 16) else _hashed(f"span {trace} {said}", 16)


def _is_id(said: str, digits: int) -> bool:
    return _HEX[digits].fullmatch(said) is not None and bool(said.strip("0"))


def _hashed(text: str, digits: int) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def _time(said: Json) -> int:
    """Return nanoseconds since 1970 of a time; one without a zone is in UTC, as in Langfuse's exports."""
    try:
        at = datetime.fromisoformat(said if isinstance(said, str) else "")
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        found = (at - _EPOCH) // timedelta(microseconds=1) * 1000
    except (ValueError, OverflowError):
        raise _NotUsed(RefusedTrace.MALFORMED) from None
    if found <= 0:
        raise _NotUsed(RefusedTrace.MALFORMED)
    return found


def _get(row: Mapping[str, Json], name: str) -> Json:
    """Return a field, which has underscores in exports and capitals in the API."""
    if name in row:
        return row[name]
    first, *rest = name.split("_")
    return row.get("".join([first, *map(str.capitalize, rest)]))


def _table(found: Json) -> dict[str, Json]:
    found = _parsed(found)
    return found if isinstance(found, dict) else {}


def _parsed(found: Json) -> Json:
    if isinstance(found, str) and found.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(found)
        except (ValueError, RecursionError):
            return found
    return found


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(found: Json) -> str:
    return found if isinstance(found, str) else ""


def _number(found: Json) -> float | None:
    """Return a number that is finite and not negative, of a text too."""
    try:
        number = float(found) if isinstance(found, int | float | str) and found is not True else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
