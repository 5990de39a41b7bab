"""Calls of tools that no span tells of, from the messages of the turns around them.

Many applications run the tools themselves, and have spans of their models' calls alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_tfgrpo.traces.turns import TraceCall, TraceStep


class _Told(NamedTuple):
    """Where a call, and then its result, was first told."""

    call: TraceCall
    start_ns: int
    end_ns: int


def steps_of_calls(agent: TraceStep, steps: Sequence[TraceStep]) -> list[TraceStep]:
    """Return a step for each call that the turns of a run tell of and that is no step of its own.

    `steps` are in the order of their starts. A call lasts from the turn that asked for it to the first that
    has its result. A call is known by its id, or else by tool and arguments.
    """
    tools = [step for step in steps if step.kind == "tool"]
    seen = {step.call for step in tools if step.call}
    without_id = {step.name for step in tools if not step.call}
    names = {step.name for step in tools}
    turns = [step for step in steps if step.kind == "turn"] or [agent]
    told: dict[str, _Told] = {}
    for turn in turns:
        for call, answered in _calls(turn):
            if call.id in seen or call.name in (without_id if call.id else names):
                continue
            key = call.id or f"\0{call.name}\0{call.arguments}"
            at_ns = max(turn.end_ns, turn.start_ns + 1) if answered else turn.start_ns
            known = told.get(key)
            if known is None and call.name:
                told[key] = _Told(call, at_ns, at_ns)
            elif known is not None and known.call.result is None and call.result is not None:
                ended = known.call._replace(result=call.result, failed=call.failed)
                told[key] = _Told(ended, known.start_ns, max(at_ns, known.start_ns))
    return [_step(one) for one in told.values()]


def _calls(turn: TraceStep) -> Iterator[tuple[TraceCall, bool]]:
    """Yield the calls that a turn tells of, and whether they are of its answer."""
    before = len(turn.calls) - turn.answers
    for at, call in enumerate(turn.calls):
        yield call, at >= before


def _step(told: _Told) -> TraceStep:
    call = told.call
    result = call.result or ""
    return TraceStep(
        kind="tool",
        name=call.name,
        start_ns=told.start_ns,
        end_ns=told.end_ns,
        error=(result or "_OTHER") if call.failed else None,
        asked=call.arguments,
        answered="" if call.failed else result,
        call=call.id,
    )
