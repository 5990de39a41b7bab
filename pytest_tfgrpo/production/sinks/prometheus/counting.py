"""Goes on counting what is on file, from the positions up to which it was counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from pytest_tfgrpo.core.events import TRAINING_STATUS, EventRefusal
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import DEAD
from pytest_tfgrpo.production.sinks.prometheus.families import (
    DEAD_LETTERS,
    JOB_ENDS,
    MISSED,
    MODEL_DEPLOYMENTS,
    OTHER,
    TRAINING_DURATION,
    TRAINING_JOBS,
    TRAINING_SAMPLES,
    TRAJECTORIES_COLLECTED,
    TRAJECTORY_LENGTH,
    TRAJECTORY_REWARD,
)
from pytest_tfgrpo.production.sinks.prometheus.totals import MOST_KNOWN, MetricTotals, newest_of
from pytest_tfgrpo.production.view.rows import row_of
from pytest_tfgrpo.production.view.view import DEPLOYMENTS, REWARDS, TRAINING, TRAJECTORIES, LoopView

COUNTED = (TRAJECTORIES, REWARDS, DEAD, TRAINING, DEPLOYMENTS)
PAGE = 50_000
"""Sequences of a stream that are counted at once."""
MOST_TYPES = 20
"""Values of the label ``agent_type``: the first that are seen."""
LONGEST_LABEL = 100
_TRAJECTORIES = """WITH new AS (
    SELECT id, seq, at, profile, agent, domain, turns FROM trajectories WHERE seq > :after AND seq <= :upto
    UNION ALL
    SELECT id, seq, at, profile, agent, domain, turns FROM superseded WHERE seq > :after AND seq <= :upto)
    SELECT coalesce(profile, agent), domain, turns, count(*), max(at) FROM new
    WHERE NOT EXISTS (SELECT 1 FROM superseded s WHERE s.id = new.id AND s.seq < new.seq)
    AND typeof(turns) = 'integer' GROUP BY 1, 2, 3 ORDER BY min(seq)"""
_REWARDS = """SELECT total, count(*) FROM rewards WHERE own = 1 AND seq > :after AND seq <= :upto
    AND revision = 1 AND typeof(total) = 'real' GROUP BY total"""
_DEAD = "SELECT count(*) FROM dead WHERE seq > :after AND seq <= :upto"


def label(value: object) -> str:
    """Return a text of others as the value of a label: one line, cut where it is long."""
    return line(str(value), LONGEST_LABEL)


def count_missed(bus: Bus, totals: MetricTotals) -> MetricTotals:
    """Count what left the streams before it was counted, and begin again in streams that are new."""
    for stream in COUNTED:
        position, last = totals.position(stream), bus.last(stream)
        if last < position:
            totals, position = totals.at(stream, 0), 0
        first = next((event.sequence for event in bus.replay(stream, since_sequence=1)), last + 1)
        gone = first - 1 - position
        if gone > 0:
            totals = totals.counted(MISSED, [((), gone)]).at(stream, first - 1)
    return totals


def count_on(bus: Bus, view: LoopView, totals: MetricTotals) -> Iterator[MetricTotals]:
    """Yield the totals after each page that is new in the view; nothing where nothing is.

    A page during which the view was emptied is not counted. Raises BusError.
    """
    for stream in COUNTED:
        upto = view.position(stream)
        while totals.position(stream) < upto:
            after = totals.position(stream)
            end, generation = min(upto, after + PAGE), view.generation
            found = _page(bus, view, totals, stream, after, end)
            if view.generation != generation or view.position(stream) < upto:
                return
            totals = found.at(stream, end)
            yield totals


def _page(bus: Bus, view: LoopView, totals: MetricTotals, stream: str, after: int, upto: int) -> MetricTotals:
    window = {"after": after, "upto": upto}
    if stream == TRAJECTORIES:
        return _with_trajectories(totals, view.rows(_TRAJECTORIES, window))
    if stream == REWARDS:
        return totals.observed(TRAJECTORY_REWARD, view.rows(_REWARDS, window))
    if stream == DEAD:
        return totals.counted(DEAD_LETTERS, [((), int(view.rows(_DEAD, window)[0][0]))])
    for payload in _payloads(bus, stream, after, upto):
        totals = _with_deployment(totals, payload) if stream == DEPLOYMENTS else _with_job(totals, payload)
    return totals


def _with_trajectories(totals: MetricTotals, rows: Sequence[tuple[Json, ...]]) -> MetricTotals:
    known = {one.labels[0] for one in totals.counters.get(TRAJECTORIES_COLLECTED.name, ())} - {OTHER}
    collected: Counter[tuple[str, ...]] = Counter()
    newest = totals.newest
    for agent, domain, _, times, at in rows:
        kind = label(agent)
        if kind not in known:
            if len(known) < MOST_TYPES:
                known.add(kind)
            else:
                kind = OTHER
        collected[kind, label(domain)] += times
        newest = max(newest, at) if isinstance(at, float) else newest
    totals = totals.counted(TRAJECTORIES_COLLECTED, collected.items())
    lengths = [(float(turns), times) for _, _, turns, times, _ in rows]
    return replace(totals.observed(TRAJECTORY_LENGTH, lengths), newest=newest)


def _payloads(bus: Bus, stream: str, after: int, upto: int) -> Iterator[Json]:
    """Yield the valid payloads of a stream: statuses of jobs, or deployments."""
    for event in bus.replay(stream, since_sequence=after + 1):
        if event.sequence > upto:
            return
        if stream == TRAINING and event.subject != TRAINING_STATUS:
            continue
        if not isinstance(row_of(event, event.arrived), EventRefusal):
            yield load_json(event.data)


def _with_job(totals: MetricTotals, status: Json) -> MetricTotals:
    """Return totals with a status: an end counts, and the first time that it runs is kept until then."""
    job, state, time = status["training_job_id"], status["status"], status["timestamp"]
    metadata = status.get("metadata", {})
    if state == "running" and job not in totals.started:
        return replace(totals, started=newest_of(totals.started, job, time))
    if state not in JOB_ENDS:
        return totals
    totals = totals.counted(TRAINING_JOBS, [((state,), 1)])
    if job in totals.started:
        took = _seconds(time) - _seconds(totals.started[job])
        totals = totals.observed(TRAINING_DURATION, [(max(0.0, took), 1)])
        totals = replace(totals, started={name: at for name, at in totals.started.items() if name != job})
    samples, version = metadata.get("samples"), metadata.get("policy_version")
    if type(samples) is int and samples >= 0:
        totals = totals.observed(TRAINING_SAMPLES, [(float(samples), 1)])
    scores = status.get("evaluation_results", {}).get("benchmark_scores", {})
    if isinstance(version, str) and scores:
        shown = {label(task): float(score) for task, score in [*scores.items()][:MOST_KNOWN]}
        totals = replace(totals, scores=newest_of(totals.scores, label(version), shown))
    return totals


def _with_deployment(totals: MetricTotals, deployed: Json) -> MetricTotals:
    """Return totals with a deployment; steps of a ramp, and the end of a hold, are no new state."""
    version, state = label(deployed["model_info"]["model_id"]), deployed.get("metadata", {}).get("state")
    if state is None:
        return totals
    before = totals.states.get(version)
    totals = replace(totals, states=newest_of(totals.states, version, state))
    if state == before or (before, state) == ("held", "canary"):
        return totals
    return totals.counted(MODEL_DEPLOYMENTS, [((state,), 1)])


def _seconds(time: str) -> float:
    """Return a time as seconds; 0 for one that no calendar has."""
    return datetime.fromisoformat(utc_time(time) or "1970-01-01T00:00:00+00:00").timestamp()
