"""What the agents of all frameworks share: the tool, the case, the exporter, and their own report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import set_tracer_provider

from support.span_recorder import Lines
from support.traces.recording.stories import QUESTION, QUESTION_OF_NOWHERE, QUESTION_OF_TWO

URL, CASE, FOLDER = os.environ["TOY_URL"], os.environ["TOY_CASE"], Path(os.environ["TOY_FOLDER"])
TRACER = os.environ["TOY_TRACER"]
"""Name of the instrumentation that is to be recorded."""
SESSION, USER = ("s-1", "u-1") if CASE == "session" else ("", "")
STREAM, CONTENT = CASE.endswith("stream"), CASE != "no-content"
ASKED = {"parallel": QUESTION_OF_TWO, "tool-raises": QUESTION_OF_NOWHERE}.get(CASE, QUESTION)
SYSTEM, SYSTEM_OF_INNER = "You know the weather.", "You look up the weather."
WEATHER = {"Paris": "sunny, 20 degrees", "Rome": "cloudy, 25 degrees"}
RETRIES = 1 if CASE == "retry" else 0
"""Of the client of the model."""
_worked: list[dict[str, Any]] = []


def weather(city: str) -> str:
    """Return the weather of a city.

    Args:
        city: Name of the city.
    """
    line: dict[str, Any] = {"name": "weather", "arguments": {"city": city}, "result": None, "error": None}
    _worked.append(line)
    if city not in WEATHER:
        line["error"] = f"no such city: {city}"
        raise LookupError(line["error"])
    line["result"] = WEATHER[city]
    return WEATHER[city]


def exporter() -> Lines:
    return Lines(FOLDER / "spans.jsonl")


def new_provider() -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter()))
    set_tracer_provider(provider)
    return provider


def logfire_options() -> dict[str, Any]:
    return {
        "send_to_logfire": False,
        "console": False,
        "inspect_arguments": False,
        "additional_span_processors": [SimpleSpanProcessor(exporter())],
    }


def openinference_config() -> Any:
    return _openinference().TraceConfig(hide_inputs=not CONTENT, hide_outputs=not CONTENT)


def openinference_identity() -> AbstractContextManager[Any]:
    """Return a context in which OpenInference's spans have the session and the user of the case."""
    if not SESSION:
        return nullcontext()
    context: AbstractContextManager[Any] = _openinference().using_attributes(session_id=SESSION, user_id=USER)
    return context


def _openinference() -> Any:
    return import_module("openinference.instrumentation")


def logfire_identity() -> AbstractContextManager[Any]:
    """Return a span of logfire's with the session and the user of the case."""
    if not SESSION:
        return nullcontext()
    logfire: Any = import_module("logfire")
    span: AbstractContextManager[Any] = logfire.span("chat", **{"session.id": SESSION, "user.id": USER})
    return span


@contextmanager
def web_root(provider: TracerProvider, *, when: bool = True, **attributes: str) -> Iterator[None]:
    """Open the span of a web request whose handler catches what is raised within: it is raised after it."""
    if not when:
        yield
        return
    caught: Exception | None = None
    with provider.get_tracer("web").start_as_current_span("POST /chat", attributes=attributes):
        try:
            yield
        except Exception as error:
            caught = error
    if caught is not None:
        raise caught


def report(run: Callable[[], dict[str, Any]]) -> None:
    """Run the case, and write what the framework says of it: `answer`, and `turns`, `tokens`, `cost_usd`.

    What the framework raises is its `error`; `results` are those of tools, by name, which the requests to the
    model do not have with the ids of their calls.
    """
    said: dict[str, Any] = {"error": None}
    try:
        said |= run()
    except Exception as error:
        said["error"] = type(error).__name__
        print(f"{CASE}: {error!r}"[:500])
    (FOLDER / "report.json").write_text(json.dumps({"said": said, "worked": _worked}))
