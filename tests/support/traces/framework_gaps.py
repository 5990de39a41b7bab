"""What does not come out of the recordings of frameworks, fact by fact."""

from __future__ import annotations

NOT_EMITTED: dict[tuple[str, str, str], str] = {
    **{
        ("openai-agents-openinference", case, "question"): "the span of a response that failed has no input"
        for case in ("dead", "web-dead")
    },
}
"""Facts that the spans of a framework do not hold, and what they have instead."""
_WRONG: dict[tuple[str, str], str] = {
    ("langchain-openinference", "handoff"): (
        "agent, turns, tokens, order, question, answer, tools, arguments, results"
    ),
    ("langchain-openinference", "no-content"): "question, answer, arguments, results",
    ("langchain-openinference", "one-tool"): "arguments",
    ("langchain-openinference", "parallel"): "arguments",
    ("langchain-openinference", "retry"): "arguments",
    ("langchain-openinference", "session"): "arguments",
    ("langchain-openinference", "stream"): "arguments",
    ("langchain-openinference", "subagent"): (
        "runs, agent, question, answer, tools, arguments, results, inner agent, inner turns, "
        "inner tokens, inner order, inner question, inner answer, inner tools, inner arguments, "
        "inner results"
    ),
    ("langchain-openinference", "tool-raises"): "arguments",
    ("openai-agents-openinference", "chat-stream"): "agent, answer",
    ("openai-agents-openinference", "dead"): "agent, failed",
    ("openai-agents-openinference", "handoff"): "agent, tools, arguments, results",
    ("openai-agents-openinference", "no-content"): "agent, question, answer, arguments, results",
    ("openai-agents-openinference", "one-tool"): "agent",
    ("openai-agents-openinference", "parallel"): "agent",
    ("openai-agents-openinference", "retry"): "agent",
    ("openai-agents-openinference", "session"): "agent",
    ("openai-agents-openinference", "stream"): "agent",
    ("openai-agents-openinference", "subagent"): (
        "runs, agent, turns, tokens, order, tools, arguments, results, inner agent, inner turns, "
        "inner tokens, inner order, inner question, inner answer, inner tools, inner arguments, "
        "inner results"
    ),
    ("openai-agents-openinference", "tool-raises"): "agent, results",
    ("openai-agents-openinference", "web-dead"): "agent, failed",
}
WRONG_TODAY = frozenset((*where, fact) for where, facts in _WRONG.items() for fact in facts.split(", "))
"""Facts that spans hold, and that do not come out yet."""
