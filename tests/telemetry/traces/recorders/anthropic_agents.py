"""The toy agent by hand on Anthropic's client: the model's calls have spans, below a web request."""

from __future__ import annotations

import os
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import anthropic
from support.traces.recording import toy
from support.traces.recording.stories import OUTER

TOOL = {
    "name": "weather",
    "description": "Return the weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def main() -> None:
    instrumented = {"openinference": by_openinference, "traceloop": by_traceloop, "logfire": by_logfire}
    provider = instrumented[toy.TRACER]()
    toy.report(lambda: ask(provider))


def by_openinference() -> Any:
    provider = toy.new_provider()
    instrumentation: Any = import_module("openinference.instrumentation.anthropic")
    instrumentation.AnthropicInstrumentor().instrument(
        tracer_provider=provider, config=toy.openinference_config()
    )
    return provider


def by_traceloop() -> Any:
    provider = toy.new_provider()
    os.environ["TRACELOOP_TRACE_CONTENT"] = str(toy.CONTENT).lower()
    instrumentation: Any = import_module("opentelemetry.instrumentation.anthropic")
    instrumentation.AnthropicInstrumentor().instrument(tracer_provider=provider)
    return provider


def by_logfire() -> Any:
    logfire: Any = import_module("logfire")
    logfire.configure(**toy.logfire_options())
    logfire.instrument_anthropic()
    return import_module("opentelemetry.trace").get_tracer_provider()


def ask(provider: Any) -> dict[str, Any]:
    client = anthropic.Anthropic(base_url=toy.URL, api_key="none", max_retries=toy.RETRIES)
    given = {"session.id": toy.SESSION, "user.id": toy.USER} if toy.SESSION else {}
    identity = toy.openinference_identity() if toy.TRACER == "openinference" else nullcontext()
    messages: list[Any] = [{"role": "user", "content": toy.ASKED}]
    turns = tokens = 0
    with identity, toy.web_root(provider, **given):
        while True:
            done = reply(client, messages)
            turns, tokens = turns + 1, tokens + done.usage.input_tokens + done.usage.output_tokens
            calls = [part for part in done.content if part.type == "tool_use"]
            if not calls:
                return {"answer": done.content[0].text, "turns": turns, "tokens": tokens}
            results = [result(call) for call in calls]
            messages += [{"role": "assistant", "content": done.content}, {"role": "user", "content": results}]


def reply(client: Any, messages: list[Any]) -> Any:
    asked = {"model": OUTER, "max_tokens": 99, "system": toy.SYSTEM, "messages": messages, "tools": [TOOL]}
    if not toy.STREAM:
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        return stream.get_final_message()


def result(call: Any) -> dict[str, Any]:
    told = {"type": "tool_result", "tool_use_id": call.id}
    try:
        return told | {"content": toy.weather(**call.input)}
    except LookupError as error:
        return told | {"content": str(error), "is_error": True}


if __name__ == "__main__":
    main()
