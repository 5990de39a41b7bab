"""Codex: the events of ``codex exec --json``.

``thread.started`` and ``turn.started`` open the stream; ``item.started``, ``item.updated`` and
``item.completed`` describe one item by its id: messages, commands, file changes, tools; ``turn.completed``
closes it with the tokens of the thread, ``turn.failed`` with an error. ``error`` may also be a notice of a
retry. See https://developers.openai.com/codex/noninteractive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_tfgrpo.actors.events.stream import (
    content,
    count,
    data,
    fault_code,
    is_too_long,
    text,
    usage,
)
from pytest_tfgrpo.actors.events.transcript import TranscriptBuilder
from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
from pytest_tfgrpo.core.records import Usage
from pytest_tfgrpo.core.wire.wire import Json

PASSED_OVER = frozenset({"thread.started", "turn.started", "item.plan.delta"})
ITEM_EVENTS = frozenset({"item.started", "item.updated", "item.completed"})
SILENT = frozenset({"reasoning", "todo_list", "plan", "error"})
"""Items that are no step: thoughts, plans and notices."""
BOOKKEEPING = frozenset(
    {"id", "type", "status", "exit_code", "aggregated_output", "result", "error", "agents_states"}
)
"""Keys of an item that are no input of the tool."""


def read_codex(stdout: bytes) -> dict[str, Json]:
    """Return the stream as a value for `read_trajectory`.

    Raises AgentFailure (``garbage``, ``no_answer``, ``context``) and ProviderError (``spawn``,
    ``rate_limit``, ``auth``, ``provider``). The stream has no cost and no name of a model.
    """
    builder, answer, trouble, is_closed = TranscriptBuilder("codex"), None, "", False
    for event in builder.read(stdout):
        kind, item = text(event.get("type")), event.get("item")
        if kind in ITEM_EVENTS and isinstance(item, dict):
            said = _item(builder, item, is_over=kind == "item.completed")
            answer = answer if said is None else said
        elif kind == "turn.completed":
            is_closed = True
            builder.close(_usage(event.get("usage")), None)
        elif kind in ("turn.failed", "error"):
            is_closed = is_closed and kind == "error"
            trouble = _message(event) or trouble
        elif kind not in PASSED_OVER:
            builder.unknown += 1
    if not is_closed and trouble:
        if is_too_long(trouble):
            raise builder.fault(AgentFailure, f"the conversation grew too long: {trouble}", "context")
        raise builder.fault(ProviderError, f"the agent reported: {trouble}", fault_code(trouble))
    if not is_closed:
        raise builder.unclosed("turn.completed", None)
    if answer is None:
        raise builder.fault(AgentFailure, "the agent ended without a message", "no_answer")
    return builder.answer(answer)


def _message(event: Mapping[str, Any]) -> str:
    error = event.get("error")
    said = error.get("message") if isinstance(error, dict) else error or event.get("message")
    return (text(said) or "an error without a message")[:2000]


def _item(builder: TranscriptBuilder, item: Mapping[str, Any], *, is_over: bool) -> str | None:
    """Read the event of an item; returns the text of a finished message."""
    id_, kind = text(item.get("id")), text(item.get("type"))
    if kind == "agent_message":
        if not is_over:
            return None
        said = text(item.get("text"))
        builder.turn("", "").texts.append(said)
        return said
    if kind in SILENT:
        return None
    step = builder.unfinished(id_)
    if step is None:
        step = builder.tool(id_, _name(kind, item), None)
    step.input = data({key: value for key, value in item.items() if key not in BOOKKEEPING})
    if is_over:
        builder.end(id_, _output(item), _error(item))
    return None


def _name(kind: str, item: Mapping[str, Any]) -> str:
    if kind == "mcp_tool_call":
        return ".".join(part for part in (text(item.get("server")), text(item.get("tool"))) if part)
    return kind


def _output(item: Mapping[str, Any]) -> str:
    result = item.get("result")
    if isinstance(result, dict):
        return content(result.get("content"))
    return text(item.get("aggregated_output")) or content(result)


def _error(item: Mapping[str, Any]) -> str | None:
    error, code = item.get("error"), item.get("exit_code")
    if isinstance(error, dict) and text(error.get("message")):
        return text(error.get("message"))[:300]
    if type(code) is int and code != 0:
        return f"it ended with status {code}"
    status = item.get("status")
    return f"it was {status}" if status in ("failed", "declined") else None


def _usage(value: Any) -> Usage | None:
    """Return the thread's tokens; those from the cache are part of the input, reasoning of the output."""
    if not isinstance(value, dict):
        return None
    return usage(
        count(value.get("input_tokens")),
        count(value.get("output_tokens")),
        reasoning=count(value.get("reasoning_output_tokens") or 0),
        cached=count(value.get("cached_input_tokens") or 0),
    )
