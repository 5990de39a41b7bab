"""The frames of a rollout whose agent reports none: the model and tool calls among its spans."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from itertools import repeat

from pytest_tfgrpo.actors.output import TOKENS_MAX
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.wire.strict import finite
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_steps
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, TraceSpan, TraceStep

_DECODER = json.JSONDecoder(parse_constant=finite, parse_float=finite)
TOO_LARGE = "too_large"
"""Why a call is no frame: the frames before it have all the bytes that they may have."""


def frames_of_spans(
    found: Iterable[TraceSpan | RefusedSpan], *, max_bytes: int, count: Callable[[str], object]
) -> tuple[Frame, ...]:
    """Return the frames that the spans of one rollout amount to, in the order of their starts.

    `max_bytes` limits their texts; `count` is called for each span that is not used, with the reason.
    """
    forest = SpanForest(read_steps)
    forest.take(found)
    steps = forest.steps()
    for refused in forest.refused:
        count(refused.reason)
    frames: list[Frame] = []
    places = {step.span: number for number, step in enumerate(steps) if step.kind == "tool"}
    room = max_bytes
    for number, step in enumerate(steps):
        around = number if step.within is None else places.get(step.within, number)
        frame, size = _frame(step, max(0, number - around))
        room -= size
        if room < 0:
            for _ in repeat(None, len(steps) - number):
                count(TOO_LARGE)
            break
        frames.append(frame)
    return tuple(frames)


def _frame(step: TraceStep, inside: int) -> tuple[Frame, int]:
    """Return the frame of a turn or a tool call, and the bytes of its texts; `inside` as a frame has it."""
    asked, size = _sound(step.asked)
    output, output_size = _sound(step.answered)
    error, error_size = _sound(step.error or "")
    name, name_size = _sound(step.name or step.model or "unknown")
    latency_ms = (step.end_ns - step.start_ns) / 1e6
    frame = Frame(
        kind="tool" if step.kind == "tool" else "model",
        name=name,
        input=_arguments(asked) if step.kind == "tool" else asked or None,
        output=output,
        tokens=int(_amount(step.tokens) or 0),
        cost_usd=_amount(step.cost_usd),
        latency_ms=_amount(round(latency_ms, 3)) or 0.0,
        error=None if step.error is None else error,
        started_at=_time(step.start_ns),
        inside=inside,
    )
    return frame, size + output_size + error_size + name_size


def _sound(text: str) -> tuple[str, int]:
    """Return a text that UTF-8 can hold, and its size."""
    if text.isascii():
        return text, len(text)
    data = text.encode("utf-8", "replace")
    return data.decode("utf-8"), len(data)


def _arguments(text: str) -> Json:
    """Return the arguments of a call, which are JSON, or else the text that they are."""
    if not text:
        return None
    try:
        found: Json = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return text
    return found


def _amount(value: float | None) -> float | None:
    return value if value is not None and 0 <= value <= TOKENS_MAX else None


def _time(at_ns: int) -> str | None:
    second, rest = divmod(at_ns, 10**9)
    start = _second(second)
    return None if start is None else f"{start}.{rest // 10**6:03d}Z"


@lru_cache(maxsize=64)
def _second(second: int) -> str | None:
    try:
        return datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00")
    except (ValueError, OverflowError, OSError):
        return None
