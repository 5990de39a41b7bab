"""One batch of events, written within one transaction of the live store."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pytest_tfgrpo.core.wire import Json, from_wire, to_wire
from pytest_tfgrpo.live.event_text import encode, is_number, stored_key, stored_name, stored_text
from pytest_tfgrpo.live.records import ArmChoice, LiveEvent, LiveStatus
from pytest_tfgrpo.live.run_closing import OpenRun, RunEnding
from pytest_tfgrpo.live.states import EVENTS_LOST, RETRIED, RefusedEvent
from pytest_tfgrpo.live.store_reading import CHOICE

_SPAN = "INSERT OR IGNORE INTO spans VALUES (?, ?, ?, ?, ?, ?, ?)"
_FOUND = "SELECT sequence, attempt, status, score IS NOT NULL, used_in IS NOT NULL FROM rollouts "
_LARGEST = 2**63
"""What an integer of SQLite stays under."""


class EventBatch:
    """Events on their way into the store; each is taken, or refused for a counted reason."""

    def __init__(self, db: sqlite3.Connection, now: float) -> None:
        self.db, self.now = db, now
        self.refused: Counter[RefusedEvent] = Counter()
        self.ended: dict[int, tuple[OpenRun, RunEnding]] = {}
        """By sequence, in the order of their ends."""
        self.scored: dict[int, OpenRun] = {}
        """Runs that had ended before the batch, and whose outcome is in it."""
        self._spans: list[tuple[Any, ...]] = []
        self._runs: dict[tuple[str, str], OpenRun | None] = {}
        self._by_sequence: dict[int, OpenRun] = {}
        self._touched: dict[int, None] = {}
        self._next = 0

    def take(self, events: Sequence[LiveEvent]) -> None:
        """Put the events in their order into the batch."""
        refused = self.refused
        for event in events:
            try:
                reason = _TAKERS[event[0]](self, event)
            except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
                reason = RefusedEvent.MALFORMED
            if reason is not None:
                refused[reason] += 1

    def lose(self, events: Sequence[LiveEvent]) -> None:
        """End the runs of these events, which there was no room for."""
        for event in events:
            self.refused[RefusedEvent.LOST] += 1
            run = self._run(event)
            if run is None and event.kind == "start":
                self.take([event])
                run = self._run(event)
            if run is not None and (run.status is LiveStatus.RUNNING or run.sequence in self.ended):
                self._end(run, RunEnding(status=LiveStatus.FAILED, reason=EVENTS_LOST, at=event.at))

    def write_spans(self) -> int:
        """Write spans and touches; return how many spans were new."""
        spans = self._spans
        written = self.db.executemany(_SPAN, spans).rowcount if spans else 0
        if len(spans) > written:
            self.refused[RefusedEvent.DUPLICATE] += len(spans) - written
        touched = [(self.now, sequence) for sequence in self._touched if sequence not in self.ended]
        if touched:
            self.db.executemany("UPDATE rollouts SET touched_at = ? WHERE sequence = ?", touched)
        self._spans, self._touched = [], {}
        return written

    def _run(self, event: LiveEvent) -> OpenRun | None:
        key = (event[1], event[2])
        try:
            return self._runs[key]
        except KeyError:
            run = self._runs[key] = self._find(
                "WHERE owner = ? AND run = ?", (stored_name(event.owner), stored_key(event.run))
            )
            return run

    def _find(self, where: str, values: tuple[object, ...]) -> OpenRun | None:
        row = self.db.execute(_FOUND + where, values).fetchone()
        if row is None:
            return None
        run = self._by_sequence.get(row[0])
        if run is None:
            sequence, attempt, status, scored, used = row
            run = OpenRun(sequence, attempt, LiveStatus(status), bool(scored), bool(used))
            self._by_sequence[sequence] = run
        return run

    def _start(self, event: LiveEvent) -> RefusedEvent | None:
        if self._run(event) is not None:
            return RefusedEvent.DUPLICATE
        if event.attempt != 1:
            return RefusedEvent.MALFORMED
        data, at = event.data, _time(event)
        prompt = data.get("prompt")
        row = (
            stored_key(event.run),
            stored_name(event.owner),
            stored_name(data["category"]),
            bool(data.get("control", False)),
            at,
            self.now,
            None if prompt is None else stored_text(prompt),
        )
        if not self._next:
            self._next = 1 + (self.db.execute("SELECT max(sequence) FROM rollouts").fetchone()[0] or 0)
        sequence = self._next
        self.db.execute(
            "INSERT INTO rollouts (sequence, run, owner, category, control, started_at, touched_at, prompt)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (sequence, *row),
        )
        self._next += 1
        self._open_attempt(sequence, 1, at)
        run = OpenRun(sequence, 1, LiveStatus.RUNNING, False, False)
        self._runs[event.run, event.owner] = self._by_sequence[sequence] = run
        return None

    def _open_attempt(self, sequence: int, number: int, at: float) -> None:
        self.db.execute(
            "INSERT INTO attempts (rollout, number, started_at) VALUES (?, ?, ?)", (sequence, number, at)
        )

    def _span(self, event: LiveEvent) -> RefusedEvent | None:
        run = self._run(event)
        if (reason := _misplaced(run, event)) is not None or run is None:
            return reason
        kind, seq = event[0], event[4]
        name, flag, data = _SPANS[kind](event[6])
        if seq.__class__ is not int or not 0 <= seq < _LARGEST:
            return RefusedEvent.MALFORMED
        self._spans.append((run.sequence, seq, run.attempt, name, _time(event), flag, data))
        self._touched[run.sequence] = None
        return None

    def _retry(self, event: LiveEvent) -> RefusedEvent | None:
        run = self._run(event)
        if run is None or run.status is not LiveStatus.RUNNING:
            return _misplaced(run, event)
        if event.attempt != run.attempt + 1:
            return RefusedEvent.DUPLICATE if event.attempt <= run.attempt else RefusedEvent.NO_ATTEMPT
        at = _time(event)
        self.db.execute(
            "UPDATE attempts SET status = 'failed', reason = ?, ended_at = ?"
            " WHERE rollout = ? AND number = ?",
            (RETRIED, at, run.sequence, run.attempt),
        )
        self._open_attempt(run.sequence, event.attempt, at)
        self.db.execute("UPDATE rollouts SET attempt = ? WHERE sequence = ?", (event.attempt, run.sequence))
        run.attempt = event.attempt
        self._touched[run.sequence] = None
        return None

    def _close(self, event: LiveEvent) -> RefusedEvent | None:
        run = self._run(event)
        if (reason := _misplaced(run, event)) is not None or run is None:
            return reason
        data = event.data
        reply = data.get("reply")
        status = LiveStatus(data["status"])
        if status is LiveStatus.RUNNING:
            return RefusedEvent.MALFORMED
        ending = RunEnding(
            status=status,
            reason=stored_name(data.get("reason") or ""),
            at=_time(event),
            reply=None if reply is None else stored_text(reply),
            prompt_chars=_count(data.get("prompt_chars")),
            reply_chars=_count(data.get("reply_chars", len(reply or ""))),
            completed=bool(data.get("completed", status is LiveStatus.SUCCEEDED)),
            cost_usd=_quantity(data.get("cost_usd")),
            latency_ms=_quantity(data.get("latency_ms")),
        )
        self._end(run, ending)
        score = data.get("score")
        return None if score is None else self._score(run, score)

    def _end(self, run: OpenRun, ending: RunEnding) -> None:
        run.status = ending.status
        self.ended[run.sequence] = (run, ending)

    def _outcome(self, event: LiveEvent) -> RefusedEvent | None:
        run = self._run(event) if event.owner else self._newest(event.run)
        if run is None:
            return RefusedEvent.UNKNOWN_RUN
        reason = self._score(run, event.data["score"])
        if reason is None and run.status is not LiveStatus.RUNNING and run.sequence not in self.ended:
            self.scored[run.sequence] = run
        return reason

    def _newest(self, key: str) -> OpenRun | None:
        return self._find("WHERE run = ? ORDER BY sequence DESC LIMIT 1", (stored_key(key),))

    def _score(self, run: OpenRun, score: object) -> RefusedEvent | None:
        if not is_number(score):
            return RefusedEvent.REWARD_NOT_A_NUMBER
        if not 0 <= score <= 1:  # type: ignore[operator]
            return RefusedEvent.REWARD_OUT_OF_RANGE
        if run.used:
            return RefusedEvent.REWARD_USED
        if run.scored:
            return RefusedEvent.REWARD_TWICE
        self.db.execute(
            "UPDATE rollouts SET score = ? WHERE sequence = ?",
            (float(score), run.sequence),  # type: ignore[arg-type]
        )
        run.scored = True
        return None


_TAKERS: Mapping[str, Callable[[EventBatch, LiveEvent], RefusedEvent | None]] = {
    "start": EventBatch._start,
    "choice": EventBatch._span,
    "turn": EventBatch._span,
    "tool": EventBatch._span,
    "safety": EventBatch._span,
    "retry": EventBatch._retry,
    "end": EventBatch._close,
    "outcome": EventBatch._outcome,
}


def _misplaced(run: OpenRun | None, event: LiveEvent) -> RefusedEvent | None:
    """Return why an event has no place in its run."""
    if run is None:
        return RefusedEvent.UNKNOWN_RUN
    if run.status is not LiveStatus.RUNNING:
        return RefusedEvent.AFTER_END
    if event[3] == run.attempt:
        return None
    return RefusedEvent.STALE_ATTEMPT if event[3] < run.attempt else RefusedEvent.NO_ATTEMPT


def _time(event: LiveEvent) -> float:
    at = event[5]
    if not is_number(at):
        raise ValueError(f"an event's time must be a number, not {at!r}")
    return float(at)


def _count(value: object) -> int:
    return min(int(value), _LARGEST - 1) if is_number(value) and value > 0 else 0  # type: ignore[call-overload,operator]


def _quantity(value: object) -> float | None:
    return float(value) if is_number(value) and value >= 0 else None  # type: ignore[arg-type,operator]


def _turn(_data: Mapping[str, Json]) -> tuple[str, int, str]:
    return "live.agent.turn", 0, "{}"


def _tool(data: Mapping[str, Json]) -> tuple[str, int, str]:
    return _tool_span(data["name"], data.get("error"))


@lru_cache(4096)
def _tool_span(name: str, error: str | None) -> tuple[str, int, str]:
    shown = None if error is None else stored_name(error)
    return "live.agent.tool", int(shown is not None), encode({"name": stored_name(name), "error": shown})


def _safety(data: Mapping[str, Json]) -> tuple[str, int, str]:
    blocked = bool(data["blocked"])
    return "live.agent.safety", int(blocked), encode({"blocked": blocked})


def _choice(data: Mapping[str, Json]) -> tuple[str, int, str]:
    """Return the span of a choice; its flag is the place, by which choices are sorted."""
    choice = from_wire(ArmChoice, to_wire(data))
    if choice.arm not in choice.probabilities or not 0 <= choice.place < _LARGEST:
        raise ValueError(f"the arm {choice.arm!r} has no probability")
    return CHOICE, choice.place, encode(to_wire(choice))


_SPANS: Mapping[str, Callable[[Mapping[str, Json]], tuple[str, int, str]]] = {
    "choice": _choice,
    "turn": _turn,
    "tool": _tool,
    "safety": _safety,
}
