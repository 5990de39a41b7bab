"""Calls of tools, as their spans and the messages of the turns around them show them.

Many applications run the tools themselves, and have spans of their models' calls alone; many frameworks write
into a tool's span what they handed to a function, where the message has what the model said and saw.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_tfgrpo.telemetry.traces.turns import TraceCall, TraceStep


class _Told(NamedTuple):
    """Where a call, and then its result, first appeared."""

    call: TraceCall
    start_ns: int
    end_ns: int
    turn: int
    """Place among the turns of the one that made it."""
    clear: bool = True
    """False where one id is that of calls with other arguments."""


def with_calls(agent: TraceStep, steps: Sequence[TraceStep]) -> tuple[TraceStep, ...]:
    """Return the steps of a run, each call with what messages say of it, and one for each call that only
    messages name.

    `steps` are in the order of their starts. A call and its message are known by their id, or else by tool
    and arguments, or else by tool and order. A call without a span lasts from the turn that made it to
    the first that has its result.
    """
    told = _told(agent, steps)
    pairs = _pairs(steps, told)
    taken = set(pairs.values())
    found = [_with_message(step, told[pairs[at]]) if at in pairs else step for at, step in enumerate(steps)]
    more = [_step(one) for key, one in told.items() if key not in taken]
    return tuple(sorted((*more, *found), key=lambda step: step.start_ns)) if more else tuple(found)


def _told(agent: TraceStep, steps: Sequence[TraceStep]) -> dict[str, _Told]:
    """Return the calls that messages name, in the order in which the model made them."""
    told: dict[str, _Told] = {}
    for place, turn in enumerate([step for step in steps if step.kind == "turn"] or [agent]):
        before = len(turn.calls) - turn.answers
        for number, call in enumerate(turn.calls):
            key = call.id or f"\0{call.name}\0{call.arguments}"
            at_ns = max(turn.end_ns, turn.start_ns + 1) if number >= before else turn.start_ns
            known = told.get(key)
            if known is None:
                if call.name:
                    told[key] = _Told(call, at_ns, at_ns, place if number >= before else place - 1)
                continue
            if call.name and call.arguments != known.call.arguments:
                known = known._replace(clear=False)
            if known.call.result is None and call.result is not None:
                ended = known.call._replace(result=call.result, failed=call.failed)
                known = known._replace(call=ended, end_ns=max(at_ns, known.start_ns))
            told[key] = known
    return told


def _pairs(steps: Sequence[TraceStep], told: Mapping[str, _Told]) -> dict[int, str]:
    """Return which message belongs to which span, by the place of this among the steps."""
    spans = {at: step for at, step in enumerate(steps) if step.kind != "turn"}
    pairs = {at: step.call for at, step in spans.items() if step.call in told}
    taken = set(pairs.values())
    free: defaultdict[str, list[str]] = defaultdict(list)
    for key, one in told.items():
        if key not in taken:
            free[one.call.name].append(key)
    for alike in (True, False):
        for at, step in spans.items():
            for key in () if at in pairs else free[step.name]:
                call = told[key].call
                if call.arguments == step.asked if alike else not (step.call and call.id):
                    pairs[at] = key
                    free[step.name].remove(key)
                    break
    return pairs | dict(_renamed(steps, told, pairs))


def _renamed(
    steps: Sequence[TraceStep], told: Mapping[str, _Told], pairs: Mapping[int, str]
) -> Iterator[tuple[int, str]]:
    """Yield the pairs of two names: the one call and the one span that are left between two turns."""
    taken = set(pairs.values())
    spans: defaultdict[int, list[int]] = defaultdict(list)
    turn = -1
    for at, step in enumerate(steps):
        turn += step.kind == "turn"
        if step.kind != "turn" and at not in pairs and not step.call:
            spans[turn].append(at)
    calls: defaultdict[int, list[str]] = defaultdict(list)
    for key, one in told.items():
        if key not in taken:
            calls[one.turn].append(key)
    for turn, places in spans.items():
        if len(places) == 1 and len(calls[turn]) == 1:
            yield places[0], calls[turn][0]


def _with_message(step: TraceStep, told: _Told) -> TraceStep:
    """Return the step of a span with what the messages say of its call."""
    call = told.call
    error = step.error
    if error is None and call.failed:
        error = call.result or "_OTHER"
    answered = step.answered if call.result is None else call.result
    return replace(
        step,
        name=call.name,
        error=error,
        asked=call.arguments if told.clear and call.arguments else step.asked,
        answered=answered if error is None or call.result is not None else "",
        call=step.call or call.id,
    )


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
        ended=call.result is not None,
    )
