"""The toy agent by hand on OpenAI's client, by logfire: its calls have spans, below a web request."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import logfire
from opentelemetry import trace
from support.traces.recording import toy
from support.traces.recording.stories import OUTER

openai: Any = import_module("openai")
TOOL = {
    "name": "weather",
    "description": "Return the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def main() -> None:
    logfire.configure(**toy.logfire_options())
    logfire.instrument_openai()
    toy.report(ask)


def ask() -> dict[str, Any]:
    client = openai.OpenAI(base_url=f"{toy.URL}/v1", api_key="none", max_retries=toy.RETRIES)
    messages: list[Any] = [
        {"role": "system", "content": toy.SYSTEM},
        {"role": "user", "content": toy.ASKED},
    ]
    given = {"session.id": toy.SESSION, "user.id": toy.USER} if toy.SESSION else {}
    turns = tokens = 0
    with toy.web_root(trace.get_tracer_provider(), **given):
        while True:
            message, usage = reply(client, messages)
            turns, tokens = turns + 1, tokens + usage.total_tokens
            if not message.tool_calls:
                return {"answer": message.content, "turns": turns, "tokens": tokens}
            kept = message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})
            messages += [kept, *(result(call) for call in message.tool_calls)]


def reply(client: Any, messages: list[Any]) -> tuple[Any, Any]:
    asked = {"model": OUTER, "messages": messages, "tools": [{"type": "function", "function": TOOL}]}
    if not toy.STREAM:
        done = client.chat.completions.create(**asked)
    else:
        with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            done = stream.get_final_completion()
    return done.choices[0].message, done.usage


def result(call: Any) -> dict[str, Any]:
    try:
        told = toy.weather(**json.loads(call.function.arguments))
    except LookupError as error:
        told = str(error)
    return {"role": "tool", "tool_call_id": call.id, "content": told}


if __name__ == "__main__":
    main()
