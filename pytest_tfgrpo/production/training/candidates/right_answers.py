"""What feedback says of the right answer to a task: an expected value, or a correction in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pytest_tfgrpo.core.wire.fitting import fit
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.rewards.evidence import STATUS_SCORES
from pytest_tfgrpo.production.view.view import FEEDBACKS, LoopView

_TELLING = (b'"label"', b'"correction"')


class RightAnswer(NamedTuple):
    """One word of feedback, and whose task it is of."""

    sequence: int
    """Of the trajectory, in RL_TRAJECTORIES."""
    domain: str
    """Of the trajectory."""
    agent: str
    task: tuple[bool, str]
    """Whether it has a key, and the key, or else the digest of its wording."""
    owner: str
    """User, else session."""
    total: float | None
    """Newest reward."""
    expected: Json
    """None where there is none."""
    correction: str


_QUERY = """SELECT t.seq, t.domain, t.agent, t.task_key, t.wording, t.user_ref, t.session,
    (SELECT total FROM rewards WHERE trajectory_id = t.id AND own ORDER BY revision DESC LIMIT 1)
    FROM feedback f JOIN trajectories t ON t.id = f.trajectory_id
    WHERE f.seq = ? AND NOT f.dead AND NOT t.blocked AND t.wording IS NOT NULL"""


def right_answers(bus: Bus, view: LoopView) -> Iterator[RightAnswer]:
    """Yield what labels and corrections say, in the order of their stream; raises BusError.

    The view has all that is on the bus.
    """
    for event in bus.replay(FEEDBACKS):
        if not any(mark in event.data for mark in _TELLING):
            continue
        rows = view.rows(_QUERY, (event.sequence,))
        said = _said(event.data) if rows else None
        if said is not None:
            sequence, domain, agent, key, wording, user, session, total = rows[0]
            yield RightAnswer(
                sequence=sequence,
                domain=domain,
                agent=agent,
                task=(False, wording) if key is None else (True, key),
                owner=user or session,
                total=total,
                expected=said[0],
                correction=said[1],
            )


def _said(data: bytes) -> tuple[Json, str] | None:
    """Return the expected value and the correction; None for feedback that says neither."""
    try:
        payload: Mapping[str, Json] = fit(load_json(data))
    except ValueError:
        return None
    kind, expected = payload["type"], payload.get("expected")
    text = payload.get("text", "").strip()
    if kind == "correction":
        return (expected, text) if text or expected is not None else None
    if kind != "label":
        return None
    if expected is None and "component" not in payload and text not in STATUS_SCORES:
        expected = text  # what an evaluator concludes of a component is no answer to the task
    return None if expected is None or expected == "" else (expected, "")


def encoded(value: Json) -> str:
    """Return a value as JSON, equal for equal values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
