"""Runs on disk: find them, and read a run from its journal."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import AWAY, JournalError, describe
from pytest_tfgrpo.core.files import JOURNAL, RUNS, open_plain
from pytest_tfgrpo.core.lessons import Library, Revision
from pytest_tfgrpo.core.records import (
    TRAINING,
    CheckerResult,
    EndpointUse,
    Group,
    JudgeResult,
    ModelCall,
    Phase,
    PhaseResult,
    PriceUse,
    Reference,
    Rollout,
    Run,
    RunHeader,
    header_fields,
    with_shared,
)
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import from_wire
from pytest_tfgrpo.metrics.paid import is_paid, loose
from pytest_tfgrpo.runs.journal.checks_on_file import misfit
from pytest_tfgrpo.runs.journal.journal import SCHEMA, Event, read, scan
from pytest_tfgrpo.runs.journal.rollouts_on_file import RolloutsOnFile
from pytest_tfgrpo.runs.journal.settled_groups import SettledCost, SettledGroups, UnsettledError
from pytest_tfgrpo.runs.journal.stored_groups import GroupStore
from pytest_tfgrpo.runs.judgement import judged

HEADER = frozenset(f.name for f in fields(RunHeader))
REQUIRED = {"phases", "library"} | {
    f.name for f in fields(RunHeader) if f.default is MISSING and f.default_factory is MISSING
}
"""Keys of the first event that the rest of a run follows from."""


def new_run_id() -> str:
    """Return a run id that sorts by time: ``20260131T120000-482913a7``, microseconds and a random tail."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S-%f}{secrets.token_hex(1)}"


def list_runs(out: Path, task_id: str) -> list[Path]:
    """Return the folders of all runs of a task that have begun, oldest first.

    A journal without a whole first line is that of a run that was killed before it could do anything.
    """
    folder = out / task_id / RUNS
    return sorted(path.parent for path in folder.glob(f"*/{JOURNAL}") if has_begun(path))


def has_begun(path: Path) -> bool:
    """Return whether a journal has a whole first line."""
    try:
        with open_plain(path) as file:
            return file.readline().endswith(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # whoever reads it says what is wrong


@dataclass(kw_only=True, slots=True)
class JournalContents:
    """A journal, read into records by id; empty for a new run."""

    path: Path | None = None
    """Where it is."""
    header: Mapping[str, Any] = field(default_factory=dict)
    """Data of the ``run`` event."""
    rollouts: MutableMapping[str, Rollout] = field(default_factory=dict)
    """By id, but those of settled groups."""
    away: set[str] = field(default_factory=set)
    """Ids of those that are errors of a provider that was away."""
    checker_results: dict[str, CheckerResult] = field(default_factory=dict)
    """What marked test functions found, by rollout id."""
    groups: dict[str, Group] = field(default_factory=dict)
    """Groups by id, still without their rollouts."""
    members: dict[str, list[list[str]]] = field(default_factory=dict)
    """Rollout id and final status of each group's rollouts."""
    revisions: dict[int, Revision] = field(default_factory=dict)
    """Revisions of the library, by epoch."""
    candidates: dict[int, Revision] = field(default_factory=dict)
    """What the optimizer made of an epoch, before it was tried on the dev split."""
    phases: dict[int, PhaseResult] = field(default_factory=dict)
    """Results of the phases that ended, by epoch, still without groups and revision."""
    settled: set[int] = field(default_factory=set)
    """Epochs of sweeps that ended early because the gate was decided."""
    opinions: dict[str, JudgeResult] = field(default_factory=dict)
    """The judge's results, by rollout id."""
    calls: dict[str, ModelCall] = field(default_factory=dict)
    """Model calls besides rollouts, by key; of several with one key the last."""
    abandoned: list[Rollout] = field(default_factory=list)
    """Attempts that a budget ended: no results, but paid for."""
    worlds: dict[str, str] = field(default_factory=dict)
    """Scenario ids, by rollout id, whose worlds were set up and never torn down."""
    lines: int = 0
    """How many lines were read."""
    end: int = 0
    """Offset of the end of the last one."""
    settled_groups: SettledGroups | None = None
    """Where groups go once they are read, with their rollouts, of which nothing stays here."""
    settled_cost: SettledCost = field(default_factory=SettledCost)
    """What the rollouts of those groups used."""
    finish: dict[str, Any] | None = None
    """Data of the last ``finish`` event; None when the run was killed."""

    def reopen(self) -> None:
        """Forget errors of a provider that was away: they run again, unless something rests on them."""
        done = self.complete_phases
        for id_ in sorted(self.away):
            rollout = self.rollouts[id_]
            epoch = rollout.epoch
            learned = self.candidates if rollout.mode in TRAINING else self.revisions
            if epoch not in done and epoch not in learned and epoch not in self.revisions:
                self.drop(id_)

    def drop(self, rollout_id: str, *, unless: Rollout | None = None) -> None:
        """Forget a rollout that is made again, and its group; its cost stays, unless `unless` is the same."""
        rollout = self.forget(rollout_id)
        if rollout is not None and is_paid(rollout) and rollout != unless:
            self.abandoned.append(rollout)

    def require_open(self, group_id: str) -> None:
        """Raise UnsettledError where a group was put away."""
        if self.settled_groups is not None:
            self.settled_groups.require_open(group_id)

    def forget(self, rollout_id: str) -> Rollout | None:
        """Return a rollout that no longer counts, and drop what rests on it; None if it is unknown."""
        rollout = self.rollouts.pop(rollout_id, None)
        if rollout is not None:
            self.away.discard(rollout_id)
            self.groups.pop(rollout.group_id, None)
            self.members.pop(rollout.group_id, None)
            self.checker_results.pop(rollout_id, None)
            self.opinions.pop(rollout_id, None)
        return rollout

    @property
    def complete(self) -> bool:
        """True when the run ended by itself with all its phases."""
        return self.finish is not None and self.finish["status"] == "complete"

    @property
    def complete_phases(self) -> frozenset[int]:
        """Epochs of the phases that ran to their end."""
        return frozenset(epoch for epoch, result in self.phases.items() if result.status == "complete")

    def is_finished(self, phase: Phase) -> bool:
        """Return whether a phase ended, and what it did to the library is known."""
        return phase.epoch in self.complete_phases and (not phase.trains or phase.epoch in self.revisions)

    @property
    def store(self) -> GroupStore | None:
        """Where settled groups lie; None where none may."""
        return None if self.settled_groups is None else self.settled_groups.store

    @property
    def traced(self) -> frozenset[str]:
        """Ids of the groups, phases and calls whose spans the interrupted process has sent."""
        phases = (f"{self.header['run_id']}.e{epoch}" for epoch in self.complete_phases)
        settled = () if self.settled_groups is None else self.settled_groups.ids
        return frozenset((*self.groups, *settled, *self.calls, *phases))

    @property
    def begun(self) -> frozenset[str]:
        """Ids of the groups of which there is a rollout."""
        settled = () if self.settled_groups is None else self.settled_groups.ids
        return frozenset((*settled, *(id_.rpartition(".r")[0] for id_ in self.rollouts)))

    def all_rollouts(self) -> Iterator[Rollout]:
        """Yield all rollouts, those of settled groups first."""
        for group in () if self.settled_groups is None else self.settled_groups.all():
            yield from group.rollouts
        yield from self.rollouts.values()

    def ungrouped(self) -> list[Rollout]:
        """Return the rollouts that are in no group."""
        grouped = {id_ for members in self.members.values() for id_, _ in members}
        return [self.rollouts[id_] for id_ in self.rollouts if id_ not in grouped]


def read_log(folder: Path, settled: SettledGroups | None = None) -> JournalContents:
    """Return the log of the run in `folder`; raises JournalError on a missing, foreign or damaged journal.

    Where groups go to `settled`, it raises UnsettledError if the journal comes back to one of them.
    """
    path = folder / JOURNAL
    events = scan(path)
    first, end = next(events, (None, 0))
    on_file = RolloutsOnFile(path)
    log = JournalContents(
        path=path,
        header=header_of(path, first),
        rollouts=on_file,
        lines=1,
        end=end,
        settled_groups=settled,
    )
    known = _scenario_ids(log.header)
    for event, end in events:
        offset, log.lines, log.end = log.end, event.n, end
        try:
            _require_known(known, event)
            _take(log, on_file, event, offset)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise JournalError(f"{path}:{event.n}: event {event.event!r} cannot be read: {error}") from error
    return log


def _scenario_ids(header: Mapping[str, Any]) -> frozenset[str]:
    listed = header.get("scenarios")
    every = listed if isinstance(listed, list) else []
    return frozenset(one["id"] for one in every if isinstance(one, dict) and isinstance(one.get("id"), str))


def _require_known(known: frozenset[str], event: Event) -> None:
    """Raise ValueError for what is of a scenario that the run does not have."""
    if event.event in ("rollout", "abandoned", "group") and event.data["scenario_id"] not in known:
        raise ValueError(f"the run has no scenario {short(event.data['scenario_id'])}")


def read_to_resume(folder: Path) -> JournalContents:
    """Return the log of a run to go on with, whose groups lie in a file; raises JournalError."""
    try:
        return read_log(folder, SettledGroups(GroupStore(folder), resumed=True))
    except UnsettledError:
        return read_log(folder)


def header_of(path: Path, first: Event | None) -> Mapping[str, Any]:
    """Return the data of the `first` event of a journal; raises JournalError where it is no header."""
    if first is None or first.event != "run" or not _is_header(first.data):
        found = first.data.get("schema") if first is not None and isinstance(first.data, dict) else None
        raise JournalError(
            f"{path} does not start as a journal of schema {SCHEMA!r} but of {found!r}; use the version of "
            "pytest-tfgrpo that wrote it, or start a new run"
        )
    header: Mapping[str, Any] = first.data
    return header


def _take(log: JournalContents, on_file: RolloutsOnFile, event: Event, offset: int) -> None:
    data = event.data
    match event.event:
        case "rollout":
            rollout = from_wire(Rollout, data)
            log.require_open(rollout.group_id)
            log.drop(rollout.rollout_id, unless=rollout)
            on_file.put(rollout, offset)
            if rollout.status == "error" and rollout.failure is not None and rollout.failure.code in AWAY:
                log.away.add(rollout.rollout_id)
        case "judgement":
            rollout_id = data.pop("rollout_id")
            log.require_open(rollout_id.rpartition(".r")[0])
            log.checker_results[rollout_id] = from_wire(CheckerResult, data)
        case "abandoned":
            abandoned = from_wire(Rollout, data)
            log.require_open(abandoned.group_id)
            log.drop(abandoned.rollout_id, unless=abandoned)  # it is the same where a workspace was lost
            log.abandoned.append(abandoned)
        case "call":
            call = from_wire(ModelCall, data)
            log.calls[call.key] = call
        case "opinion":
            rollout_id = data.pop("rollout_id")
            log.require_open(rollout_id.rpartition(".r")[0])
            log.opinions[rollout_id] = from_wire(JudgeResult, data)
        case "world" if data["up"]:
            log.worlds[data["rollout_id"]] = data["scenario_id"]
        case "world":
            log.worlds.pop(data["rollout_id"], None)
        case "group":
            members = data.pop("rollouts")
            group = from_wire(Group, data | {"rollouts": []})
            log.groups[group.group_id], log.members[group.group_id] = group, members
            if log.settled_groups is not None:
                _settle(log, log.settled_groups, group)
        case "candidate":
            candidate = from_wire(Revision, data)
            log.candidates[candidate.epoch] = candidate
        case "revision":
            revision = from_wire(Revision, data)
            log.revisions[revision.epoch] = revision
        case "settled":
            log.settled.add(data["epoch"])
        case "phase":
            result = from_wire(PhaseResult, data)
            log.phases[result.phase.epoch] = result
        case "finish":
            log.finish = {key: data[key] for key in ("status", "reason", "finished_at", "warnings")}
            log.finish |= {key: data[key] for key in ("endpoints", "prices") if key in data}


def _settle(log: JournalContents, settled: SettledGroups, group: Group) -> None:
    """Put a group away with its rollouts, if it is one that `settled` takes."""
    ids = [id_ for id_, _ in log.members[group.group_id]]
    if not settled.takes(group, again=any(id_ in log.away or id_ in log.checker_results for id_ in ids)):
        return
    if any(id_ not in log.rollouts for id_ in ids):
        raise UnsettledError(group.group_id)
    whole = _with_rollouts(log, group)
    settled.add(whole)
    log.settled_cost.add(whole.rollouts)
    for id_ in ids:
        log.forget(id_)


def _is_header(data: object) -> bool:
    if not (isinstance(data, dict) and data.get("schema") == SCHEMA and data.keys() >= REQUIRED):
        return False
    return isinstance(data["stamps"], dict) and isinstance(data["run_id"], str)


def load_run(folder: Path) -> Run:
    """Return the run in `folder` from its journal; a killed run is incomplete. Raises JournalError.

    Of the groups of a long run most stay on disk.
    """
    try:
        return run_of(read_log(folder, SettledGroups()))
    except UnsettledError:
        return run_of(read_log(folder))


def run_of(log: JournalContents, header: RunHeader | None = None) -> Run:
    """Return the run of a journal, with `header` in place of its own; a killed run is incomplete.

    Raises JournalError where its events do not fit each other.
    """
    own = {key: value for key, value in log.header.items() if key in HEADER}
    try:
        return _run_of(log, header or from_wire(RunHeader, own))
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise JournalError(f"{log.path} is not a consistent journal: {describe(error)}") from error


def _run_of(log: JournalContents, header: RunHeader) -> Run:
    for scenario in header.scenarios:
        if wrong := next(filter(None, map(misfit, scenario.checks)), ""):
            raise ValueError(f"scenario {scenario.id!r} has {wrong}")
    library = from_wire(Library, log.header["library"])
    results = with_shared(_results(log, [from_wire(Phase, data) for data in log.header["phases"]]))
    start = library
    for result in results:
        library = result.revision.library if result.revision else library
    finish = log.finish or {
        "status": "incomplete",
        "reason": "killed",
        "finished_at": "",
        "warnings": header.warnings,
    }
    return Run(
        **header_fields(header) | {"warnings": tuple(finish["warnings"])},
        status=finish["status"],
        finished_at=finish["finished_at"],
        phases=results,
        library_start=start,
        library=library,
        reason=finish["reason"],
        packs=from_wire(tuple[PromptPack, ...], log.header.get("packs", [])),
        reference=from_wire(Reference, log.header["reference"]) if "reference" in log.header else None,
        endpoints=from_wire(tuple[EndpointUse, ...], finish.get("endpoints", [])),
        prices=from_wire(tuple[PriceUse, ...], finish.get("prices", [])),
    )


def library_at_start(folder: Path) -> Library:
    """Return the library that the run in `folder` started with; raises JournalError."""
    first = next(read(folder / JOURNAL), None)
    try:
        return from_wire(Library, first.data["library"] if first is not None else None)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise JournalError(f"{folder / JOURNAL} does not start as a journal: {error}") from error


def finished(log: JournalContents, phases: Iterable[Phase]) -> dict[int, PhaseResult]:
    """Return the results of those `phases` that are complete, by epoch, with all that is on file of them.

    Raises JournalError where its events do not fit each other.
    """
    done = log.complete_phases
    try:
        return {
            result.phase.epoch: result for result in _results(log, [p for p in phases if p.epoch in done])
        }
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise JournalError(f"{log.path} is not a consistent journal: {describe(error)}") from error


def _results(log: JournalContents, phases: Iterable[Phase]) -> Iterator[PhaseResult]:
    spare = log.ungrouped()
    for phase in phases:
        ended = log.phases.get(phase.epoch)
        groups, dev = _groups_of(log, phase)
        calls = tuple(sorted((c for c in log.calls.values() if c.epoch == phase.epoch), key=lambda c: c.key))
        paid = (rollout for rollout in spare if rollout.epoch == phase.epoch)
        ungrouped = loose((), paid, (r for r in log.abandoned if r.epoch == phase.epoch))
        if ended is not None:
            revision = log.revisions.get(phase.epoch)
            yield replace(ended, groups=groups, revision=revision, calls=calls, loose=ungrouped, dev=dev)
        elif groups or calls or ungrouped or dev:
            yield PhaseResult(
                phase=phase,
                groups=groups,
                status="incomplete",
                library_hash="",
                calls=calls,
                loose=ungrouped,
                dev=dev,
            )


def _groups_of(log: JournalContents, phase: Phase) -> tuple[Sequence[Group], tuple[Group, ...]]:
    """Return the groups of a phase and those of its dev sweeps; if some are settled, the others are then."""
    settled = log.settled_groups
    if settled is None:
        return tuple(_whole_groups(log, phase)), tuple(_dev_groups(log, phase))
    for group in log.groups.values():
        if group.epoch == phase.epoch and group.group_id not in settled:
            settled.add(_with_rollouts(log, group))
    return settled.of(phase), settled.dev(phase)


def _whole_groups(log: JournalContents, phase: Phase) -> Iterator[Group]:
    by_scenario = {
        g.scenario_id: g for g in log.groups.values() if g.epoch == phase.epoch and g.mode != "dev"
    }
    for scenario_id in phase.scenarios:
        group = by_scenario.get(scenario_id)
        if group is not None:
            yield _with_rollouts(log, group)


def _dev_groups(log: JournalContents, phase: Phase) -> Iterator[Group]:
    own = (g for g in log.groups.values() if g.epoch == phase.epoch and g.mode == "dev")
    for group in sorted(own, key=lambda group: group.group_id):
        yield _with_rollouts(log, group)


def _with_rollouts(log: JournalContents, group: Group) -> Group:
    members = log.members[group.group_id]
    return replace(group, rollouts=tuple(_judged(log, id_, status) for id_, status in members))


def _judged(log: JournalContents, id_: str, status: str) -> Rollout:
    """Return a rollout with what was found of it; `status` is the one that it had in its group."""
    found, opinion = log.checker_results.get(id_), log.opinions.get(id_)
    return judged(log.rollouts[id_], checker_result=found, opinion=opinion, decisive=status == "error")
