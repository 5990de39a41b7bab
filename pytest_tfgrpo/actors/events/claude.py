"""Claude Code: the events of ``claude -p --output-format stream-json --verbose``.

``system`` opens the stream; ``assistant`` carries blocks of a model's turn (several events may share one
``message.id``), ``user`` the results of tools, joined by ``tool_use_id``; ``result`` closes it with answer,
usage and cost. See https://code.claude.com/docs/en/headless and the Agent SDK's reference of messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_tfgrpo.actors.events.stream import (
    amount,
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

PASSED_OVER = frozenset({"system", "stream_event", "rate_limit_event", "tool_progress", "auth_status"})
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
GAVE_UP = {
    "error_max_turns": "max_turns",
    "error_max_budget_usd": "max_budget",
    "error_max_structured_output_retries": "structured_output",
}
"""Endings that are the agent's failure, with their reason codes."""
ERRORS = {
    "authentication_failed": "auth",
    "billing_error": "auth",
    "rate_limit": "rate_limit",
    "overloaded": "rate_limit",
    "server_error": "server",
    "invalid_request": "rejected",
}
"""Kinds of error that an ``assistant`` event names, with our reason codes."""


def read_claude(stdout: bytes) -> dict[str, Json]:
    """Return what the stream amounts to, as a value for `read_trajectory`.

    Raises AgentFailure (``garbage``, ``no_answer``, ``max_turns``, ``max_budget``, ``structured_output``,
    ``refusal``, ``context``) and ProviderError (``spawn``, ``rate_limit``, ``auth``, ``server``,
    ``rejected``, ``provider``).
    """
    builder, closing, trouble = TranscriptBuilder("claude"), None, ""
    for event in builder.read(stdout):
        kind, message = text(event.get("type")), event.get("message")
        builder.within(text(event.get("parent_tool_use_id")))
        if kind == "assistant" and isinstance(message, dict):
            trouble = _assistant(builder, message, text(event.get("error")))
        elif kind == "user" and isinstance(message, dict):
            _results(builder, message.get("content"))
        elif kind == "result":
            closing = event
        elif kind not in PASSED_OVER:
            builder.unknown += 1
    if closing is None:
        raise builder.unclosed("result", ERRORS.get(trouble, "provider") if trouble else None)
    builder.close(
        _total(closing), amount(closing.get("total_cost_usd")), amount(closing.get("duration_api_ms")) or 0.0
    )
    return _verdict(builder, closing, trouble)


def _assistant(builder: TranscriptBuilder, message: Mapping[str, Any], error: str) -> str:
    """Read the blocks of a model's turn; returns the kind of error, if it is one."""
    turn = builder.turn(text(message.get("id")), text(message.get("model")))
    turn.usage = _usage(message.get("usage")) or turn.usage
    turn.finish = FINISH.get(text(message.get("stop_reason")), turn.finish)
    turn.error = error or turn.error
    blocks = message.get("content")
    for block in blocks if isinstance(blocks, list) else [{"type": "text", "text": blocks}]:
        if not isinstance(block, dict):
            continue
        match block.get("type"):
            case "text":
                turn.texts.append(text(block.get("text")))
            case "tool_use" | "server_tool_use":
                builder.tool(text(block.get("id")), text(block.get("name")), data(block.get("input")))
            case str(other) if other.endswith("_tool_result"):  # a tool that the provider ran
                builder.end(text(block.get("tool_use_id")), content(block.get("content")), None)
    return error


def _results(builder: TranscriptBuilder, blocks: Any) -> None:
    for block in blocks if isinstance(blocks, list) else []:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            output = content(block.get("content"))
            error = (output[:300] or "the tool failed") if block.get("is_error") is True else None
            builder.end(text(block.get("tool_use_id")), output, error)


def _usage(value: Any) -> Usage | None:
    """Return the usage of an API message, in which tokens from the cache are no part of the input."""
    if not isinstance(value, dict):
        return None
    return _added(
        value, "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
    )


def _total(closing: Mapping[str, Any]) -> Usage | None:
    """Return the usage of the whole session: over all models, else that of the main conversation."""
    models = closing.get("modelUsage")
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    if not isinstance(models, dict) or not models:
        return _usage(closing.get("usage"))
    parts = [_added(part, *names) if isinstance(part, dict) else None for part in models.values()]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return _usage(closing.get("usage"))
    return usage(
        sum(part.prompt for part in known),
        sum(part.completion for part in known),
        cached=sum(part.cached for part in known),
    )


def _added(value: Mapping[str, Any], fresh: str, out: str, read: str, written: str) -> Usage | None:
    parts = [count(value.get(fresh)), count(value.get(read) or 0), count(value.get(written) or 0)]
    known = [part for part in parts if part is not None]
    prompt = sum(known) if len(known) == len(parts) else None
    return usage(prompt, count(value.get(out)), cached=parts[1])


def _verdict(builder: TranscriptBuilder, closing: Mapping[str, Any], trouble: str) -> dict[str, Json]:
    subtype, result = text(closing.get("subtype")), closing.get("result")
    errors = closing.get("errors")
    listed = errors if isinstance(errors, list) else [errors]
    said = (text(result) or "; ".join(text(error) for error in listed if text(error)) or subtype)[:2000]
    if subtype in GAVE_UP:
        raise builder.fault(AgentFailure, f"the agent gave up: {said}", GAVE_UP[subtype])
    if closing.get("stop_reason") == "refusal":
        raise builder.fault(AgentFailure, f"the model refused: {said}", "refusal")
    if subtype != "success" or closing.get("is_error") is True:
        if is_too_long(said):
            raise builder.fault(AgentFailure, f"the conversation grew too long: {said}", "context")
        status = count(closing.get("api_error_status"))
        code = ERRORS.get(trouble) or fault_code(f"{status or ''} {said}")
        raise builder.fault(ProviderError, f"the agent reported: {said}", code)
    if not isinstance(result, str):
        raise builder.fault(AgentFailure, "the result event has no text", "no_answer")
    return builder.answer(result)
