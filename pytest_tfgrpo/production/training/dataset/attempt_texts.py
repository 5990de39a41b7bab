"""An attempt as evidence has it: the answer and the calls before it, with texts that are not too long."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_tfgrpo.core.evidence import EvidenceAttempt, EvidenceGroup, EvidenceStep
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.wire.fitting import fit_text
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.production.view.wording import prompt_of

LONGEST_PROMPT = 16_384
"""Bytes of UTF-8."""
LONGEST_ATTEMPT = 65_536
"""Bytes of an attempt as JSON, about."""
_SHORTER = (16_384, 4096, 1024, 256)
"""Bytes that texts are cut to, one after the other, until an attempt is small enough."""
_MOST_STEPS = 100
_MOST_LESSONS = 1000
_LONGEST_NAME = 256
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def attempt_prompt(payload: Mapping[str, Json]) -> str:
    """Return what an attempt was asked for."""
    return fit_text(prompt_of(payload), longest=LONGEST_PROMPT)


def attempt_of(payload: Mapping[str, Json], total: float) -> EvidenceAttempt:
    """Return the attempt of a trajectory, whose turns may be anything that is JSON."""
    turns = [turn for turn in payload["turns"] if isinstance(turn, Mapping)]
    answer = _answer(turns[-1]) if turns else None
    steps = _fewer(list(_steps(turns if answer is None else turns[:-1], payload)))
    lessons = payload.get("metadata", {}).get("lessons", [])
    for longest in _SHORTER:
        found = EvidenceAttempt(
            total_reward=total,
            answer=fit_text(answer or "", longest=longest),
            trajectory_id=payload["trajectory_id"].lower(),
            steps=tuple(_shorter(step, longest) for step in steps),
            lessons=tuple(lessons[:_MOST_LESSONS]),
            ended=utc_time(payload["end_timestamp"]) or "",
        )
        if sum(map(_size, found.steps)) + 2 * len(found.answer) <= LONGEST_ATTEMPT:
            break
    return found


def _answer(turn: Mapping[str, Json]) -> str | None:
    """Return the answer that a turn gives; None where it calls something."""
    action = _part(turn, "action")
    if action.get("type") != "response":
        return None
    return _text(_part(turn, "result").get("output")) or _text(action.get("raw_response"))


def _steps(turns: Sequence[Mapping[str, Json]], payload: Mapping[str, Json]) -> Iterator[EvidenceStep]:
    model = payload.get("metadata", {}).get("model") or "model"
    for turn in turns:
        action, result = _part(turn, "action"), _part(turn, "result")
        said, took = _text(action.get("raw_response")), result.get("execution_time_ms")
        error = _text(result.get("error")) or None
        late = float(took) if isinstance(took, int | float) and 0 <= took <= 1e15 else 0.0
        if action.get("type") == "response":
            said = said or _text(result.get("output"))
            yield EvidenceStep(kind="model", name=model, output=said, error=error, latency_ms=late)
            continue
        if said:
            yield EvidenceStep(kind="model", name=model, output=said)
        yield EvidenceStep(
            kind="tool",
            name=(_text(action.get("tool_name")) or "tool")[:_LONGEST_NAME],
            input=action.get("tool_args"),
            output=_text(result.get("output")),
            error=error,
            latency_ms=late,
        )


def _fewer(steps: list[EvidenceStep]) -> list[EvidenceStep]:
    """Return the first and the last steps of too many; the last one before the gap says so."""
    half = _MOST_STEPS // 2
    if len(steps) <= _MOST_STEPS:
        return steps
    note = f"{steps[half - 1].output}\n(... {len(steps) - 2 * half} steps left out ...)"
    return [*steps[: half - 1], replace(steps[half - 1], output=note), *steps[-half:]]


def _shorter(step: EvidenceStep, longest: int) -> EvidenceStep:
    given = step.input
    if given is not None and len(text := _text(given)) > longest:
        given = fit_text(text, longest=longest)
    return replace(
        step,
        input=given,
        output=fit_text(step.output, longest=longest),
        error=None if step.error is None else fit_text(step.error, longest=longest),
    )


def _size(step: EvidenceStep) -> int:
    given = 0 if step.input is None else len(_text(step.input))
    return 100 + len(step.name) + given + len(step.output) + len(step.error or "")


def _part(turn: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    found = turn.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(value: Json) -> str:
    """Return a value as text; what is no text as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else _ENCODER.encode(value)


def encoded_attempt(attempt: EvidenceAttempt) -> str:
    """Return an attempt as JSON."""
    return _ENCODER.encode(to_wire(attempt))


def encoded_head(group: EvidenceGroup) -> str:
    """Return a group as JSON, without its attempts."""
    wire = to_wire(group)
    del wire["attempts"]
    return _ENCODER.encode(wire)
