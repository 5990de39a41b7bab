"""Runs of agents of other frameworks, from their spans, as events of live runs.

An outermost agent is a run, its turns and tool calls are what it did, an evaluation is its outcome. A choice
of an arm leaves a mark in the span it was made in, from which the run gets its key and its propensities.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.live.intake.event_json import event_of, event_to_wire
from pytest_tfgrpo.production.live.records import EventKind, LiveEvent, LiveRules
from pytest_tfgrpo.production.live.settings import LiveSettings
from pytest_tfgrpo.production.live.states import RefusedEvent
from pytest_tfgrpo.production.live.store.event_text import TEXT_CHARS, is_number
from pytest_tfgrpo.production.live.store.store import LiveStore
from pytest_tfgrpo.telemetry.traces.dialects.dialects import read_span
from pytest_tfgrpo.telemetry.traces.forest import SpanForest
from pytest_tfgrpo.telemetry.traces.otlp.otlp_lines import read_otlp_lines
from pytest_tfgrpo.telemetry.traces.turns import (
    AgentRun,
    RefusedSpan,
    RefusedTrace,
    SpanEvent,
    SpanKey,
    TraceOutcome,
    TraceStep,
)

CHOICE_MARK = "tfgrpo.live.choice"
"""Event of a span in which an arm was chosen."""
_RUN, _OWNER, _CATEGORY = "tfgrpo.live.run", "tfgrpo.live.owner", "tfgrpo.live.category"
_ATTEMPT, _CHOICE = "tfgrpo.live.attempt", "tfgrpo.live.choice"
_SHOWN = 5
"""Places that are printed of each reason."""
_TEXT_CHARS = 2 * TEXT_CHARS
"""Of a text that is handed on; the store cuts it after it took secrets out."""
_NAME_CHARS = 1000
"""Of names and errors that are handed on; the store cuts them likewise."""
_AT_ONCE = 100
"""Runs of one transaction."""
ERROR = "error"
"""What is stored of an error where no texts are."""


class RunIdentity(NamedTuple):
    """What a run is known by (decision 24)."""

    run: str
    owner: str
    category: str


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestReport:
    """What became of the spans of some files."""

    spans: int
    runs: int
    """New ones."""
    known: int
    """Runs that the store had."""
    scored: int
    """Runs with a score that the store had none of."""
    updates: int
    """Updates of the selector that were due."""
    refused: Mapping[str, Sequence[str]]
    """Places in the files by reason."""
    refused_events: Mapping[str, int]
    """What the store refused, by reason."""


def mark_of(identity: RunIdentity, attempt: int, choice: Mapping[str, Json]) -> dict[str, str | int]:
    """Return the attributes of the mark that a choice leaves."""
    return {
        _RUN: identity.run,
        _OWNER: identity.owner,
        _CATEGORY: identity.category,
        _ATTEMPT: attempt,
        _CHOICE: json.dumps(choice),
    }


def identity_of(run: AgentRun) -> RunIdentity:
    """Return what a run is known by: what its marks say, or else conversation, span and agent."""
    said: Mapping[str, Json] = next((mark.attributes for mark in _choice_marks(run)), {})
    trace, span = run.key
    return RunIdentity(
        str(said.get(_RUN) or run.agent.conversation or trace),
        str(said.get(_OWNER) or trace + span),
        str(said.get(_CATEGORY) or run.agent.name)[:_NAME_CHARS],
    )


def _choice_marks(run: AgentRun) -> list[SpanEvent]:
    return [mark for mark in run.marks if mark.name == CHOICE_MARK]


def events_of(run: AgentRun, *, texts: bool) -> list[LiveEvent]:
    """Return a run as events, in the order of their times; raises ValueError for a mark that is none.

    Without `texts`, prompt, reply and the words of errors are left out.
    """
    identity = identity_of(run)
    choices = [_choice(mark) for mark in _choice_marks(run) if mark.attributes.get(_OWNER) == identity.owner]
    first = choices[0][2] if choices else {}
    events = _Events(identity)
    start_ns = min([run.agent.start_ns, *(at for at, *_ in choices)])
    events.add("start", start_ns, {
        "category": identity.category,
        "prompt": run.prompt[:_TEXT_CHARS] if texts else None,
        "selector": first.get("selector", 0),
        "control": first.get("control", False),
    })  # fmt: skip
    steps: list[tuple[int, int, int, EventKind, Mapping[str, Json]]] = [
        *((at, 0, attempt, "choice", data) for at, attempt, data in choices),
        *((step.start_ns, 1, 0, *_step(step, texts)) for step in run.steps),
    ]
    for at_ns, _, attempt, kind, data in sorted(steps, key=lambda step: step[:2]):
        if attempt > events.marked:
            events.retry(at_ns, attempt)
        events.add(kind, at_ns, data)
    events.add("end", max(run.agent.end_ns, start_ns), _end(run, texts))
    return events.made


class _Events:
    """The events of a run, with their places and attempts."""

    def __init__(self, identity: RunIdentity) -> None:
        self._identity = identity
        self._attempt, self.marked = 1, 1
        self.made: list[LiveEvent] = []

    def add(self, kind: EventKind, at_ns: int, data: Mapping[str, Json]) -> None:
        run, owner, _ = self._identity
        self.made.append(LiveEvent(kind, run, owner, self._attempt, len(self.made), at_ns / 1e9, data))

    def retry(self, at_ns: int, marked: int) -> None:
        """Open the next attempt; attempts without a choice left no mark."""
        self._attempt, self.marked = self._attempt + 1, marked
        self.add("retry", at_ns, {})


def _choice(mark: SpanEvent) -> tuple[int, int, dict[str, Json]]:
    """Return time, attempt and choice of a mark; raises ValueError."""
    found, attempt = mark.attributes.get(_CHOICE), mark.attributes.get(_ATTEMPT)
    data = load_json(found) if isinstance(found, str) else None
    if not isinstance(data, dict) or attempt.__class__ is not int:
        raise ValueError(f"a mark of live RL has no choice: {found!r:.80}")
    return mark.at_ns, attempt, data


def _step(step: TraceStep, texts: bool) -> tuple[EventKind, Mapping[str, Json]]:
    if step.kind == "turn":
        return "turn", {}
    error = step.error if step.error is None or texts else ERROR
    return "tool", {"name": step.name[:_NAME_CHARS], "error": error and error[:_NAME_CHARS]}


def _end(run: AgentRun, texts: bool) -> dict[str, Json]:
    failed = run.error is not None
    data: dict[str, Json] = {
        "status": "failed" if failed else "succeeded",
        "reason": (run.error or "" if texts else ERROR)[:_NAME_CHARS] if failed else "",
        "completed": not failed,
        "prompt_chars": len(run.prompt),
        "reply_chars": len(run.reply),
        "latency_ms": max(run.agent.end_ns - run.agent.start_ns, 0) / 1e6,
    }
    return data | ({"reply": run.reply[:_TEXT_CHARS]} if texts and run.reply else {})


def score_of(run: AgentRun) -> tuple[LiveEvent | None, list[RefusedSpan]]:
    """Return the outcome of a run, the first there is, and those that are no score in [0, 1]."""
    identity = identity_of(run)
    return _score(identity.run, identity.owner, run.outcomes)


def _score(
    run: str, owner: str, outcomes: Sequence[TraceOutcome]
) -> tuple[LiveEvent | None, list[RefusedSpan]]:
    refused = []
    for outcome in outcomes:
        if outcome.value is None and outcome.label:
            continue
        if (reason := _wrong(outcome)) is not None:
            refused.append(RefusedSpan(reason, outcome.place))
            continue
        data = {"score": float(outcome.value)}
        return LiveEvent("outcome", run, owner, 0, -1, outcome.at_ns / 1e9, data), refused
    return None, refused


def _wrong(outcome: TraceOutcome) -> RefusedTrace | None:
    value = outcome.value
    if isinstance(value, bool) or not is_number(value):
        return RefusedTrace.OUTCOME_NOT_A_NUMBER
    return None if 0 <= value <= 1 else RefusedTrace.OUTCOME_OUT_OF_RANGE


class SpanIngest:
    """Brings runs from files of spans into a live store; what that knows already it leaves as it is."""

    def __init__(self, store: LiveStore, rules: LiveRules, *, settings: LiveSettings) -> None:
        self._store, self._rules, self._settings = store, rules, settings
        self._refused: defaultdict[str, list[str]] = defaultdict(list)
        self._refused_events: Counter[str] = Counter()
        self._new = self._known = self._scored = self._updates = 0

    def ingest(self, paths: Sequence[Path]) -> IngestReport:
        """Store the runs among the spans of files, taken together, and run the updates that are due.

        Raises OSError, and StoreError where the store fails or its gate holds.
        """
        forest, spans = SpanForest(read_span), 0
        for path in paths:
            with path.open("rb") as file:
                spans += forest.take(read_otlp_lines(file, path.name))
        runs = _joined([run for run in forest.runs() if run.parent is None])
        for start in range(0, len(runs), _AT_ONCE):
            self._store_runs(runs[start : start + _AT_ONCE])
            self._update()
        self._store_strays(forest.strays)
        self._refuse(forest.refused)
        return IngestReport(
            spans=spans,
            runs=self._new,
            known=self._known,
            scored=self._scored,
            updates=self._updates,
            refused=dict(self._refused),
            refused_events=dict(self._refused_events),
        )

    def _store_runs(self, runs: Sequence[AgentRun]) -> None:
        known = self._store.runs_by_owner([identity_of(run).owner for run in runs])
        made: list[LiveEvent] = []
        scores: list[LiveEvent] = []
        for run in runs:
            owner = identity_of(run).owner
            if owner not in known:
                try:
                    made += _checked(events_of(run, texts=self._settings.text != "none"))
                except ValueError:
                    self._refuse([RefusedSpan(RefusedTrace.BAD_MARK, run.place)])
                    continue
                self._new += 1
            self._known += owner in known
            score, refused = score_of(run)
            self._refuse(refused)
            if score is not None and not known.get(owner, ("", False))[1]:
                scores.append(score)
        self._write(made, scores)

    def _store_strays(self, strays: Mapping[SpanKey, Sequence[TraceOutcome]]) -> None:
        """Store evaluations that came later than the agent's span: as spans of their own, below it."""
        known = self._store.runs_by_owner(["".join(key) for key in strays])
        scores = []
        for key, outcomes in strays.items():
            owner = "".join(key)
            if owner not in known:
                self._refuse([RefusedSpan(RefusedTrace.NO_RUN, one.place) for one in outcomes])
                continue
            run, scored = known[owner]
            score, refused = _score(run, owner, outcomes)
            self._refuse(refused)
            if score is not None and not scored:
                scores.append(score)
        self._write([], scores)

    def _write(self, made: Sequence[LiveEvent], scores: Sequence[LiveEvent]) -> None:
        if made or scores:
            report = self._store.write([*made, *scores], rules=self._rules, now=time.time())
            if report.gate.state == "hold" and RefusedEvent.HELD in report.refused:
                raise StoreError(
                    f"the gate holds by {report.gate.reason}, so that no run is stored; "
                    "let it pass with `tfgrpo live reset`"
                )
            late = sum(count for reason, count in report.refused.items() if reason.startswith("reward"))
            self._scored += len(scores) - late
            self._refused_events.update(report.refused)

    def _update(self) -> None:
        """Run the updates that are due, as a process that serves does."""
        due, wait_s, now = self._settings.update_interval, self._settings.outcome_wait_s, time.time()
        limit = self._settings.max_rollouts_per_update
        while self._store.due(outcome_wait_s=wait_s, now=now, enough=due) >= due:
            done = self._store.update(
                self._rules.update, limit=limit, outcome_wait_s=wait_s, now=now, due=due
            )
            if done is None:
                return
            self._updates += 1

    def _refuse(self, refused: Sequence[RefusedSpan]) -> None:
        for one in refused:
            self._refused[one.reason].append(one.place)


def _checked(events: list[LiveEvent]) -> list[LiveEvent]:
    """Return events, which are as their schema has them; raises ValueError."""
    for event in events:
        if event.kind == "choice":
            event_of(event_to_wire(event))
    return events


def _joined(runs: Sequence[AgentRun]) -> list[AgentRun]:
    """Return the runs, those of agents that served one live run as one."""
    by_owner: defaultdict[str, list[AgentRun]] = defaultdict(list)
    for run in runs:
        by_owner[identity_of(run).owner].append(run)
    return [some[0] if len(some) == 1 else _one(some) for some in by_owner.values()]


def _one(runs: Sequence[AgentRun]) -> AgentRun:
    last = max(runs, key=lambda run: run.agent.end_ns)
    marks = {(mark.at_ns, str(mark.attributes.get(_CHOICE))): mark for run in runs for mark in run.marks}
    agent = replace(
        runs[0].agent,
        asked=runs[0].prompt,
        answered=last.reply,
        end_ns=last.agent.end_ns,
        error=last.error,
    )
    return replace(
        runs[0],
        agent=agent,
        steps=tuple(sorted((step for run in runs for step in run.steps), key=lambda step: step.start_ns)),
        outcomes=tuple(sorted((o for run in runs for o in run.outcomes), key=lambda o: o.at_ns)),
        marks=tuple(sorted(marks.values(), key=lambda mark: mark.at_ns)),
    )


def ingest_lines(report: IngestReport) -> Iterator[str]:
    """Yield what became of files of spans as lines to print."""
    yield f"spans      {report.spans} read"
    yield f"runs       {report.runs} stored, {report.known} known before; {report.scored} new scores"
    yield f"updates    {report.updates}"
    for reason, places in sorted(report.refused.items()):
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        yield f"refused    {len(places)} {reason}: {', '.join(places[:_SHOWN])}{more}"
    for reason, count in sorted(report.refused_events.items()):
        yield f"refused    {count} by the store: {reason}"
