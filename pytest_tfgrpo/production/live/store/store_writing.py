"""One batch of events, written within one transaction of the live store."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.records import ArmChoice, LiveEvent, LiveStatus
from pytest_tfgrpo.production.live.states import EVENTS_LOST, RETRIED, RefusedEvent
from pytest_tfgrpo.production.live.store.event_text import (
    SEARCHED_CHARS,
    encode,
    is_number,
    stored_key,
    stored_name,
    stored_text,
)
from pytest_tfgrpo.production.live.store.run_closing import OpenRun, RunEnding
from pytest_tfgrpo.production.live.store.store_reading import AT_ONCE, CHOICE

_SPAN = "INSERT OR IGNORE INTO spans VALUES (?, ?, ?, ?, ?, ?, ?)"
_CHOICE_KEYS = frozenset(field.name for field in fields(ArmChoice))
_ATTEMPT = "INSERT INTO attempts (rollout, number, started_at) VALUES (?, ?, ?)"
_FOUND = """SELECT sequence, attempt, status, score IS NOT NULL, used_in IS NOT NULL, owner, run, touched_at
            FROM rollouts"""
TOUCHED_S = 10.0
"""How exactly it is known when a run had its last event; that it goes on need not be written each time."""
_RUNNING = LiveStatus.RUNNING
_ODD = (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError)
"""What data of other types and shapes raise."""
_LARGEST = 2**63 - 1
"""What integers of an event stay under: SQLite's largest, as the decision on a run has the next place."""


class EventBatch:
    """Events on their way into the store; each is taken, or refused for a counted reason."""

    def __init__(self, db: sqlite3.Connection, now: float) -> None:
        self.db, self.now = db, now
        self.refused: Counter[RefusedEvent] = Counter()
        self.ended: dict[int, tuple[OpenRun, RunEnding]] = {}
        """By sequence, in the order of their ends."""
        self.scored: dict[int, float] = {}
        """Scores of runs that had ended before the batch, by sequence."""
        self._spans: list[tuple[Any, ...]] = []
        self._runs: dict[tuple[str, str], OpenRun | None] = {}
        self._by_sequence: dict[int, OpenRun] = {}
        self._touched: set[int] = set()
        self._started: list[tuple[Any, ...]] = []
        self._next = 0

    def take(self, events: Sequence[LiveEvent]) -> None:
        """Put the events in their order into the batch."""
        self._look_up(events)
        refused, runs, spans = self.refused, self._runs, self._spans
        for event in events:
            try:
                kind, key, owner, attempt, seq, at, data = event
                span = _SPANS.get(kind)
                if span is None:
                    reason = _TAKERS[kind](self, event)
                    if reason is not None:
                        refused[reason] += 1
                    continue
                run = runs.get((key, owner)) or self._run(event)
                if run is None or run.status is not _RUNNING or attempt != run.attempt:
                    refused[_misplaced(run, attempt)] += 1
                    continue
                name, flag, text = span(data)
                # the difference is not 0 for NaN and infinities
                if seq.__class__ is int and 0 <= seq < _LARGEST and at.__class__ is float and at - at == 0:
                    spans.append((run.sequence, seq, attempt, name, at, flag, text))
                else:
                    refused[RefusedEvent.MALFORMED] += 1
            except _ODD:
                refused[RefusedEvent.MALFORMED] += 1

    def lose(self, events: Sequence[LiveEvent]) -> None:
        """End the runs of these events, which there was no room for."""
        for event in events:
            self.refused[RefusedEvent.LOST] += 1
            run = self._run(event)
            if run is None and event.kind == "start":
                self.take([event])
                run = self._run(event)
            if run is not None and (run.status is _RUNNING or run.sequence in self.ended):
                self._end(run, RunEnding(status=LiveStatus.FAILED, reason=EVENTS_LOST, at=event.at))

    def write_spans(self) -> int:
        """Write what is taken; return how many spans were new."""
        self._write_starts()
        spans = self._spans
        written = self.db.executemany(_SPAN, spans).rowcount if spans else 0
        if len(spans) > written:
            self.refused[RefusedEvent.DUPLICATE] += len(spans) - written
        self._touched.update(span[0] for span in spans)
        touched = [
            (self.now, sequence)
            for sequence in self._touched - self.ended.keys()
            if abs(self.now - self._by_sequence[sequence].touched_at) >= TOUCHED_S
        ]
        if touched:
            self.db.executemany("UPDATE rollouts SET touched_at = ? WHERE sequence = ?", touched)
        self._spans, self._touched = [], set()
        return written

    def _look_up(self, events: Sequence[LiveEvent]) -> None:
        """Find the runs of these events at once: a statement costs more than a row."""
        wanted: dict[str, list[tuple[str, str]]] = {}
        named = {(run, owner) for _, run, owner, *_ in events if run.__class__ is owner.__class__ is str}
        for key in named - self._runs.keys():
            wanted.setdefault(stored_key(key[1]), []).append(key)
        owners = list(wanted)
        for start in range(0, len(owners), AT_ONCE):
            some = owners[start : start + AT_ONCE]
            rows = self.db.execute(f"{_FOUND} WHERE owner IN ({','.join('?' * len(some))})", some)
            found = {(row[5], row[6]): self._known(row) for row in rows}
            for owner in some:
                for key in wanted[owner]:
                    self._runs[key] = found.get((owner, stored_key(key[0])))

    def _run(self, event: LiveEvent) -> OpenRun | None:
        key = (event[1], event[2])
        if key not in self._runs:
            self._look_up([event])
        return self._runs.get(key)

    def _known(self, row: tuple[Any, ...]) -> OpenRun:
        sequence, attempt, status, scored, used, _, _, touched_at = row
        run = self._by_sequence.get(sequence)
        if run is None:
            run = OpenRun(sequence, attempt, LiveStatus(status), bool(scored), bool(used), touched_at)
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
            stored_key(event.owner),
            stored_name(data["category"]),
            bool(data.get("control", False)),
            at,
            self.now,
            None if prompt is None else stored_text(prompt),
        )
        if not self._next:
            self._next = 1 + (self.db.execute("SELECT max(sequence) FROM rollouts").fetchone()[0] or 0)
        run = OpenRun(self._next, 1, _RUNNING, False, False, self.now)
        self._started.append((run.sequence, *row))
        self._next += 1
        self._runs[event.run, event.owner] = self._by_sequence[run.sequence] = run
        return None

    def _write_starts(self) -> None:
        """Write the runs that began; whatever reads or changes their rows comes after."""
        if started := self._started:
            self.db.executemany(
                """INSERT INTO rollouts
                   (sequence, run, owner, category, control, started_at, touched_at, prompt)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
                started,
            )
            self.db.executemany(_ATTEMPT, [(row[0], 1, row[5]) for row in started])
            self._started = []

    def _retry(self, event: LiveEvent) -> RefusedEvent | None:
        run = self._run(event)
        if run is None or run.status is not _RUNNING:
            return _misplaced(run, event.attempt)
        if event.attempt != run.attempt + 1:
            return RefusedEvent.DUPLICATE if event.attempt <= run.attempt else RefusedEvent.NO_ATTEMPT
        at = _time(event)
        self._write_starts()
        self.db.execute(
            "UPDATE attempts SET status = 'failed', reason = ?, ended_at = ?"
            " WHERE rollout = ? AND number = ?",
            (RETRIED, at, run.sequence, run.attempt),
        )
        self.db.execute(_ATTEMPT, (run.sequence, event.attempt, at))
        self.db.execute("UPDATE rollouts SET attempt = ? WHERE sequence = ?", (event.attempt, run.sequence))
        run.attempt = event.attempt
        self._touched.add(run.sequence)
        return None

    def _close(self, event: LiveEvent) -> RefusedEvent | None:
        run = self._run(event)
        if run is None or run.status is not _RUNNING or event.attempt != run.attempt:
            return _misplaced(run, event.attempt)
        data = event.data
        reply = data.get("reply")
        status = LiveStatus(data["status"])
        if status is _RUNNING:
            return RefusedEvent.MALFORMED
        ending = RunEnding(
            status=status,
            reason=stored_name(data.get("reason") or ""),
            at=_time(event),
            reply=None if reply is None else stored_text(reply),
            prompt_chars=_count(data.get("prompt_chars")),
            reply_chars=_count(data.get("reply_chars", len(reply or ""))),
            completed=bool(data.get("completed", status is LiveStatus.SUCCEEDED)),
            cost_usd=self._quantity(data, "cost_usd", RefusedEvent.COST_NOT_A_NUMBER),
            latency_ms=self._quantity(data, "latency_ms", RefusedEvent.LATENCY_NOT_A_NUMBER),
        )
        self._end(run, ending)
        score = data.get("score")
        return None if score is None else self._score(run, score)

    def _quantity(self, data: Mapping[str, Json], key: str, reason: RefusedEvent) -> float | None:
        value: Any = data.get(key)
        if is_number(value) and not isinstance(value, bool) and value >= 0:
            return float(value)
        if value is not None:
            self.refused[reason] += 1
        return None

    def _end(self, run: OpenRun, ending: RunEnding) -> None:
        run.status = ending.status
        self.ended[run.sequence] = (run, ending)

    def _outcome(self, event: LiveEvent) -> RefusedEvent | None:
        run = self._run(event) if event.owner else self._newest(event.run)
        if run is None:
            return RefusedEvent.UNKNOWN_RUN
        reason = self._score(run, event.data["score"])
        if reason is None and run.status is not _RUNNING and run.sequence not in self.ended:
            self.scored[run.sequence] = float(event.data["score"])
        return reason

    def _newest(self, key: str) -> OpenRun | None:
        self._write_starts()
        newest = f"{_FOUND} WHERE run = ? ORDER BY sequence DESC LIMIT 1"
        row = self.db.execute(newest, (stored_key(key),)).fetchone()
        return None if row is None else self._known(row)

    def _score(self, run: OpenRun, score: object) -> RefusedEvent | None:
        if not is_number(score):
            return RefusedEvent.REWARD_NOT_A_NUMBER
        if not 0 <= score <= 1:  # type: ignore[operator]
            return RefusedEvent.REWARD_OUT_OF_RANGE
        if run.used:
            return RefusedEvent.REWARD_USED
        if run.scored:
            return RefusedEvent.REWARD_TWICE
        self._write_starts()
        self.db.execute(
            "UPDATE rollouts SET score = ? WHERE sequence = ?",
            (float(score), run.sequence),  # type: ignore[arg-type]
        )
        run.scored = True
        return None


_TAKERS: Mapping[str, Callable[[EventBatch, LiveEvent], RefusedEvent | None]] = {
    "start": EventBatch._start,
    "retry": EventBatch._retry,
    "end": EventBatch._close,
    "outcome": EventBatch._outcome,
}


def _misplaced(run: OpenRun | None, attempt: int) -> RefusedEvent:
    """Return why an event of an attempt has no place in its run."""
    if run is None:
        return RefusedEvent.UNKNOWN_RUN
    if run.status is not _RUNNING:
        return RefusedEvent.AFTER_END
    return RefusedEvent.STALE_ATTEMPT if attempt < run.attempt else RefusedEvent.NO_ATTEMPT


def _time(event: LiveEvent) -> float:
    at = event[5]
    if not is_number(at):
        raise ValueError(f"an event's time must be a number, not {at!r}")
    return float(at)


def _count(value: object) -> int:
    return min(int(value), _LARGEST - 1) if is_number(value) and value > 0 else 0  # type: ignore[call-overload,operator]


def _turn(data: Mapping[str, Json]) -> tuple[str, int, str]:
    if data:
        raise ValueError(f"a turn has no data: {short(data)}")
    return "live.agent.turn", 0, "{}"


def _tool(data: Mapping[str, Json]) -> tuple[str, int, str]:
    name, error = data["name"], data.get("error")
    return _tool_span(name[:SEARCHED_CHARS], None if error is None else error[:SEARCHED_CHARS])


@lru_cache(4096)
def _tool_span(name: str, error: str | None) -> tuple[str, int, str]:
    shown = None if error is None else stored_name(error)
    return "live.agent.tool", int(shown is not None), encode({"name": stored_name(name), "error": shown})


def _safety(data: Mapping[str, Json]) -> tuple[str, int, str]:
    blocked = bool(data["blocked"])
    return "live.agent.safety", int(blocked), encode({"blocked": blocked})


def _choice(data: Mapping[str, Json]) -> tuple[str, int, str]:
    """Return the span of a choice; its flag is the place, by which choices are sorted."""
    point, place, arm, arms = data["point"], data["place"], data["arm"], data["arms"]
    probabilities, selector = data["probabilities"], data["selector"]
    texts = (point, arm, *arms, *arms.values(), *probabilities)
    whole = all(text.__class__ is str for text in texts) and all(map(is_number, probabilities.values()))
    counted = place.__class__ is int and selector.__class__ is int and 0 <= place < _LARGEST
    if not whole or not counted or arm not in probabilities or data.keys() - _CHOICE_KEYS:
        raise ValueError(f"no choice: {short(data)}")
    control = bool(data.get("control", False))
    choice = {"point": point, "place": place, "arm": arm, "arms": dict(arms)}
    return (
        CHOICE,
        place,
        encode({**choice, "probabilities": dict(probabilities), "selector": selector, "control": control}),
    )


_SPANS: Mapping[str, Callable[[Mapping[str, Json]], tuple[str, int, str]]] = {
    "choice": _choice,
    "turn": _turn,
    "tool": _tool,
    "safety": _safety,
}
