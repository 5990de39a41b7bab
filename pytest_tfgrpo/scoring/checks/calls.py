"""The check of tool calls: which tools, in which order, with which arguments, how they ended, how many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.records import CheckResult, Frame
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.json_answer import mismatch
from pytest_tfgrpo.scoring.checks.protocol import (
    BadParam,
    CheckContext,
    CheckKind,
    builtin_params,
    verdict,
)

Call = Mapping[str, Json]


def _is(frame: Frame, call: Call) -> bool:
    if frame.name != call["name"]:
        return False
    if "status" in call and (call["status"] == "ok") is not (frame.error is None):
        return False
    return "arguments" not in call or mismatch(call["arguments"], frame.input) is None


def _exact(calls: Sequence[Call], frames: Sequence[Frame]) -> bool:
    return len(calls) == len(frames) and all(map(_is, frames, calls))


def _in_order(calls: Sequence[Call], frames: Sequence[Frame]) -> bool:
    rest = iter(frames)
    return all(any(_is(frame, call) for frame in rest) for call in calls)


def _any_order(calls: Sequence[Call], frames: Sequence[Frame]) -> bool:
    """Match every call with a frame of its own: augmenting paths, as one frame may fit several calls."""
    taken: dict[int, int] = {}

    def place(call: int, tried: set[int]) -> bool:
        for i, frame in enumerate(frames):
            if i not in tried and _is(frame, calls[call]):
                tried.add(i)
                if i not in taken or place(taken[i], tried):
                    taken[i] = call
                    return True
        return False

    return all(place(call, set()) for call in range(len(calls)))


ORDERS = {"exact": _exact, "in_order": _in_order, "any_order": _any_order}


def _tool_calls(check: Check, context: CheckContext) -> CheckResult:
    frames = [frame for frame in context.frames if frame.kind == "tool"]
    return verdict(check, next(_reasons(check.params, frames), None))


def _reasons(params: Mapping[str, Json], frames: Sequence[Frame]) -> Iterator[str]:
    """Yield what is wrong with the calls of an attempt."""
    calls, order = params.get("calls", ()), params.get("order", "in_order")
    if "calls" in params and not ORDERS[order](calls, frames):
        wanted = ", ".join(map(_named, calls[:20]))
        got = ", ".join(f"{frame.name} {short(frame.input, 40)}" for frame in frames[:20])
        yield f"expected calls ({order}) [{wanted}], got [{got}]"
    for call in params.get("forbidden", ()):
        n = sum(_is(frame, call) for frame in frames)
        if n:
            yield f"{_named(call)} is forbidden, and was called {plural(n, 'time')}"
    others = {frame.name for frame in frames}.difference(params.get("allowed", {f.name for f in frames}))
    if others:
        yield f"called {', '.join(map(short, sorted(others)[:5]))}, allowed are {short(params['allowed'])}"
    least, most = params.get("min", 0), params.get("max", len(frames))
    if not least <= len(frames) <= most:
        limit = f"at least {least}" if len(frames) < least else f"at most {most}"
        yield f"expected {limit} calls of tools, got {len(frames)}"


def _named(call: Call) -> str:
    arguments = f" {short(call['arguments'])}" if "arguments" in call else ""
    return f"{call['name']}{arguments}" + (f" ({call['status']})" if "status" in call else "")


def _prepare(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    if "max" in params and params["max"] < params.get("min", 0):
        raise BadParam("max", f"{params['max']} is less than min, {params['min']}: no attempt could pass")
    if "order" in params and "calls" not in params:
        raise BadParam("order", "is the order of calls, of which there are none")
    return params


TOOL_CALLS = CheckKind(
    name="tool_calls", params=builtin_params("tool_calls"), evaluate=_tool_calls, prepare=_prepare
)
