"""The toy agent by hand on litellm: only the calls of the model have spans, below a web request."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from typing import Any

import litellm
from litellm.litellm_core_utils.thread_pool_executor import executor
from support.traces.recording import toy
from support.traces.recording.stories import OUTER

TOOL = {
    "name": "weather",
    "description": "Return the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PRICES = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "litellm_provider": "openai"}


def main() -> None:
    provider = toy.new_provider()
    litellm.register_model({OUTER: PRICES | {"mode": "chat"}})
    if toy.TRACER == "openinference":
        from openinference.instrumentation.litellm import LiteLLMInstrumentor

        LiteLLMInstrumentor().instrument(tracer_provider=provider, config=toy.openinference_config())
    else:
        from litellm.integrations.opentelemetry import OpenTelemetry, OpenTelemetryConfig

        litellm.turn_off_message_logging = not toy.CONTENT
        litellm.callbacks = [OpenTelemetry(OpenTelemetryConfig(exporter="none"), tracer_provider=provider)]
    toy.report(lambda: ask(provider))
    executor.shutdown(wait=True)


def ask(provider: Any) -> dict[str, Any]:
    messages: list[Any] = [
        {"role": "system", "content": toy.SYSTEM},
        {"role": "user", "content": toy.ASKED},
    ]
    openinference = toy.TRACER == "openinference"
    given = {"session.id": toy.SESSION, "user.id": toy.USER} if toy.SESSION and openinference else {}
    with toy.openinference_identity() if openinference else nullcontext(), toy.web_root(provider, **given):
        try:
            return answered(messages)
        finally:
            time.sleep(3)  # the callback works in a thread, and finds no parent once the root has ended


def answered(messages: list[Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"turns": 0, "tokens": 0, "cost_usd": 0.0}
    while True:
        done = reply(messages)
        said["turns"] += 1
        said["tokens"] += done.usage.total_tokens
        said["cost_usd"] += litellm.completion_cost(done, custom_llm_provider="openai")
        message = done.choices[0].message
        if not message.tool_calls:
            return said | {"answer": message.content}
        messages.append(message.model_dump(exclude_none=True))
        messages += [result(call) for call in message.tool_calls]


def reply(messages: list[Any]) -> Any:
    given = {"user": toy.USER, "metadata": {"session_id": toy.SESSION}} if toy.SESSION else {}
    if toy.STREAM:
        given |= {"stream": True, "stream_options": {"include_usage": True}}
    done = litellm.completion(
        model=f"openai/{OUTER}",
        messages=messages,
        api_base=f"{toy.URL}/v1",
        api_key="none",
        tools=[{"type": "function", "function": TOOL}],
        max_retries=toy.RETRIES,
        **given,
    )
    return litellm.stream_chunk_builder(list(done), messages=messages) if toy.STREAM else done


def result(call: Any) -> dict[str, Any]:
    try:
        told = toy.weather(**json.loads(call.function.arguments))
    except LookupError as error:
        told = str(error)
    return {"role": "tool", "tool_call_id": call.id, "content": told}


if __name__ == "__main__":
    main()
