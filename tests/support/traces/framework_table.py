"""The table of frameworks in ``docs/guides/trace-an-agent.md``: what to write, what recordings lack."""

from __future__ import annotations

from typing import NamedTuple

from support.traces.framework_gaps import GAPS
from support.traces.framework_truth import framework_cases
from support.traces.recording.frameworks import FRAMEWORKS

CASES = {
    "one-tool": "one tool",
    "parallel": "parallel calls",
    "retry": "a retry",
    "stream": "a stream",
    "chat-stream": "a stream of chat completions",
    "tool-raises": "a tool that fails",
    "dead": "a dead provider",
    "web-dead": "a dead provider below a web request",
    "session": "session and user",
    "no-content": "content off",
    "subagent": "a sub-agent",
    "handoff": "a handoff",
}
"""What each case of the recordings is about."""
_SPAN_ONLY = "`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` = `SPAN_ONLY`"


class FrameworkRow(NamedTuple):
    """What a user writes for one framework."""

    name: str
    package: str
    """What to install beside the framework; empty: nothing."""
    module: str
    """Where the lines' names come from; empty: nowhere."""
    line: str
    content: str
    """Whether questions, answers and arguments are recorded, and what switches that on."""


ROWS = {
    "openai-agents-openinference": FrameworkRow(
        "OpenAI Agents",
        "openinference-instrumentation-openai-agents",
        "openinference.instrumentation.openai_agents",
        "OpenAIAgentsInstrumentor().instrument()",
        "on",
    ),
    "openai-agents-logfire": FrameworkRow(
        "OpenAI Agents", "logfire", "", "logfire.instrument_openai_agents()", "on"
    ),
    "langchain-openinference": FrameworkRow(
        "LangChain, LangGraph",
        "openinference-instrumentation-langchain",
        "openinference.instrumentation.langchain",
        "LangChainInstrumentor().instrument()",
        "on",
    ),
    "pydantic-ai-logfire": FrameworkRow(
        "Pydantic AI",
        "logfire",
        "",
        "logfire.instrument_pydantic_ai()",
        "on",
    ),
    "smolagents-openinference": FrameworkRow(
        "smolagents",
        "openinference-instrumentation-smolagents",
        "openinference.instrumentation.smolagents",
        "SmolagentsInstrumentor().instrument()",
        "on",
    ),
    "llama-index-openinference": FrameworkRow(
        "LlamaIndex",
        "openinference-instrumentation-llama-index",
        "openinference.instrumentation.llama_index",
        "LlamaIndexInstrumentor().instrument()",
        "on",
    ),
    "crewai-openinference": FrameworkRow(
        "crewAI",
        "openinference-instrumentation-crewai",
        "openinference.instrumentation.crewai",
        "CrewAIInstrumentor().instrument()",
        "on",
    ),
    "google-adk": FrameworkRow(
        "Google ADK",
        "",
        "",
        "",
        f"**off**; on by `OTEL_SEMCONV_STABILITY_OPT_IN` = `gen_ai_latest_experimental` and {_SPAN_ONLY}",
    ),
    "google-adk-openinference": FrameworkRow(
        "Google ADK",
        "openinference-instrumentation-google-adk",
        "openinference.instrumentation.google_adk",
        "GoogleADKInstrumentor().instrument()",
        "on",
    ),
    "litellm-callback": FrameworkRow(
        "LiteLLM",
        "",
        "litellm.integrations.opentelemetry",
        'litellm.callbacks = [OpenTelemetry(OpenTelemetryConfig(exporter="none"), tracer_provider=provider)]',
        "on",
    ),
    "litellm-openinference": FrameworkRow(
        "LiteLLM",
        "openinference-instrumentation-litellm",
        "openinference.instrumentation.litellm",
        "LiteLLMInstrumentor().instrument()",
        "on",
    ),
    "openai-logfire": FrameworkRow("OpenAI's client", "logfire", "", "logfire.instrument_openai()", "on"),
    "anthropic-logfire": FrameworkRow(
        "Anthropic's client", "logfire", "", "logfire.instrument_anthropic()", "on"
    ),
    "anthropic-openinference": FrameworkRow(
        "Anthropic's client",
        "openinference-instrumentation-anthropic",
        "openinference.instrumentation.anthropic",
        "AnthropicInstrumentor().instrument()",
        "on",
    ),
    "anthropic-traceloop": FrameworkRow(
        "Anthropic's client",
        "opentelemetry-instrumentation-anthropic",
        "opentelemetry.instrumentation.anthropic",
        "AnthropicInstrumentor().instrument()",
        "on",
    ),
}
"""By the framework of the recordings."""


def lines_of(row: FrameworkRow) -> str:
    """Return the lines to write, as code within a cell."""
    taken = f"from `{row.module}`: " if row.module else ""
    return f"{taken}`{row.line}`" if row.line else "none"


def gaps_of(framework: str) -> str:
    """Return what does not come out of the recordings of a framework, and what nobody recorded."""
    known: dict[str, list[str]] = {}
    for name, cases, facts, why in GAPS:
        if name == framework:
            known.setdefault(why, []).append(facts + _where(cases))
    found = [f"{', '.join(facts)} ({why})" for why, facts in known.items()]
    recorded = {one.case for one in framework_cases() if one.framework == framework}
    untried = [CASES[case] for case in FRAMEWORKS[framework].cases if case not in recorded]
    return "; ".join([*found, *(["not tried: " + ", ".join(untried)] if untried else [])]) or "nothing"


def _where(cases: str) -> str:
    """Return where facts are missing; empty for everywhere."""
    names = [one for one in cases.split(", ") if one != "web-dead"]
    if names == ["session"] or ("one-tool" in names and len(names) > 1):
        return ""
    return " with " + ", ".join(CASES[one] for one in names)
