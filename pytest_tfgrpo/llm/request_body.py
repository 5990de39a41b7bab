"""Request bodies of the chat-completions protocol, and how many tokens they can hold."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.endpoints import Endpoint, MaxTokensField
from pytest_tfgrpo.llm.protocol import Message, Request, ToolCall, ToolSpec

SEED_MASK = 2**31 - 1
"""Servers differ in how large a seed may be; every one takes 31 bits."""
PER_CALL_TOKENS = 512
"""Allowance for what a server's template adds to a conversation."""
PER_MESSAGE_TOKENS = 32
TOOLS_TOKENS = 1024
"""Allowance for a server's template text about tools."""
PER_IMAGE_TOKENS = 50_000
MALFORMED = "malformed_arguments"
"""Key of a tool's arguments as the model wrote them, where they are no JSON object."""
ASK_SCHEMA = "Answer with one JSON value that is valid under this JSON Schema, and nothing else:\n"

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def body_of(
    request: Request, model: str, endpoint: Endpoint, limit_field: MaxTokensField, max_tokens: int
) -> bytes:
    """Return the JSON text of a request to `model` at `endpoint`; raises ValueError for what is no JSON."""
    body: dict[str, Json] = {**endpoint.extra_body, "model": model, limit_field: max_tokens}
    if endpoint.temperature:
        body["temperature"] = request.temperature
    if endpoint.seed and request.seed is not None:
        body["seed"] = request.seed & SEED_MASK
    if endpoint.reasoning_effort is not None:
        body["reasoning_effort"] = endpoint.reasoning_effort
    if request.logprobs and endpoint.logprobs != "off":
        body["logprobs"] = True
        # left out, one server sends no values at all, and another twenty alternatives for each token
        body.setdefault("top_logprobs", 1)
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    messages = _folded(request.messages) if endpoint.system_role == "user" else list(request.messages)
    written = [_message(message, endpoint) for message in messages]
    if request.schema is not None:
        if endpoint.structured == "json_schema":
            body["response_format"] = _json_schema(request.schema)
        else:
            _ask(written, request.schema)
            if endpoint.structured == "json_object":
                body["response_format"] = {"type": "json_object"}
    body["messages"] = written
    return encoded(body)


def encoded(body: dict[str, Json]) -> bytes:
    """Return the JSON text of a request; raises ValueError for what JSON cannot hold."""
    return _encode(body).encode("utf-8", "replace")


def most_prompt_tokens(request: Request) -> int:
    """Return the most tokens that a request can be: no token is shorter than one byte of what is sent."""
    tokens = PER_CALL_TOKENS
    for message in request.messages:
        tokens += PER_MESSAGE_TOKENS + _bytes(message.content) + PER_IMAGE_TOKENS * len(message.images)
        for call in message.tool_calls:
            tokens += PER_MESSAGE_TOKENS + _bytes(call.name) + 2 * _bytes(call.arguments)
    if request.tools:
        tokens += TOOLS_TOKENS + 2 * _bytes(_encode([_tool(tool) for tool in request.tools]))
    if request.schema is not None:
        tokens += len(ASK_SCHEMA) + 2 * _bytes(_encode(dict(request.schema)))
    return tokens


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _folded(messages: Sequence[Message]) -> list[Message]:
    """Put system messages into the user's message that follows, for models that know no system role."""
    folded: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        if message.role == "system":
            waiting.append(message.content)
            continue
        if waiting and message.role == "user":
            content = "\n\n".join([*waiting, message.content])
            message = Message(role="user", content=content, images=message.images)
        elif waiting:
            folded.append(Message(role="user", content="\n\n".join(waiting)))
        waiting = []
        folded.append(message)
    if waiting:
        folded.append(Message(role="user", content="\n\n".join(waiting)))
    return folded


def _message(message: Message, endpoint: Endpoint) -> dict[str, Json]:
    role = endpoint.system_role if message.role == "system" else message.role
    # some servers refuse a null content and some a missing one, even beside tool calls
    written: dict[str, Json] = {"role": role, "content": message.content}
    if message.images:
        written["content"] = [{"type": "text", "text": message.content}] if message.content else []
        for image in message.images:
            url = f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
            written["content"].append({"type": "image_url", "image_url": {"url": url}})
    if message.tool_calls:
        written["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.role == "tool":
        written["tool_call_id"] = message.tool_call_id
    return written


def _call(call: ToolCall) -> dict[str, Json]:
    function = {"name": call.name, "arguments": _readable(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _readable(arguments: str) -> str:
    """Return arguments that servers can parse, as many do: broken ones become the text of an object."""
    try:
        if isinstance(json.loads(arguments), dict):
            return arguments
    except (ValueError, RecursionError):
        pass
    return _encode({MALFORMED: arguments})


def _tool(tool: ToolSpec) -> dict[str, Json]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _json_schema(schema: Mapping[str, Json]) -> dict[str, Json]:
    wanted: dict[str, Json] = {"name": "answer", "schema": dict(schema)}
    if _is_strict(schema):
        wanted["strict"] = True
    return {"type": "json_schema", "json_schema": wanted}


def _is_strict(schema: Json) -> bool:
    """Return whether every object names all its members as required and allows no others."""
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        if schema.get("type") == "object" or isinstance(properties, Mapping):
            named = set(properties) if isinstance(properties, Mapping) else set()
            required = schema.get("required", [])
            if schema.get("additionalProperties") is not False or set(required) != named:
                return False
        return all(map(_is_strict, schema.values()))
    return all(map(_is_strict, schema)) if isinstance(schema, list | tuple) else True


def _ask(written: list[dict[str, Json]], schema: Mapping[str, Json]) -> None:
    """Request the schema in words, at the end of the user's last message."""
    words = ASK_SCHEMA + _encode(dict(schema))
    last = next((message for message in reversed(written) if message["role"] == "user"), None)
    if last is None:
        written.append({"role": "user", "content": words})
    elif isinstance(last["content"], list):
        last["content"].append({"type": "text", "text": words})
    else:
        last["content"] = f"{last['content']}\n\n{words}"
