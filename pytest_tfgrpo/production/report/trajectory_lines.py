"""One trajectory as lines of 80 columns: its turns, what was said of it, and its rewards.

Every text may come from a user, a model or a tool: none of it reaches the terminal as it is.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_tfgrpo.core.texts.text import block, duration, line, money, number, table
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.report.figure_lines import WIDTH
from pytest_tfgrpo.production.report.figures import ShownTrajectory

LIMIT = 600
"""Characters of a text that are shown, unless ``--full`` is set."""
_LABEL = 11
_CALLS = ("tool_call", "subordinate_call")


def shown_lines(shown: ShownTrajectory, limit: int | None = LIMIT) -> Iterator[str]:
    """Yield what there is of a trajectory; `limit` is of each text, None shows them whole."""
    data = _table(shown.trajectory)
    yield from _head(data, limit)
    before: Mapping[str, Json] = {}
    for number_, turn in enumerate(map(_table, _list(data.get("turns"))), 1):
        yield ""
        yield from _turn(number_, turn, before, limit)
        before = _table(turn.get("result"))
    for feedback in shown.feedback:
        yield ""
        yield from _feedback(_table(feedback), limit)
    for reward in shown.rewards:
        yield ""
        yield from _reward(_table(reward))
    if not shown.rewards:
        yield ""
        yield from _row("reward", "none so far: too little is known, or `tfgrpo loop status` is behind")


def _head(data: Mapping[str, Json], limit: int | None) -> Iterator[str]:
    context, metadata = _table(data.get("task_context")), _table(data.get("metadata"))
    yield from _row("trajectory", data.get("trajectory_id"))
    yield from _row("session", _joined([data.get("session_id"), metadata.get("user_ref")]))
    agent = [data.get("agent_id"), metadata.get("policy_version"), metadata.get("model")]
    yield from _row("agent", _joined(agent))
    yield from _row("time", f"{_text(data.get('start_timestamp'))} to {_text(data.get('end_timestamp'))}")
    task = _joined([context.get("task_key"), context.get("task_id")])
    yield from _row("task", f"{task} ({_text(context.get('domain'))})" if task else context.get("domain"))
    yield from _row("outcome", _outcome(_table(data.get("outcome"))))
    cost = metadata.get("total_cost_usd")
    paid = money(cost) if isinstance(cost, int | float) else None
    tokens = metadata.get("total_tokens")
    yield from _row("cost", _joined([f"{_text(tokens)} tokens" if tokens is not None else None, paid]))
    yield from _row("asked", context.get("instructions"), limit)


def _outcome(outcome: Mapping[str, Json]) -> str:
    """Return what is said of the outcome; what is false is no news."""
    return ", ".join(_said(name, value) for name, value in outcome.items() if value is not False)


def _said(name: str, value: Json) -> str:
    if value is True:
        return name
    parts = [_said(key, one) for key, one in value.items()] if isinstance(value, dict) else [_text(value)]
    return " ".join([name, *parts])


def _turn(
    number_: int, turn: Mapping[str, Json], before: Mapping[str, Json], limit: int | None
) -> Iterator[str]:
    """Yield a turn; what it saw is left out where that is the result of the turn before."""
    seen, action = _table(turn.get("observation")), _table(turn.get("action"))
    result = _table(turn.get("result"))
    yield line(f"turn {number_}  {_text(turn.get('timestamp'))}", WIDTH)
    content = seen.get("content")
    if seen.get("type") == "user_message":
        yield from _row("  user", content, limit)
    elif content not in (before.get("output"), before.get("error")):
        yield from _row("  saw", content, limit)
    for thought in _list(turn.get("thought_process")):
        yield from _row("  thought", thought, limit)
    if _text(action.get("type")) in _CALLS:
        called = f"{_text(action.get('tool_name'))} {_text(action.get('tool_args'))}"
        yield from _row("  called", called, limit)
        yield from _row("  result", result.get("output"), limit)
        took = result.get("execution_time_ms")
        yield from _row("  took", duration(took) if isinstance(took, int | float) else None)
    else:
        answer = action.get("raw_response")
        yield from _row("  answer", answer if answer is not None else result.get("output"), limit)
    if result.get("success") is False:
        yield from _row("  failed", result.get("error") or "no reason is known", limit)


def _feedback(data: Mapping[str, Json], limit: int | None) -> Iterator[str]:
    said = _joined([data.get(name) for name in ("type", "component", "rating", "score")], " ")
    yield from _row("feedback", _joined([said, data.get("source"), data.get("timestamp")]))
    yield from _row("  text", data.get("text"), limit)
    yield from _row("  expected", data.get("expected"), limit)


def _reward(data: Mapping[str, Json]) -> Iterator[str]:
    metadata = _table(data.get("metadata"))
    revision = f"revision {_text(metadata.get('revision'))}" if "revision" in metadata else None
    by = [revision, metadata.get("evaluator"), data.get("timestamp")]
    yield from _row("reward", f"{_number(data.get('total_reward'))}  {_joined(by)}")
    if metadata.get("hard_gate") is True:
        yield from _row("  blocked", "by safety: the reward is 0")
    parts = {name: _table(part) for name, part in _table(data.get("reward_components")).items()}
    rows = [
        [
            f"  {line(name, 20)}",
            line(_text(part.get("source")), 12),
            _number(part.get("score")),
            _number(part.get("weight")),
        ]
        for name, part in parts.items()
    ]
    cells = table(["  component", "source", "score", "weight"], rows, left=2)
    room = WIDTH - 2 - len(cells[0])
    reasons = [line(_text(part.get("reasoning")), room) for part in parts.values()]
    yield from (f"{row}  {reason}".rstrip() for row, reason in zip(cells, ["reason", *reasons], strict=True))


def _row(label: str, value: Json, limit: int | None = 300) -> Iterator[str]:
    """Yield a label and a text of as many lines as it has, each wrapped; nothing for no text."""
    text = block(_text(value), limit).rstrip()
    for part in text.split("\n") if text.strip() else ():
        for row in textwrap.wrap(part.replace("\t", "    "), WIDTH - _LABEL) or [""]:
            yield f"{label:<{_LABEL}}{row}".rstrip()
            label = ""


def _joined(values: list[Json], by: str = ", ") -> str:
    return by.join(text for value in values if (text := _text(value)))


def _text(value: Json) -> str:
    """Return a text as it is, and any other value as JSON."""
    if value is None:
        return ""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(a value that is nested too deeply to be shown)"


def _number(value: Json) -> str:
    return number(value) if isinstance(value, int | float) else _text(value)


def _table(value: Json) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
