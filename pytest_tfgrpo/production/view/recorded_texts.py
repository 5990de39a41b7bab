"""Whether a trajectory has texts, or its spans were recorded without."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.wire.wire import Json


def has_texts(trajectory: Mapping[str, Json]) -> bool:
    """Return whether a payload has any question, answer, arguments of a tool, or result of one.

    Errors are no texts: spans that are recorded without content have them too.
    """
    if _text_of(trajectory["task_context"], "instructions"):
        return True
    return any(_turn_has_texts(turn) for turn in trajectory["turns"] if isinstance(turn, Mapping))


def _turn_has_texts(turn: Mapping[str, Json]) -> bool:
    action, seen = turn.get("action"), turn.get("observation")
    asked = isinstance(seen, Mapping) and seen.get("type") == "user_message"
    return bool(
        turn.get("thought_process")
        or _text_of(action, "raw_response")
        or _text_of(action, "tool_args")
        or _text_of(turn.get("result"), "output")
        or (asked and _text_of(seen, "content"))
    )


def _text_of(part: Json, name: str) -> bool:
    return isinstance(part, Mapping) and bool(part.get(name))
