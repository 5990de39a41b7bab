"""The dialect of OpenInference, which Phoenix and Arize read.

https://arize-ai.github.io/openinference/spec/semantic_conventions.html; a list is many attributes, one for
each leaf.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.dialects.genai import amount, error_of, tokens_of
from pytest_tfgrpo.telemetry.traces.dialects.indexed_names import gathered
from pytest_tfgrpo.telemetry.traces.messages import (
    ModelExchange,
    answers_in,
    arguments,
    conversation,
    given_to,
    is_object,
    langchain_result,
    parsed,
    said_by_tool,
    spoken,
    text,
)
from pytest_tfgrpo.telemetry.traces.turns import SpanReading, TraceOutcome, TraceSpan, TraceStep

KIND = "openinference.span.kind"
_KINDS: Mapping[str, Literal["agent", "turn", "tool"]] = MappingProxyType(
    {"AGENT": "agent", "LLM": "turn", "TOOL": "tool"}
)
_NAMES = ("tool.name", "agent.name", "graph.node.id")
_MODELS = ("llm.response.model_name", "llm.model_name", "llm.request.model_name")
_OF_SMOLAGENTS = "smolagents.max_steps"
"""Attribute of the agents of one framework, whose spans are named after them."""
_AGENT_RUN = re.compile(r"\w*(?:Agent|AgentWorkflow)\.run")
"""Spans of LlamaIndex's agents, which are chains like any other."""
_CALL_IDS = ("tool.id", "tool_call.id")
_TOTAL = ("llm.token_count.total",)
_TOKENS = (("llm.token_count.prompt",), ("llm.token_count.completion",))
_COSTS = ("llm.cost.total",)
_HIDDEN = "__REDACTED__"
"""What stands in the place of what is not to be recorded."""
_NOTHING = ModelExchange("", "")
_RESULTS = ("evaluations", "annotations", "trace.evaluations", "trace.annotations")


def read_openinference(span: TraceSpan) -> SpanReading:
    """Return the step and the outcomes of a span; raises ValueError, TypeError, KeyError or AttributeError
    for messages that are not as the conventions have them."""
    texts = "input.value" in span.attributes
    if _HIDDEN in span.attributes.values():
        shown = {name: value for name, value in span.attributes.items() if value != _HIDDEN}
        span = replace(span, attributes=shown)
    found = span.attributes.get(KIND)
    kind = _KINDS.get(found) if isinstance(found, str) else None
    if found == "CHAIN" and _AGENT_RUN.fullmatch(span.name):
        kind = "agent"
    said, in_messages = _said(span.attributes, kind)
    told = said if in_messages else _NOTHING
    return SpanReading(
        step=None if kind is None else _step(span, kind, told),
        outcomes=tuple(_outcomes(span)),
        asked="" if in_messages else said.asked,
        answered="" if in_messages else said.answered,
        texts=texts and not in_messages,
    )


def _step(span: TraceSpan, kind: Literal["agent", "turn", "tool"], said: ModelExchange) -> TraceStep:
    table, error = span.attributes, error_of(span)
    given = parsed(table.get("llm.invocation_parameters"))
    given = given if isinstance(given, Mapping) else {}
    model = _first(table, _MODELS) or text(given.get("model"))
    result = langchain_result(parsed(table.get("output.value"))) or {} if kind == "tool" else {}
    if result.get("status") == "error" and error is None:
        error = said.answered or "_OTHER"
    return TraceStep(
        kind=kind,
        name=text(given.get("model")) or model if kind == "turn" else _name(span, kind),
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        error=error,
        asked=said.asked,
        answered="" if error is not None else said.answered,
        model=model,
        temperature=amount(given, ("temperature",)),
        tokens=tokens_of(table, total=_TOTAL, parts=_TOKENS),
        cost_usd=amount(table, _COSTS),
        thoughts=said.thoughts,
        call=_first(table, _CALL_IDS) or text(result.get("tool_call_id")) if kind == "tool" else "",
        calls=said.calls,
        answers=said.answers,
    )


def _name(span: TraceSpan, kind: str) -> str:
    """Return the name of an agent or a tool; that of an agent's span is the framework's, except for one that
    ends in ``.run``."""
    if kind == "agent" and _OF_SMOLAGENTS in span.attributes:
        return span.name.removesuffix(".run")
    return _first(span.attributes, _NAMES) or ("" if kind == "agent" else span.name)


def _first(attributes: Mapping[str, Json], keys: Iterable[str]) -> str:
    return next(filter(None, (text(attributes.get(key)) for key in keys)), "")


def _said(attributes: Mapping[str, Json], kind: str | None) -> tuple[ModelExchange, bool]:
    """Return what a span says, and whether it does so as the messages of a model or the call of a tool."""
    asked, answered = attributes.get("input.value"), attributes.get("output.value")
    if kind == "tool":
        return ModelExchange(arguments(given_to(parsed(asked))), said_by_tool(parsed(answered))), True
    if kind == "turn":
        inputs, outputs = (_messages(attributes, f"llm.{way}_messages") for way in ("input", "output"))
        if inputs or outputs:
            return conversation(inputs, outputs or answers_in(parsed(answered))), True
    task = parsed(answered)
    if is_object(task) and isinstance(task.get("raw"), str) and "description" in task:  # CrewAI's
        return ModelExchange(text(task["description"]), task["raw"]), False
    return ModelExchange(spoken(asked, "user"), spoken(answered, "assistant")), False


def _messages(attributes: Mapping[str, Json], prefix: str) -> list[Json]:
    """Return the messages below a name, as those of the conventions for generative AI are."""
    return [_message(one["message"]) for one in gathered(attributes, prefix)]


def _message(found: Json) -> dict[str, Json]:
    parts = [_part(one["message_content"]) for one in found.get("contents") or ()]
    content = found.get("content")
    message: dict[str, Json] = {
        "role": found.get("role", ""),
        "content": parts or content,
        "tool_calls": [_call(one["tool_call"]) for one in found.get("tool_calls") or ()],
    }
    if "tool_call_id" in found:
        message["tool_call_id"] = found["tool_call_id"]
        message["content"] = content if content is not None else parts
    if "function_call_name" in found:
        given = found.get("function_call_arguments_json")
        message["tool_calls"].append({"name": found["function_call_name"], "arguments": given})
    return message


def _call(found: Json) -> dict[str, Json]:
    """Return a call; one without arguments is written without them."""
    function = found.get("function") or {}
    return {"type": "function", **found, "function": {"arguments": "{}", **function}}


def _part(found: Json) -> dict[str, Json]:
    return {"type": found.get("type", "text"), "content": found.get("text")}


def _outcomes(span: TraceSpan) -> Iterator[TraceOutcome]:
    """Yield the evaluations that stand in the attributes of a span."""
    for prefix in _RESULTS:
        for one in gathered(span.attributes, prefix):
            found = one.get("evaluation", one.get("annotation"))
            score, label = found.get("score"), text(found.get("label"))
            if score is not None or label:
                why = text(found.get("explanation"))
                yield TraceOutcome(text(found.get("name")), score, span.end_ns, span.place, label, why)
