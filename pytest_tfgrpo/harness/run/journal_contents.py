"""Runs on disk: find them, resume an interrupted one, and read a run from its journal."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import AWAY, JournalError, ResumeError, describe
from pytest_tfgrpo.core.files import JOURNAL, MANIFEST, RUNS, open_plain
from pytest_tfgrpo.core.lessons import Library, Revision
from pytest_tfgrpo.core.records import (
    CheckerResult,
    EndpointUse,
    Group,
    JudgeResult,
    ModelCall,
    Phase,
    PhaseResult,
    Reference,
    Rollout,
    Run,
    RunHeader,
    header_fields,
    with_shared,
)
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.text import plural
from pytest_tfgrpo.core.wire import from_wire
from pytest_tfgrpo.harness.metrics.costs import is_paid, loose
from pytest_tfgrpo.harness.run.journal import SCHEMA, Event, is_open, read, scan
from pytest_tfgrpo.harness.run.judgement import judged
from pytest_tfgrpo.harness.run.settled_groups import SettledGroups, UnsettledError

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
    rollouts: dict[str, Rollout] = field(default_factory=dict)
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
    finish: Mapping[str, Any] | None = None
    """Data of the last ``finish`` event; None when the run was killed."""

    def reopen(self) -> None:
        """Forget errors of a provider that was away: they are asked again, unless something rests on them."""
        for id, rollout in list(self.rollouts.items()):
            epoch, failure = rollout.epoch, rollout.failure
            learned = self.candidates if rollout.mode == "train" else self.revisions
            if epoch in self.complete_phases or epoch in learned or epoch in self.revisions:
                continue
            if rollout.status == "error" and failure is not None and failure.code in AWAY:
                self.drop(id)

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

    @property
    def traced(self) -> frozenset[str]:
        """Ids of the groups, phases and calls whose spans the interrupted process has sent."""
        phases = (f"{self.header['run_id']}.e{epoch}" for epoch in self.complete_phases)
        return frozenset((*self.groups, *self.calls, *phases))


def read_log(folder: Path, settled: SettledGroups | None = None) -> JournalContents:
    """Return the log of the run in `folder`; raises JournalError on a missing, foreign or damaged journal.

    Where groups go to `settled`, it raises UnsettledError if the journal comes back to one of them.
    """
    path = folder / JOURNAL
    events = scan(path)
    first, end = next(events, (None, 0))
    log = JournalContents(path=path, header=header_of(path, first), lines=1, end=end, settled_groups=settled)
    for event, end in events:
        log.lines, log.end = event.n, end
        try:
            _take(log, event)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise JournalError(f"{path}:{event.n}: event {event.event!r} cannot be read: {error}") from error
    return log


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


def _take(log: JournalContents, event: Event) -> None:
    data = event.data
    match event.event:
        case "rollout":
            rollout = from_wire(Rollout, data)
            log.require_open(rollout.group_id)
            log.drop(rollout.rollout_id, unless=rollout)
            log.rollouts[rollout.rollout_id] = rollout
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
                _settle(log, log.settled_groups, group.group_id)
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


def _settle(log: JournalContents, settled: SettledGroups, group_id: str) -> None:
    """Put a group away with its rollouts."""
    ids = [id for id, _ in log.members[group_id]]
    if any(id not in log.rollouts for id in ids):
        raise UnsettledError(group_id)
    settled.add(_with_rollouts(log, log.groups[group_id]))
    for id in ids:
        log.forget(id)


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
    """Return the run that a journal tells of, with `header` in place of its own; a killed run is incomplete.

    Raises JournalError where its events do not fit each other.
    """
    own = {key: value for key, value in log.header.items() if key in HEADER}
    try:
        return _run_of(log, header or from_wire(RunHeader, own))
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise JournalError(f"{log.path} is not a consistent journal: {describe(error)}") from error


def _run_of(log: JournalContents, header: RunHeader) -> Run:
    library = from_wire(Library, log.header["library"])
    results = with_shared(_results(log))
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
    )


def library_at_start(folder: Path) -> Library:
    """Return the library that the run in `folder` started with; raises JournalError."""
    first = next(read(folder / JOURNAL), None)
    try:
        return from_wire(Library, first.data["library"] if first is not None else None)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise JournalError(f"{folder / JOURNAL} does not start as a journal: {error}") from error


def _results(log: JournalContents) -> Iterator[PhaseResult]:
    for data in log.header["phases"]:
        phase = from_wire(Phase, data)
        ended = log.phases.get(phase.epoch)
        settled = log.settled_groups
        groups = tuple(_whole_groups(log, phase)) if settled is None else settled.of(phase)
        dev = tuple(_dev_groups(log, phase)) if settled is None else settled.dev(phase)
        calls = tuple(sorted((c for c in log.calls.values() if c.epoch == phase.epoch), key=lambda c: c.key))
        paid = (rollout for rollout in log.rollouts.values() if rollout.epoch == phase.epoch)
        grouped = (*groups, *dev) if settled is None else ()
        ungrouped = loose(grouped, paid, (r for r in log.abandoned if r.epoch == phase.epoch))
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
    return replace(group, rollouts=tuple(_judged(log, id, status) for id, status in members))


def _judged(log: JournalContents, id: str, status: str) -> Rollout:
    """Return a rollout with what was found of it; `status` is the one that it had in its group."""
    found, opinion = log.checker_results.get(id), log.opinions.get(id)
    return judged(log.rollouts[id], checker_result=found, opinion=opinion, decisive=status == "error")


def find_resumable(
    out: Path,
    task_id: str,
    wanted: str,
    stamps: Mapping[str, str],
    *,
    rollouts: int,
    unset: str,
    again: bool = False,
) -> JournalContents:
    """Return the log of the run to resume: `wanted`, or with ``latest`` the newest that is not concluded.

    A complete run is concluded once its reports are written. Raises ResumeError when there is none, when
    another process writes it, or when its stamps differ from `stamps`, naming what differs.

    Its sweeps must have `rollouts` of each scenario. Whether ``eval_rollouts`` says so need not matter then:
    `unset` is the stamp of the settings without it. With `again` the run `wanted` may be concluded.
    """
    if wanted != "latest":
        known = {folder.name: folder for folder in list_runs(out, task_id)}
        if wanted not in known:
            latest = ", ".join(sorted(known)[-5:]) or "none"
            raise ResumeError(f"no run {wanted!r} under {out / task_id / RUNS} (latest: {latest})")
        log = read_log(known[wanted])
        _require_same(known[wanted], log, stamps, rollouts, unset, again=again)
        return log
    for folder in reversed(list_runs(out, task_id)):
        log = read_log(folder)
        if not is_concluded(folder, log):
            _require_same(folder, log, stamps, rollouts, unset)
            return log
    raise ResumeError(
        f"no incomplete run under {out / task_id / RUNS}; leave --tfgrpo-resume out to start a new one "
        "(`tfgrpo report` shows the latest)"
    )


def is_concluded(folder: Path, log: JournalContents) -> bool:
    """Return whether a run is complete, and its manifest, which is written last, belongs to that end."""
    if not log.complete or log.finish is None:
        return False
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return bool(manifest["finished_at"] == log.finish["finished_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _require_same(
    folder: Path,
    log: JournalContents,
    stamps: Mapping[str, str],
    rollouts: int,
    unset: str,
    *,
    again: bool = False,
) -> None:
    if log.header["run_id"] != folder.name:
        raise ResumeError(
            f"{folder / JOURNAL} is the journal of run {log.header['run_id']!r}; name its folder so"
        )
    if is_open(folder / JOURNAL):
        raise ResumeError(
            f"run {folder.name} cannot be resumed: another process is carrying it out; wait until it ends"
        )
    if not again and is_concluded(folder, log):
        raise ResumeError(f"run {folder.name} is complete; leave --tfgrpo-resume out to start a new one")
    then = log.header["settings"].get("eval_rollouts")
    if isinstance(then, int) and then != rollouts:
        raise ResumeError(
            f"run {folder.name} cannot be resumed: its sweeps have {plural(then, 'rollout')} of each "
            f"scenario, not {rollouts}; set eval_rollouts = {then}, or leave --tfgrpo-resume out"
        )
    before = log.header["stamps"]
    keys = (before.keys() | stamps.keys()) - {"eval"}  # a part of `scenarios`
    keys -= {"settings"} if before.get("settings") == unset else set()
    differing = sorted(key for key in keys if before.get(key) != stamps.get(key))
    if differing:
        raise ResumeError(
            f"run {folder.name} cannot be resumed: {', '.join(differing)} changed since; "
            "restore them or leave --tfgrpo-resume out"
        )
