"""The check of tool calls: which tools, in which order, with which arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_tfgrpo.core.records import CheckResult, Frame
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.schema import short
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.scoring.checks.protocol import CheckContext, CheckKind, builtin_params, verdict
from pytest_tfgrpo.harness.scoring.checks.structured import mismatch

Call = Mapping[str, Json]


def _is(frame: Frame, call: Call) -> bool:
    if frame.name != call["name"]:
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
    order, calls = check.params.get("order", "in_order"), check.params["calls"]
    frames = [frame for frame in context.frames if frame.kind == "tool"]
    if ORDERS[order](calls, frames):
        return verdict(check, None)
    wanted = [
        call["name"] + (f" {short(call['arguments'])}" if "arguments" in call else "") for call in calls
    ]
    got = [f"{frame.name} {short(frame.input, 40)}" for frame in frames[:20]]
    return verdict(check, f"expected calls ({order}) [{', '.join(wanted[:20])}], got [{', '.join(got)}]")


TOOL_CALLS = CheckKind(name="tool_calls", params=builtin_params("tool_calls"), evaluate=_tool_calls)
