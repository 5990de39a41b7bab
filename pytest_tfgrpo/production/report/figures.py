"""What the streams amount to: how far the loop is, how good the agent was, and one trajectory in full.

Everything follows from the streams, so a process that was killed changes no figure.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.numerics.stats import Interval, mean_interval
from pytest_tfgrpo.production.assembly.state import AssemblyState
from pytest_tfgrpo.production.assembly.trace_events import ASSEMBLER
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.view import queries
from pytest_tfgrpo.production.view.queries import LoopTrajectory, payload_at
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE
from pytest_tfgrpo.storage.lease import lease_state

GOOD, BAD = 0.7, 0.4
"""Rewards from which an attempt is good, and up to which it is bad: with the default weights and an average
number of turns, a task that was completed or failed without a word of the user comes to 0.74 or 0.26."""
SURE = 3
"""Attempts from which a kind of task comes before those with fewer among the worst."""
WORST = 5
_IDS = 3
"""Trajectories that are named for a kind of task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionReward:
    """How good the agent was in a domain, by version."""

    domain: str
    policy_version: str | None
    runs: int
    """With a reward."""
    sessions: int
    mean: float
    low: float | None
    """Of the 95 % interval, whose units are the sessions of users; None: there are too few."""
    high: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskReward:
    """How good the agent was at one kind of task."""

    domain: str
    task_key: str
    runs: int
    mean: float
    good: int
    bad: int
    worst: tuple[str, ...]
    """Ids of trajectories, the worst first."""
    best: str
    """Id of the best trajectory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewestTrajectories:
    """Means, tasks and gaps of the trajectories that came last."""

    looked_at: int
    """How many there are."""
    versions: tuple[VersionReward, ...]
    worst: tuple[TaskReward, ...]
    mixed: tuple[TaskReward, ...]
    """With good and with bad attempts, most of both first."""
    failed: int
    """How many ended in an error, or were noted as failed."""
    one_failed: str | None
    """Id of one of these."""
    without_task: int
    """How many name no kind of task."""
    without_texts: int
    """Of how many no question, answer, or argument or result of a tool was recorded."""
    without_session: int
    """How many have only the id of their trace as session."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopReport:
    """The figures of the loop."""

    published: Mapping[str, int]
    """Events by stream, each once."""
    redacted: Mapping[str, int]
    """Secrets and personal values taken out, by kind; each once in a trajectory, or another event."""
    opted_out: int
    forgotten: int
    """Requests to forget that were carried out."""
    dead: Mapping[str, int]
    """Dead letters by code."""
    rewards: int
    revisions: int
    """Later rewards that take the place of an earlier one."""
    unrewarded: int
    """Trajectories of which too little is known."""
    newest: NewestTrajectories
    late: int
    """Spans that came after the trajectory of their trace, so far."""
    trajectory_revisions: int
    """How often late spans had a trajectory published again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownTrajectory:
    """A trajectory with what was said of it."""

    trajectory: Json
    """The payload."""
    feedback: tuple[Json, ...]
    rewards: tuple[Json, ...]
    """Payloads, in the order in which they came; those of other evaluators too."""


def report_of(bus: Bus, view: LoopView, last: int) -> LoopReport:
    """Return the figures; means and tasks are those of the `last` newest trajectories.

    The view has all that is on the bus. Raises BusError.
    """
    newest: deque[LoopTrajectory] = deque(maxlen=last)
    unrewarded = 0
    for one in queries.trajectories(view):
        unrewarded += one.total is None
        newest.append(one)
    rewards, revisions = queries.rewarded(view)
    audited = queries.audited(view)
    return LoopReport(
        published=queries.stored(view),
        redacted=queries.redacted(view),
        opted_out=audited.get("opt_out", 0),
        forgotten=audited.get("forget", 0),
        dead=queries.dead(view),
        rewards=rewards,
        revisions=revisions,
        unrewarded=unrewarded,
        newest=_newest(newest),
        late=AssemblyState.of(lease_state(bus.table(STATE), ASSEMBLER)).late,
        trajectory_revisions=queries.revised(view),
    )


def flat_figures(report: LoopReport) -> dict[str, Json]:
    """Return the figures by name, those of the newest trajectories among the others."""
    found: dict[str, Json] = {}
    for name, value in asdict(report).items():
        found |= value if name == "newest" else {name: value}
    return found


def _newest(trajectories: Collection[LoopTrajectory]) -> NewestTrajectories:
    tasks = tasks_of(trajectories)
    mixed = [task for task in tasks if task.good and task.bad]
    return NewestTrajectories(
        looked_at=len(trajectories),
        versions=tuple(versions_of(trajectories)),
        worst=tuple(tasks[:WORST]),
        mixed=tuple(sorted(mixed, key=lambda one: -min(one.good, one.bad))),
        failed=sum(one.failed for one in trajectories),
        one_failed=min((one.id for one in trajectories if one.failed), default=None),
        without_task=sum(one.task_key is None for one in trajectories),
        without_texts=sum(one.silent for one in trajectories),
        without_session=sum(one.session == one.trace_id for one in trajectories),
    )


def versions_of(trajectories: Iterable[LoopTrajectory]) -> list[VersionReward]:
    """Return the mean reward by domain and version with its interval over sessions."""
    groups: dict[tuple[str, str | None], list[tuple[float, str]]] = defaultdict(list)
    for one in trajectories:
        if one.total is not None:
            groups[one.domain, one.policy_version].append((one.total, one.session))
    return [
        _version(domain, version, rows)
        for (domain, version), rows in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]


def _version(domain: str, version: str | None, rows: Sequence[tuple[float, str]]) -> VersionReward:
    rows = sorted(rows)  # so that the sum does not depend on the order of arrival
    found: Interval = mean_interval([total for total, _ in rows], [session for _, session in rows])
    known = not found.just_these
    return VersionReward(
        domain=domain,
        policy_version=version,
        runs=found.n,
        sessions=len({session for _, session in rows}),
        mean=found.mean,
        low=found.low if known else None,
        high=found.high if known else None,
    )


def tasks_of(trajectories: Iterable[LoopTrajectory]) -> list[TaskReward]:
    """Return the kinds of task with a reward, the worst first, those with few attempts last."""
    groups: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for one in trajectories:
        if one.total is not None and one.task_key is not None:
            groups[one.domain, one.task_key].append((one.total, one.id))
    tasks = [_task(*key, sorted(rows)) for key, rows in groups.items()]
    return sorted(tasks, key=lambda one: (one.runs < SURE, round(one.mean, 12), one.domain, one.task_key))


def _task(domain: str, task_key: str, rows: Sequence[tuple[float, str]]) -> TaskReward:
    totals = [total for total, _ in rows]
    return TaskReward(
        domain=domain,
        task_key=task_key,
        runs=len(rows),
        mean=fmean(totals),
        good=sum(total >= GOOD for total in totals),
        bad=sum(total <= BAD for total in totals),
        worst=tuple(id_ for _, id_ in rows[:_IDS]),
        best=rows[-1][1],
    )


def find_shown(view: LoopView, bus: Bus, id_: str) -> ShownTrajectory:
    """Return the trajectory whose id starts so, with what was said of it.

    Raises StoreError where there is none or several.
    """
    found = queries.find(view, id_.strip()) if id_.strip() else []
    if len(found) > 1:
        ids = ", ".join(one.id for one in found[:_IDS])
        raise StoreError(f"several trajectories start with {id_!r}, such as {ids}; name one")
    if not found:
        raise StoreError(f"no trajectory on the bus has the id {id_!r}; `tfgrpo loop report` names some")
    parts: dict[str, list[Json]] = defaultdict(list)
    for place in queries.places(view, found[0].id):
        payload = payload_at(bus, place)
        if payload is not None:
            parts[place.stream].append(payload)
    if not parts["RL_TRAJECTORIES"]:
        raise StoreError(f"the trajectory {found[0].id} is no longer on the bus, which keeps it 30 days")
    return ShownTrajectory(
        trajectory=parts["RL_TRAJECTORIES"][0],
        feedback=tuple(parts["RL_FEEDBACK"]),
        rewards=tuple(parts["RL_REWARDS"]),
    )
