"""Record the spans of the toy agent of ``record_spans.py`` on OpenAI's client, offline, beside this script.

Run by hand, each with ``PYTHONPATH=tests python .../record_openai.py NAME`` in an environment of
its own:

* ``openinference`` and ``openinference-alone``: ``pip install openinference-instrumentation-openai==0.1.66
  openai==3.54.0 opentelemetry-sdk==1.45.1``;
* ``traceloop``: ``pip install traceloop-sdk==0.40.14 "openai<2"``, with indexed attributes.
* ``openai-v2``: ``pip install opentelemetry-instrumentation-openai-v2==2.3b0 "openai<2" "wrapt<2"
  opentelemetry-sdk==1.45.1``, whose messages are log records.
* ``langfuse``: ``pip install langfuse==5.0.4 openai==3.54.0 opentelemetry-sdk==1.45.1``.

Three have spans of agent and tools; ``openinference-alone`` and ``openai-v2`` have spans of the model's calls
alone, below that of a web request.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from support.span_recorder import ANSWER, CALLS, QUESTION, Lines, LogLines, weather

HERE = Path(__file__).parent / "recorded"
openai: Any = import_module("openai")

TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Return the weather of a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
BROKEN = "broken"
"""Session in which the model is down."""


class FakeModel(BaseHTTPRequestHandler):
    """Calls the tool twice, then answers."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["X-Toy"] == BROKEN:
            self.reply(500, {"error": {"message": "the model is down"}})
            return
        turn = sum(message["role"] == "assistant" for message in asked["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": ANSWER}
        if turn < len(CALLS):
            function = {"name": "weather", "arguments": json.dumps({"city": CALLS[turn]})}
            call = {"id": f"call-{turn}", "type": "function", "function": function}
            message |= {"content": None, "tool_calls": [call]}
        finish = "stop" if message["content"] else "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        body = {"id": f"c{turn}", "object": "chat.completion", "created": 1, "model": "toy-model-1"}
        self.reply(200, body | {"choices": [choice], "usage": usage})

    def reply(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None: ...


SERVER = ThreadingHTTPServer(("127.0.0.1", 0), FakeModel)


def toy(question: str, session: str, look_up: Callable[[str], str]) -> str:
    """Answer a question with the model and the tool."""
    url, headers = f"http://127.0.0.1:{SERVER.server_port}/v1", {"X-Toy": session}
    client = openai.OpenAI(api_key="none", base_url=url, max_retries=0, default_headers=headers)
    messages: list[Any] = [
        {"role": "system", "content": "You know the weather."},
        {"role": "user", "content": question},
    ]
    while True:
        chat = client.chat.completions
        done = chat.create(model="toy-model", temperature=0.5, messages=messages, tools=TOOLS)
        said = done.choices[0].message
        if not said.tool_calls:
            return said.content or ""
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls:
            try:
                result = look_up(**json.loads(call.function.arguments))
            except LookupError as error:
                result = str(error)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def run_openinference(provider: TracerProvider, *, alone: bool) -> None:
    from openinference.instrumentation import OITracer, TraceConfig, using_session, using_user
    from openinference.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    tracer = OITracer(provider.get_tracer("toy"), config=TraceConfig())
    look_up = weather if alone else tracer.tool(weather)

    def ask(question: str, session: str) -> str:
        return toy(question, session, look_up)

    def agent(session: str) -> str:
        with using_session(session), using_user("u-1"):
            if alone:
                with provider.get_tracer("web").start_as_current_span("POST /ask"):
                    return ask(QUESTION, session)
            with tracer.start_as_current_span("toy", openinference_span_kind="agent") as span:
                span.set_input(QUESTION)
                span.set_output(said := ask(QUESTION, session))
                span.set_status(trace.StatusCode.OK)
                return said

    both(agent)


def run_openai_v2(provider: TracerProvider, path: Path) -> None:
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor

    logs = LoggerProvider()
    logs.add_log_record_processor(SimpleLogRecordProcessor(LogLines(path)))
    OpenAIInstrumentor().instrument(tracer_provider=provider, logger_provider=logs)

    def agent(session: str) -> str:
        given = {"session.id": session, "user.id": "u-1"}
        with provider.get_tracer("web").start_as_current_span("POST /ask", attributes=given):
            return toy(QUESTION, session, weather)

    both(agent)


def run_langfuse(path: Path) -> None:
    from langfuse import Langfuse, observe, propagate_attributes
    from langfuse.openai import OpenAI

    client = Langfuse(public_key="pk-lf-none", secret_key="sk-lf-none", span_exporter=Lines(path))
    openai.OpenAI = OpenAI
    look_up = observe(name="weather", as_type="tool")(weather)

    @observe(name="toy", as_type="agent")
    def asked(question: str, session: str) -> str:
        return toy(question, session, look_up)

    def agent(session: str) -> str:
        with propagate_attributes(session_id=session, user_id="u-1"):
            return asked(QUESTION, session)

    both(agent)
    client.flush()


def run_traceloop(provider: TracerProvider) -> None:
    os.environ["TRACELOOP_METRICS_ENABLED"] = "false"
    from traceloop.sdk import Traceloop
    from traceloop.sdk.decorators import agent, tool, workflow

    Traceloop.init(app_name="toy", processor=provider._active_span_processor, telemetry_enabled=False)
    look_up = tool(name="weather")(weather)

    @agent(name="toy")
    def asked(question: str, session: str) -> str:
        return toy(question, session, look_up)

    @workflow(name="ask")
    def ask(session: str) -> str:
        Traceloop.set_association_properties({"session_id": session, "user_id": "u-1"})
        return asked(QUESTION, session)

    both(ask)


def both(agent: Callable[[str], str]) -> None:
    """Run the agent twice: well, and with a model that is down."""
    assert agent("s-1") == ANSWER
    with suppress(openai.OpenAIError):
        agent(BROKEN)


def main() -> None:
    name = sys.argv[1]
    Thread(target=SERVER.serve_forever, daemon=True).start()
    provider = TracerProvider()
    path = HERE / f"{name}.jsonl"
    if name == "langfuse":
        run_langfuse(path)
        return
    provider.add_span_processor(SimpleSpanProcessor(Lines(path)))
    if name == "traceloop":
        run_traceloop(provider)
    elif name == "openai-v2":
        run_openai_v2(provider, path)
    else:
        run_openinference(provider, alone=name.endswith("alone"))


if __name__ == "__main__":
    main()
