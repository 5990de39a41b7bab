"""What the engine has said of a run so far, for the items that show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.records import Group, Phase, PhaseResult, Rollout, Run, serves
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.engine.observers import (
    AwaitingChecker,
    EngineFailed,
    LostRollout,
    Record,
    RefusedRollout,
    SharedPrompt,
)
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.journal.stored_groups import StoredGroups, StoredRollouts, by_scenario
from pytest_tfgrpo.runs.schedule import rollout_id
from pytest_tfgrpo.sandbox.workspace import Workspace


class RunRecords:
    """Groups, results and judgements to come, by epoch and scenario."""

    def __init__(self, job: Job) -> None:
        """Nothing is known yet of the run that `job` is."""
        self._run_id = job.run_id
        self.phases: Mapping[int, Phase] = {phase.epoch: phase for phase in job.phases}
        """By epoch."""
        self._beside = [phase for phase in job.phases if phase.concurrent]
        self._dev = {phase.epoch: frozenset(phase.dev) for phase in job.phases}
        self._marked = frozenset(s.id for s in job.scenarios if s.checker is not None)
        self.run: Run | None = None
        self.error: BaseException | None = None
        self._groups: dict[int, dict[str, Group | StoredRollouts]] = {}
        """By epoch and scenario id, until a phase has ended whose groups lie in a file."""
        self._last: tuple[int, Mapping[str, Group]] = (0, {})
        """Groups of such a phase, by scenario id, that were read last, with their epoch."""
        self.results: dict[int, PhaseResult] = {}
        self.rollouts: dict[str, Rollout] = {}
        """Those of marked test functions, also those whose scenario was skipped."""
        self._workspaces: dict[str, Workspace] = {}
        self._refused: dict[str, str] = {}
        """Rollouts by id that will not be made, and why."""
        self.lost: set[str] = set()
        """Rollouts by id that wait for fresh fixtures."""
        self._shared: set[tuple[int, str]] = set()
        """Epochs beside the final sweep, each with the id of a scenario whose rollouts there serve it too."""

    @property
    def ended(self) -> bool:
        """True when no further record will come."""
        return self.run is not None or self.error is not None

    @property
    def why(self) -> str:
        """Return why the run has no more records."""
        if self.error is not None:
            return line(f"{type(self.error).__name__}: {self.error}", 1000)
        ended = [result.reason for result in self.results.values() if result.status != "complete"]
        if self.run is None:
            return line((*ended, *self._refused.values(), "the run is not over")[0], 1000)
        return line(self.run.reason or self.run.status, 1000)

    def id_of(self, epoch: int, scenario_id: str, index: int) -> str:
        """Return the id of a rollout."""
        return rollout_id(self._run_id, self.phases[epoch], scenario_id, index)

    def drawn(self, epoch: int, scenarios: Sequence[Scenario]) -> Sequence[Scenario]:
        """Return those of `scenarios` that an epoch has; of a very large file it draws only some."""
        if len(scenarios) < 2:
            return [scenario for scenario in scenarios if not self.decides(epoch, scenario.id)]
        ids = frozenset(self.phases[epoch].scenarios)
        return [scenario for scenario in scenarios if scenario.id in ids]

    def has_group(self, epoch: int, scenario_id: str) -> bool:
        """Return whether it is known what became of a group."""
        return epoch in self.results or scenario_id in self._groups.get(epoch, ())

    def group(self, epoch: int, scenario_id: str) -> Group | None:
        """Return a group; None where there is none."""
        if scenario_id in self._groups.get(epoch, ()):
            found = self._groups[epoch][scenario_id]
            return found.group if isinstance(found, StoredRollouts) else found
        result = self.results.get(epoch)
        if result is None or not isinstance(result.groups, StoredGroups):
            return None
        if self._last[0] != epoch or not self._last[1]:
            self._last = epoch, by_scenario(result.groups)
        return self._last[1].get(scenario_id)

    def is_settled(self, epoch: int, scenario_id: str) -> bool:
        """Return whether a scenario did not run because the gate was already decided."""
        result = self.results.get(epoch)
        return result is not None and scenario_id in result.settled

    def decides(self, epoch: int, scenario_id: str) -> bool:
        """Return whether a scenario is of the dev split, which decides on what an epoch learned."""
        return scenario_id in self._dev.get(epoch, ())

    def dev_group(self, epoch: int, scenario_id: str) -> tuple[Group | None, str]:
        """Return the last group of a dev scenario, scored if one is; else None, and why it did not run."""
        result = self.results.get(epoch)
        if result is None:
            return None, ""
        groups = [group for group in result.dev if group.scenario_id == scenario_id]
        scored = [group for group in groups if group.gt_mean is not None]
        if groups:
            return (scored or groups)[-1], ""
        if result.revision is None:
            return None, ""
        decided = result.revision.acceptance
        asked = decided is not None and decided.rollouts
        return None, "no lesson in question fits its prompt" if asked else "no lesson was in question"

    def is_decided(self, id_: str) -> bool:
        """Return whether a rollout can be judged, or will not be made."""
        return id_ in self.rollouts or id_ in self._refused

    def is_shared(self, epoch: int, scenario_id: str) -> bool:
        """Return whether an epoch runs nothing for a scenario, as the final sweep's answers serve it."""
        return (epoch, scenario_id) in self._shared

    def workspace(self, rollout: Rollout) -> Path:
        """Return the workspace of a rollout that waits for judgement."""
        return self._workspaces[rollout.rollout_id].path

    def take(self, record: Record | EngineFailed) -> None:
        """Keep what a record says."""
        match record:
            case RefusedRollout():
                self._refused[record.rollout_id] = record.reason
            case LostRollout():
                self.lost.add(record.rollout_id)
            case SharedPrompt():
                self._shared.add((record.epoch, record.scenario_id))
            case AwaitingChecker():
                self.rollouts[record.rollout.rollout_id] = record.rollout
                self._workspaces[record.rollout.rollout_id] = record.workspace
            case Rollout() if record.scenario_id in self._marked:
                self.rollouts[record.rollout_id] = record
            case Group():
                self._keep(record)
            case PhaseResult():
                for group in record.shared:
                    self._keep(group)
                self.results[record.phase.epoch] = record
                self._let_go(record)
            case Run():
                self.run = record
            case EngineFailed():
                self.error = record.error

    def _keep(self, group: Group) -> None:
        """Keep a group for its epoch, and for those beside it that it serves too."""
        kept = group.rollouts if isinstance(group.rollouts, StoredRollouts) else group
        self._groups.setdefault(group.epoch, {})[group.scenario_id] = kept
        for phase in self._beside:
            if serves(group, phase.mode):
                self._shared.add((phase.epoch, group.scenario_id))
                self._groups.setdefault(phase.epoch, {})[group.scenario_id] = kept

    def _let_go(self, result: PhaseResult) -> None:
        """Keep of a phase whose groups lie in a file only those that it has not itself."""
        if isinstance(result.groups, StoredGroups):
            own = self._groups.get(result.phase.epoch, {})
            for id_ in result.groups.ids:
                own.pop(id_, None)
