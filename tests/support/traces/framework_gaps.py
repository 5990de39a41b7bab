"""What does not come out of the recordings of frameworks, fact by fact."""

from __future__ import annotations

_SCRUBBED = "logfire writes '[Scrubbed due to 'session']' instead"
_NO_INPUT = "the span of a response that failed has no input"
_NO_MARK = "a message with the result of a tool does not say that it failed"
_NO_NAMES = "messages are left out whole, names of tools with them"
_NO_CALLS = "calls of the model have no spans"
_NO_REQUEST = "spans have what the model answered, not what it was asked"
_ALL = "one-tool, parallel, retry, session, stream, tool-raises"
_WITHIN = (
    "runs, turns, tokens, order, tools, arguments, results, inner agent, inner turns, inner tokens, "
    "inner order, inner question, inner answer, inner tools, inner arguments, inner results"
)
_GAPS: tuple[tuple[str, str, str, str], ...] = (
    ("openai-agents-openinference", "dead, web-dead", "question", _NO_INPUT),
    ("openai-agents-logfire", "dead, web-dead", "question", _NO_INPUT),
    ("openai-agents-logfire", "session", "session", _SCRUBBED),
    ("pydantic-ai-logfire", "session", "session", _SCRUBBED),
    ("openai-logfire", "session", "session", _SCRUBBED),
    ("openai-logfire", "tool-raises", "tool errors", _NO_MARK),
    ("anthropic-logfire", "session", "session", _SCRUBBED),
    ("anthropic-logfire", "tool-raises", "tool errors", _NO_MARK),
    ("anthropic-openinference", "no-content", "order, tools, arguments, results", _NO_NAMES),
    ("anthropic-openinference", "tool-raises", "tool errors", _NO_MARK + ", but for the dumped request"),
    ("anthropic-traceloop", "no-content", "order, tools, arguments, results", _NO_NAMES),
    ("anthropic-traceloop", "tool-raises", "tool errors", _NO_MARK),
    ("anthropic-traceloop", "stream", "tokens", "one token more in each answer than the provider said"),
    ("crewai-openinference", _ALL + ", no-content", "turns, tokens, order", _NO_CALLS),
    (
        "crewai-openinference",
        "dead",
        "turns, order, question",
        _NO_CALLS + "; the crew's span alone has the task",
    ),
    ("crewai-openinference", "parallel", "arguments, results", "its threads ran the second call first"),
    (
        "crewai-openinference",
        "subagent",
        _WITHIN,
        "a coworker has no span, so that its tools are the caller's",
    ),
    ("google-adk", "session", "user", "nobody's name is written"),
    ("google-adk-openinference", "dead", "question", "the span of a request that failed has no messages"),
    (
        "google-adk-openinference",
        "one-tool, parallel, retry, session, stream, no-content",
        "tokens",
        "the last call's overwrite those before",
    ),
    (
        "google-adk-openinference",
        "no-content",
        "question, answer, arguments, results",
        "the switch hides nothing of these",
    ),
    ("litellm-callback", "session", "session, user", "the user is `llm.user`, which the service knows"),
    (
        "litellm-callback",
        "stream",
        "runs, turns, tokens, order, answer, tools, arguments, results, cost",
        "the span of a stream that is read later is in a trace of its own",
    ),
    ("litellm-callback", "tool-raises", "tool errors", _NO_MARK),
    ("litellm-openinference", "session, tool-raises, dead", "question", _NO_REQUEST),
    ("litellm-openinference", _ALL, "results", _NO_REQUEST),
    ("litellm-openinference", "tool-raises", "tool errors", _NO_REQUEST),
    ("litellm-openinference", "no-content", "order, tools, arguments, results", _NO_NAMES),
    (
        "llama-index-openinference",
        _ALL + ", dead, handoff, no-content, subagent",
        "agent",
        "a text of Python's repr alone has it",
    ),
    ("llama-index-openinference", "subagent", "inner agent", "a text of Python's repr alone has it"),
    ("smolagents-openinference", "dead", "question", "an agent that fails has no span; its steps have"),
    ("smolagents-openinference", "subagent", "results", "a plain text of the next message tells it"),
    ("smolagents-openinference", "subagent", "inner question", "smolagents asks in many words of its own"),
)
"""Framework, cases, facts, and what upstream emits instead."""
NOT_EMITTED: dict[tuple[str, str, str], str] = {
    (framework, case, fact): why
    for framework, cases, facts, why in _GAPS
    for case in cases.split(", ")
    for fact in facts.split(", ")
}
"""Facts that the spans of a framework do not hold, and what they have instead."""
