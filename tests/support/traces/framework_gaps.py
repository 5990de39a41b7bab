"""What does not come out of the recordings of frameworks, fact by fact."""

from __future__ import annotations

NOT_EMITTED: dict[tuple[str, str, str], str] = {
    **{
        ("openai-agents-openinference", case, "question"): "the span of a response that failed has no input"
        for case in ("dead", "web-dead")
    },
}
"""Facts that the spans of a framework do not hold, and what they have instead."""
_WRONG: dict[tuple[str, str], str] = {}
WRONG_TODAY = frozenset((*where, fact) for where, facts in _WRONG.items() for fact in facts.split(", "))
"""Facts that spans hold, and that do not come out yet."""
