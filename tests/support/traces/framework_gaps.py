"""What does not come out of the recordings of frameworks, fact by fact."""

from __future__ import annotations

_SCRUBBED = "logfire writes '[Scrubbed due to 'session']' instead"
_NO_INPUT = "the span of a response that failed has no input"
_NO_MARK = "a message with the result of a tool does not say that it failed"
_NO_NAMES = "messages are left out whole, names of tools with them"
_NO_CALLS = "calls of the model have no spans"
_NO_NAME = "the agent's name is in dumped objects alone"
_ONE_SPAN = "one span has all calls of the model, and each writes over what the one before wrote"
_SIMPLE = "one-tool, parallel, retry, stream, tool-raises, dead, session, no-content"
_WITH_TOKENS = "one-tool, parallel, retry, stream, tool-raises, session, no-content, subagent"
_CALLS = "order, tools, arguments, results"
GAPS: tuple[tuple[str, str, str, str], ...] = (
    ("openai-agents-openinference", "dead, web-dead", "question", _NO_INPUT),
    ("openai-agents-logfire", "dead, web-dead", "question", _NO_INPUT),
    ("openai-agents-logfire", "session", "session", _SCRUBBED),
    ("pydantic-ai-logfire", "session", "session", _SCRUBBED),
    ("openai-logfire", "session", "session", _SCRUBBED),
    ("openai-logfire", "tool-raises", "tool errors", _NO_MARK),
    ("anthropic-logfire", "session", "session", _SCRUBBED),
    ("anthropic-logfire", "tool-raises", "tool errors", _NO_MARK),
    ("anthropic-openinference", "no-content", _CALLS, _NO_NAMES),
    ("anthropic-openinference", "tool-raises", "tool errors", _NO_MARK + ", but for the dumped request"),
    ("anthropic-traceloop", "no-content", _CALLS, _NO_NAMES),
    ("anthropic-traceloop", "tool-raises", "tool errors", _NO_MARK),
    ("anthropic-traceloop", "stream", "tokens", "one token more in each answer than the provider said"),
    ("smolagents-openinference", "dead", "question", "an agent that fails has no span of its own"),
    ("smolagents-openinference", "subagent", "results", "a plain text of the next message tells it"),
    ("smolagents-openinference", "subagent", "inner question", "smolagents asks in many words of its own"),
    ("crewai-openinference", _SIMPLE, "turns, order", _NO_CALLS),
    ("crewai-openinference", _WITH_TOKENS, "tokens", _NO_CALLS + "; the crew's span has a sum"),
    ("crewai-openinference", "dead", "question", "the crew's span alone has the task"),
    ("crewai-openinference", "parallel", "arguments, results", "tools run at once, without ids of calls"),
    (
        "crewai-openinference",
        "subagent",
        "runs, turns, tools, arguments, results, order, inner agent, inner turns, inner tokens, "
        "inner order, inner question, inner answer, inner tools, inner arguments, inner results",
        "the agent that is asked has no span; its tool is within that of the call",
    ),
    ("llama-index-openinference", _SIMPLE + ", subagent, handoff", "agent", _NO_NAME),
    ("llama-index-openinference", "subagent", "inner agent", _NO_NAME),
    ("google-adk", "session", "user", "no span has the user"),
    (
        "google-adk-openinference",
        "one-tool, parallel, retry, stream, session, no-content, handoff, subagent",
        "tokens",
        _ONE_SPAN,
    ),
    ("google-adk-openinference", "subagent", "inner tokens", _ONE_SPAN),
    ("google-adk-openinference", "dead", "question", _NO_INPUT),
    (
        "google-adk-openinference",
        "no-content",
        "question, answer, arguments, results",
        "the switch does not reach ADK's own span of the model, which has all messages",
    ),
    ("litellm-callback", "no-content", _CALLS, _NO_NAMES),
    ("litellm-callback", "tool-raises", "tool errors", _NO_MARK),
    ("litellm-callback", "session", "session", "no span has the session of the metadata"),
    (
        "litellm-callback",
        "stream",
        "runs, turns, tokens, answer, cost, " + _CALLS,
        "the span of a call that streams has no parent: each is a trace of its own",
    ),
    ("litellm-openinference", "no-content", _CALLS, _NO_NAMES),
    ("litellm-openinference", "tool-raises", "tool errors", _NO_MARK),
)
"""Framework, cases, facts, and what upstream emits instead."""
NOT_EMITTED: dict[tuple[str, str, str], str] = {
    (framework, case, fact): why
    for framework, cases, facts, why in GAPS
    for case in cases.split(", ")
    for fact in facts.split(", ")
}
"""Facts that the spans of a framework do not hold, and what they have instead."""
