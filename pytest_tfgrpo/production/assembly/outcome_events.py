"""Evaluations among the spans as feedback: those with a score from 0 to 1, or else a label."""

from __future__ import annotations

import json
import re

from pytest_tfgrpo.core.events import (
    FEEDBACK,
    EventFault,
    EventRefusal,
    RlEvent,
    check_event,
    derived_id,
    wrap,
)
from pytest_tfgrpo.core.wire.fitting import fit_text
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.assembly.trajectories import LONGEST_NAME, time_of
from pytest_tfgrpo.telemetry.traces.turns import RefusedTrace, TraceOutcome

SOURCE = "evaluation"
"""Who says so, of feedback that comes from spans."""
NO_COMPONENT = "evaluation"
"""What an evaluation without a name scores."""
_LONGEST_COMPONENT = 64


def feedback_event(outcome: TraceOutcome, trajectory: str, session: str = "") -> RlEvent | EventRefusal:
    """Return the event of an evaluation of a trajectory, whose id follows from what it says, or why none."""
    said = _said(outcome)
    if isinstance(said, RefusedTrace):
        message = f"the score of {outcome.name!r:.100} is {outcome.value!r:.100}, not a number from 0 to 1"
        return EventRefusal(
            fault=EventFault.SCHEMA, pointer="/data/score", message=f"{said.value}: {message}"
        )
    at = time_of(outcome.at_ns)
    content = json.dumps([outcome.name, outcome.at_ns, outcome.value, outcome.label], default=str)
    feedback = derived_id("feedback", trajectory, content)
    payload = {
        "feedback_id": feedback,
        "trajectory_id": trajectory,
        "timestamp": at,
        "component": component_of(outcome.name),
        "source": SOURCE,
        **({"session_id": fit_text(session)[:LONGEST_NAME]} if session else {}),
        **said,
    }
    return check_event(wrap(FEEDBACK, payload, event_id=derived_id("feedback", feedback), at=at))


def component_of(name: str) -> str:
    """Return the name of an evaluation as one of a component: lower case, digits and _."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if plain[:1].isdigit():
        plain = f"n{plain}"
    return plain[:_LONGEST_COMPONENT] or NO_COMPONENT


def _said(outcome: TraceOutcome) -> dict[str, Json] | RefusedTrace:
    score = _score(outcome.value)
    if score is None and not outcome.label:
        number = isinstance(outcome.value, int | float) and not isinstance(outcome.value, bool)
        return RefusedTrace.OUTCOME_OUT_OF_RANGE if number else RefusedTrace.OUTCOME_NOT_A_NUMBER
    if score is None:
        explained: dict[str, Json] = {"explanation": outcome.explanation} if outcome.explanation else {}
        return {"type": "label", "text": outcome.label, "metadata": explained}
    marks = {"label": outcome.label} if outcome.label else {}
    text = {"text": outcome.explanation} if outcome.explanation else {}
    return {"type": "score", "score": score, "metadata": marks, **text}


def _score(value: Json) -> float | None:
    """Return a number from 0 to 1; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None
