"""The live store: runs, spans, updates, selectors and the guard's memory, for several processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json, to_wire
from pytest_tfgrpo.production.live.records import (
    GateState,
    LiveEvent,
    LiveRollout,
    LiveRules,
    LiveStatus,
    LiveUpdate,
)
from pytest_tfgrpo.production.live.states import EVENTS_LOST, HELD, TIMEOUT, RefusedEvent
from pytest_tfgrpo.production.live.store.event_text import encode
from pytest_tfgrpo.production.live.store.run_closing import OpenRun, RunEnding, close_runs, rescore
from pytest_tfgrpo.production.live.store.store_reading import LiveReader
from pytest_tfgrpo.production.live.store.store_schema import open_store_file
from pytest_tfgrpo.production.live.store.store_writing import EventBatch

UpdateRule = Callable[[Sequence[LiveRollout], int, Json | None], tuple[LiveUpdate, Json | None]]
_CLOSED_AT_ONCE = 1000
"""Open runs that one transaction closes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteReport:
    """What became of a batch."""

    spans: int
    """New ones."""
    ended: tuple[LiveRollout, ...]
    refused: Mapping[str, int]
    """Events by reason."""
    errors: tuple[str, ...]
    """What reward inference raised; the runs are stored without a reward."""
    gate: GateState


def open_live_store(path: Path | None, namespace: str) -> LiveStore:
    """Return the store at `path`, which is made where it is missing; None keeps it in memory.

    Raises StoreError for what is locked, damaged, of a newer version or another namespace, or no live store;
    nothing of it is changed then.
    """
    return LiveStore(open_store_file(path, namespace), path, namespace)


class LiveStore(LiveReader):
    """The runs of one namespace; every method is one transaction, and raises StoreError where it fails.

    Threads may share it.
    """

    # writing

    def write(
        self, events: Sequence[LiveEvent], *, rules: LiveRules, now: float, lost: Sequence[LiveEvent] = ()
    ) -> WriteReport:
        """Store a batch; the runs of the `lost` events fail. Held, it refuses all."""
        with self._transaction() as db:
            gate = self.gate()
            if gate.state == "hold":
                self._cancel_open(now)
                refused = Counter({RefusedEvent.HELD: len(events) + len(lost)})
                self._count(refused)
                return WriteReport(spans=0, ended=(), refused=_named(refused), errors=(), gate=gate)
            batch = EventBatch(db, now)
            batch.take(events)
            batch.lose(lost)
            spans = batch.write_spans()
            ended, after, errors = self._close(list(batch.ended.values()), gate, rules)
            for sequence, score in batch.scored.items():
                before = self._rollout(sequence)
                rollout, error = rescore(db, before, score, rules.infer)
                errors += [error] if error else []
                if before.reward is None and rollout.reward is not None:
                    after = rules.rewarded(after, rollout)
            self._count(batch.refused)
            self._keep_gate(gate, after, now)
            return WriteReport(
                spans=spans,
                ended=tuple(ended),
                refused=_named(batch.refused),
                errors=tuple(errors),
                gate=after,
            )

    def _close(
        self, endings: Sequence[tuple[OpenRun, RunEnding]], gate: GateState, rules: LiveRules
    ) -> tuple[list[LiveRollout], GateState, list[str]]:
        ended, errors = [], []
        for rollout, error in close_runs(self._db, self.namespace, endings, rules.infer):
            ended.append(rollout)
            errors += [error] if error else []
            if rollout.reason != EVENTS_LOST:
                gate = rules.ended(gate, rollout)
        return ended, gate, errors

    def expire(self, before: float, *, rules: LiveRules, now: float) -> int:
        """Fail the runs without events since `before`, of whatever process; return how many."""
        ending = RunEnding(status=LiveStatus.FAILED, reason=TIMEOUT, at=now)
        if not self._one(
            "SELECT 1 FROM rollouts WHERE status = 'running' AND touched_at < ? LIMIT 1", before
        ):
            return 0
        with self._transaction():
            gate = self.gate()
            runs = self._open_runs("AND touched_at < ?", before)
            _, after, _ = self._close([(run, ending) for run in runs], gate, rules)
            self._keep_gate(gate, after, now)
            return len(runs)

    def cancel_open(self, now: float, *, dropped: int = 0) -> int:
        """Close open runs as cancelled while the guard holds (decision 23); return how many.

        `dropped` events, which a collector refused meanwhile, are counted.
        """
        if not dropped and not self._one("SELECT 1 FROM rollouts WHERE status = 'running' LIMIT 1"):
            return 0
        with self._transaction():
            if dropped:
                self._count({RefusedEvent.HELD: dropped})
            return self._cancel_open(now) if self.gate().state == "hold" else 0

    def _cancel_open(self, now: float) -> int:
        ending = RunEnding(status=LiveStatus.CANCELLED, reason=HELD, at=now)
        endings = [(run, ending) for run in self._open_runs("")]
        return len(list(close_runs(self._db, self.namespace, endings, _no_reward)))

    def _open_runs(self, where: str, *values: float) -> list[OpenRun]:
        rows = self._db.execute(
            "SELECT sequence, attempt, score IS NOT NULL FROM rollouts"
            f" WHERE status = 'running' {where} LIMIT ?",
            (*values, _CLOSED_AT_ONCE),
        )
        return [OpenRun(sequence, n, LiveStatus.RUNNING, bool(scored), False) for sequence, n, scored in rows]

    def _count(self, refused: Mapping[RefusedEvent, int]) -> None:
        for reason, count in refused.items():
            known = "UPDATE refusals SET count = count + ? WHERE reason = ?"
            if not self._db.execute(known, (count, reason)).rowcount:
                self._db.execute("INSERT INTO refusals VALUES (?, ?)", (reason, count))

    # updates

    def due(self, *, outcome_wait_s: float = 0.0, now: float = 0.0, enough: int = 1000) -> int:
        """Return how many runs an update may use that none has looked at; it counts to `enough`.

        A run without a score counts once it ended `outcome_wait_s` ago.
        """
        with self._reading():
            return len(self._pending("pending = 1", enough, outcome_wait_s, now))

    def _pending(self, which: str, limit: int, outcome_wait_s: float, now: float) -> list[int]:
        """Return the sequences of the `limit` runs that ended first, of those an update may use."""
        until = now - outcome_wait_s if outcome_wait_s > 0 else float("inf")
        found: list[tuple[float, int]] = []
        for unscored, last in ((0, float("inf")), (1, until)):
            found += self._db.execute(
                f"""SELECT ended_at, sequence FROM rollouts INDEXED BY rollouts_pending
                    WHERE pending IS NOT NULL AND {which} AND (score IS NULL) = ? AND ended_at <= ?
                    ORDER BY ended_at, sequence LIMIT ?""",
                (unscored, last, limit),
            )
        return [sequence for _, sequence in sorted(found)[:limit]]

    def next_rollouts(
        self, *, limit: int, outcome_wait_s: float = 0.0, now: float = 0.0
    ) -> list[LiveRollout]:
        """Return what the next update gets: at most `limit` unused runs, those that ended first."""
        with self._reading():
            found = self._pending("pending", limit, outcome_wait_s, now)
            return self._rollouts(found)

    def update(
        self, compute: UpdateRule, *, limit: int, outcome_wait_s: float, now: float, due: int
    ) -> LiveUpdate | None:
        """Run one update over at most `limit` unused runs, oldest first, and store report, selector and use.

        None if fewer than `due` runs wait, as another process was faster, or if the guard holds. What
        `compute` raises leaves the store as it was.
        """
        with self._transaction() as db:
            waiting = self.due(outcome_wait_s=outcome_wait_s, now=now, enough=due)
            if waiting < due or self.gate().state == "hold":
                return None
            given = self.next_rollouts(limit=limit, outcome_wait_s=outcome_wait_s, now=now)
            number, document = self.selector() or (0, None)
            report, learned = compute(given, number, document)
            made = 1 + (self._one("SELECT max(number) FROM updates") or 0)
            changed = learned is not None and learned != document
            report = replace(
                report, number=made, selector_before=number, selector_after=number + 1 if changed else number
            )
            db.execute(
                "INSERT INTO updates VALUES (?, ?, ?, ?)",
                (made, now, report.executed, encode(to_wire(report))),
            )
            if changed:
                db.execute(
                    "INSERT INTO selectors VALUES (?, ?, ?, ?)", (number + 1, made, now, encode(learned))
                )
            self._use(given, report, full=len(given) == limit)
            return report

    def _use(self, given: Sequence[LiveRollout], report: LiveUpdate, full: bool) -> None:
        """Note what an update made of the runs that it was given; those not spent wait for others to join.

        Where all that fit in are unused, none would.
        """
        used, spent = set(report.used), {*report.used, *report.spent}
        clears = full and not used
        rows = [
            (
                None if clears or one.id in spent else 2,
                report.number if one.id in used else None,
                one.sequence,
            )
            for one in given
        ]
        self._db.executemany("UPDATE rollouts SET pending = ?, used_in = ? WHERE sequence = ?", rows)

    # the guard

    def change_gate(self, change: Callable[[GateState], GateState], *, now: float) -> GateState:
        """Change the guard's memory, whatever other processes do to it, and return it.

        What changes but its windows of runs is journalled.
        """
        with self._transaction():
            before = self.gate()
            state = change(before)
            self._keep_gate(before, state, now)
            return state

    def _keep_gate(self, before: GateState, state: GateState, now: float) -> None:
        if state == before:
            return
        forget: dict[str, Any] = {"blocked": (), "control": {}, "failures": {}}
        text = encode(to_wire(state))
        if replace(before, **forget) == replace(state, **forget):
            known = "UPDATE gate SET document = ? WHERE number = (SELECT max(number) FROM gate)"
            if self._db.execute(known, (text,)).rowcount:
                return
        self._db.execute("INSERT INTO gate (at, state, document) VALUES (?, ?, ?)", (now, state.state, text))


def _named(refused: Mapping[RefusedEvent, int]) -> dict[str, int]:
    return {str(reason): count for reason, count in refused.items()}


def _no_reward(_trace: object) -> None:
    return None
