"""What the evaluator reads from the view, in an order that the streams alone decide."""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import fields as fields_of
from itertools import islice
from typing import NamedTuple

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.dead_letters import DeadLetter, dead_event, died
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.view.view import (
    DEPLOYMENTS,
    FEEDBACKS,
    NO_TRAJECTORY,
    REWARDS,
    TRAINING,
    TRAJECTORIES,
    LoopView,
    event_at,
)
from pytest_tfgrpo.storage.event_store import BusEvent

INPUTS = (TRAJECTORIES, FEEDBACKS, REWARDS, TRAINING, DEPLOYMENTS)
"""The streams that are checked; rewards follow from the first three. Of equal times the first one's event
comes first."""
MOST_CLAIMS = 1000
"""Feedback events on one trajectory, and rewards of others, that count; the newest ones."""
_CAUSES = {
    TRAJECTORIES: "SELECT at, seq, id, time FROM trajectories WHERE seq > ? AND at <= ? ORDER BY seq LIMIT ?",
    FEEDBACKS: """SELECT at, seq, trajectory_id, time FROM feedback
        WHERE seq > ? AND at <= ? ORDER BY seq LIMIT ?""",
    REWARDS: """SELECT at, seq, trajectory_id, time FROM rewards
        WHERE own = 0 AND seq > ? AND at <= ? ORDER BY seq LIMIT ?""",
}
_REFUSED = """SELECT at, seq, code, pointer, message FROM refused
    WHERE stream = ? AND seq > ? AND at <= ? ORDER BY seq LIMIT ?"""
_WAITING = {
    FEEDBACKS: """SELECT seq, orphan AND NOT dead FROM feedback
        WHERE seq > ? AND seq <= ? AND at < ? ORDER BY seq LIMIT ?""",
    REWARDS: """SELECT seq, orphan AND NOT dead FROM rewards
        WHERE own = 0 AND seq > ? AND seq <= ? AND at < ? ORDER BY seq LIMIT ?""",
}


@dataclass(kw_only=True, slots=True)
class EvaluatorState:
    """How far the evaluator is; it is published along with its rewards."""

    trajectories: int = 0
    """Sequences of the last events whose rewards are published, by stream."""
    feedback: int = 0
    rewards: int = 0
    training: int = 0
    deployments: int = 0
    feedback_waited: int = 0
    """Sequences up to which nothing waits for its trajectory any more."""
    rewards_waited: int = 0
    ordinal: int = 0
    """Number of rewards."""

    def encode(self) -> dict[str, int]:
        """Return the state as JSON."""
        return {field.name: getattr(self, field.name) for field in fields_of(self)}

    def seen(self, stream: str) -> int:
        """Return the sequence of a stream up to which events count."""
        return int(getattr(self, _field(stream)))

    def see(self, stream: str, sequence: int) -> None:
        """Let the events of a stream count up to a sequence."""
        setattr(self, _field(stream), sequence)

    def waited(self, stream: str) -> int:
        """Return the sequence of a stream up to which nothing waits."""
        return int(getattr(self, f"{_field(stream)}_waited"))

    def wait(self, stream: str, sequence: int) -> None:
        """Let nothing wait up to a sequence of a stream."""
        setattr(self, f"{_field(stream)}_waited", sequence)


def decode_state(value: Json) -> EvaluatorState:
    """Return the state that the last evaluator published; a new one if there was none."""
    known = {field.name for field in fields_of(EvaluatorState)}
    return EvaluatorState(**{name: int(one) for name, one in (value or {}).items() if name in known})


def _field(stream: str) -> str:
    return stream.removeprefix("RL_").lower()


class EvaluatorInput(NamedTuple):
    """One event to take into account; they are in order."""

    at: float
    place: int
    """Of its stream in `INPUTS`."""
    sequence: int
    trajectory_id: str
    """Empty for an event that is refused."""
    time: str
    """When it happened."""
    refused: tuple[str, str, str] = ("", "", "")
    """Code, JSON pointer and message."""


def next_inputs(view: LoopView, state: EvaluatorState, upto: float, limit: int) -> list[EvaluatorInput]:
    """Return the first `limit` events that are not taken into account yet and arrived by `upto`."""
    sources: list[list[EvaluatorInput]] = []
    for place, stream in enumerate(INPUTS):
        since = (state.seen(stream), upto, limit)
        known = [
            EvaluatorInput(at, place, sequence, key, time)
            for at, sequence, key, time in (view.rows(_CAUSES[stream], since) if stream in _CAUSES else ())
        ]
        refused = [
            EvaluatorInput(at, place, sequence, "", "", (code, pointer, message))
            for at, sequence, code, pointer, message in view.rows(_REFUSED, (stream, *since))
        ]
        sources += [known, refused]
    return list(islice(heapq.merge(*sources), limit))


def refused_letter(bus: Bus, cause: EvaluatorInput) -> BusEvent | None:
    """Return the dead letter of an event that is none; None where it is gone."""
    stream = INPUTS[cause.place]
    event = event_at(bus, stream, cause.sequence)
    if event is None:
        return None
    code, pointer, message = cause.refused
    letter = DeadLetter(
        code=code,
        message=message,
        pointer=pointer,
        stream=stream,
        id=event.id,
        subject=event.subject,
        time=event.time,
        data=event.data,
    )
    return dead_event(letter, event.time)


def waited_enough(
    bus: Bus, view: LoopView, state: EvaluatorState, before: float, limit: int, hours: float
) -> tuple[list[BusEvent], int]:
    """Return dead letters of what arrived `before` and has no trajectory, and how many events had waited.

    `state` then says that they wait no longer.
    """
    letters, count = [], 0
    for stream, query in _WAITING.items():
        rows = view.rows(query, (state.waited(stream), state.seen(stream), before, limit))
        for sequence, orphan in rows:
            event = event_at(bus, stream, sequence) if orphan else None
            if event is not None:
                message = f"its trajectory did not come within {hours:g} hours"
                letters.append(died(event, stream, "evaluator", NO_TRAJECTORY, message))
            state.wait(stream, sequence)
        count += len(rows)
    return letters, count


def trajectory_of(view: LoopView, trajectory_id: str, state: EvaluatorState) -> Json:
    """Return what a reward needs of the payload of a trajectory; None where it is not taken into account."""
    query = "SELECT slim, turns, seq FROM trajectories WHERE id = ? AND seq <= ?"
    found = view.rows(query, (trajectory_id, state.trajectories))
    if not found:
        return None
    slim, turns, sequence = found[0]
    return {**json.loads(slim), "turns": [None] * turns, "sequence": sequence}


def claims_of(view: LoopView, trajectory_id: str, state: EvaluatorState) -> tuple[list[Json], list[Json]]:
    """Return the newest feedback on a trajectory and rewards of others that are taken into account."""
    query = """SELECT slim FROM {table} WHERE trajectory_id = ? AND seq <= ? AND NOT dead{more}
        ORDER BY seq DESC LIMIT ?"""
    said, judged = (
        view.rows(query.format(table=table, more=more), (trajectory_id, seen, MOST_CLAIMS))
        for table, more, seen in (
            ("feedback", "", state.feedback),
            ("rewards", " AND own = 0", state.rewards),
        )
    )
    return [json.loads(slim) for (slim,) in said], [json.loads(slim) for (slim,) in judged]


def newest_reward(view: LoopView, trajectory_id: str, state: EvaluatorState) -> Mapping[str, Json] | None:
    """Return what a revision needs of the newest reward of a trajectory that was computed here."""
    query = """SELECT slim FROM rewards WHERE trajectory_id = ? AND own AND ordinal <= ?
        ORDER BY revision DESC LIMIT 1"""
    found = view.rows(query, (trajectory_id, state.ordinal))
    return json.loads(found[0][0]) if found else None
