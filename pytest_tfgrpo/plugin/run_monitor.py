"""The run monitor: waits on pytest's main thread for the engine's records."""

from __future__ import annotations

import itertools
import queue
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import CheckerResult, Group, Phase, PhaseResult, Rollout, Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.text import line
from pytest_tfgrpo.harness.engine.observers import AwaitingChecker, Notice, Record, SharedPrompt
from pytest_tfgrpo.harness.launch.engine_thread import EngineFailed, EngineThread
from pytest_tfgrpo.harness.launch.exit_guard import guard_exits, tell_stderr
from pytest_tfgrpo.harness.launch.launch import Launch
from pytest_tfgrpo.harness.run.schedule import rollout_id
from pytest_tfgrpo.harness.sandbox.workspace import Workspace
from pytest_tfgrpo.plugin.progress import Progress

POLL_S = 0.1
LAST_RECORD_S = 30.0


class RunMonitor:
    """A run in progress; starts when first waited for."""

    def __init__(self, config: pytest.Config, launch: Launch) -> None:
        """Prepare; nothing is paid for before the first wait."""
        self.launch = launch
        self.job = job = launch.prepared.job
        self.run: Run | None = None
        """The run, once it has ended, complete or not."""
        self.error: BaseException | None = None
        """What ended the engine, when it could not even return an incomplete run."""
        self.warnings: list[str] = []
        """Warnings about observing hooks that raised."""
        self._hook = config.hook
        self._config = config
        self._thread = EngineThread(
            job, folder=launch.prepared.folder, watch=launch.watch, extend=launch.more_rollouts, paced=True
        )
        self._progress = Progress(config)
        self._groups: dict[tuple[int, str], Group] = {}
        self._results: dict[int, PhaseResult] = {}
        self._rollouts: dict[str, Rollout] = {}
        self._workspaces: dict[str, Workspace] = {}
        self._shared: set[str] = set()
        """Ids of scenarios whose rollouts in the final sweep serve the control too."""
        self._closed: set[int] = set()
        self._watched = frozenset(s.id for s in job.scenarios if s.checker is not None)
        self._phases = {phase.epoch: phase for phase in job.phases}
        self._control = next((phase.epoch for phase in job.phases if phase.concurrent), None)
        self._dev = {phase.epoch: frozenset(phase.dev) for phase in job.phases}
        self._sweep: Phase | None = None
        """The sweep that goes on: of the dev split, or one that is extended."""
        self.started = False
        self._guard = ExitStack()

    @property
    def ended(self) -> bool:
        """True when no further record will come."""
        return self.run is not None or self.error is not None

    @property
    def why(self) -> str:
        """Return why the run has no more records."""
        if self.error is not None:
            return line(f"{type(self.error).__name__}: {self.error}", 1000)
        ended = [result.reason for result in self._results.values() if result.status != "complete"]
        if self.run is None:
            return line((*ended, "the run is not over")[0], 1000)
        return line(self.run.reason or self.run.status, 1000)

    def group_size(self, epoch: int) -> int:
        """Return the number of rollouts of each group of an epoch."""
        return self._phases[epoch].rollouts

    def drawn(self, epoch: int, scenarios: Sequence[Scenario]) -> Sequence[Scenario]:
        """Return those of `scenarios` that an epoch has; of a very large file it draws only some."""
        if len(scenarios) < 2:
            return [scenario for scenario in scenarios if not self.decides(epoch, scenario.id)]
        ids = frozenset(self._phases[epoch].scenarios)
        return [scenario for scenario in scenarios if scenario.id in ids]

    def group(self, epoch: int, scenario_id: str) -> Group | None:
        """Wait for a group; None when the run ended or excluded the scenario without it."""
        key = (epoch, scenario_id)
        self._wait(lambda: key in self._groups or epoch in self._results)
        return self._groups.get(key)

    def is_settled(self, epoch: int, scenario_id: str) -> bool:
        """Return whether a scenario did not run because the gate was already decided."""
        result = self._results.get(epoch)
        return result is not None and scenario_id in result.settled

    def decides(self, epoch: int, scenario_id: str) -> bool:
        """Return whether a scenario is of the dev split, which decides on what an epoch learned."""
        return scenario_id in self._dev.get(epoch, ())

    def dev_group(self, epoch: int, scenario_id: str) -> tuple[Group | None, str]:
        """Wait for the end of an epoch; return the last group of a dev scenario, scored if one is.

        Without a group: None, and why it did not run; no reason if the run ended before.
        """
        self._wait(lambda: epoch in self._results)
        result = self._results.get(epoch)
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

    @property
    def watched(self) -> tuple[Rollout, ...]:
        """Rollouts of marked test functions so far, also those whose scenario was skipped."""
        return tuple(self._rollouts.values())

    def rollout(self, epoch: int, scenario_id: str, index: int) -> Rollout | None:
        """Wait until a rollout of a marked test function can be judged; None when the run ended without."""
        wanted = rollout_id(self.job.run_id, self._phases[epoch], scenario_id, index)
        self._wait(lambda: wanted in self._rollouts or self.is_shared(epoch, scenario_id))
        return self._rollouts.get(wanted)

    def is_shared(self, epoch: int, scenario_id: str) -> bool:
        """Return whether the control asks nothing for a scenario, as the final sweep's answers serve it."""
        return epoch == self._control and scenario_id in self._shared

    def workspace(self, rollout: Rollout) -> Path:
        """Return the workspace of a rollout that waits for judgement."""
        return self._workspaces[rollout.rollout_id].path

    def judge(self, rollout: Rollout, checker_result: CheckerResult) -> None:
        """Hand over what a marked test function found."""
        self._thread.judge(rollout.rollout_id, checker_result)

    def enter(self, epoch: int | None) -> None:
        """Say that items of `epoch` run now: it may start, and earlier test functions have had their turn.

        None: all items have run.
        """
        if not self.started:
            self.started = True
            self._end_clean_on_termination(True)
            self._guard.enter_context(guard_exits(self._leave))
            self._thread.start()
        self._thread.open_phase(epoch)
        for earlier in itertools.takewhile(lambda known: known != epoch, self._phases):
            if earlier not in self._closed:
                self._closed.add(earlier)
                self._thread.close_judging(earlier)

    def stop_when_broken(self, session: pytest.Session) -> None:
        """Let `session` end when the engine failed: the items to come would all fail for that one reason."""
        if self.error is not None:
            session.shouldfail = f"tfgrpo: the run failed: {self.why}"

    def finish(self) -> Run | None:
        """Wait for the end of the run and return it; None when the engine failed (see `error`)."""
        self.enter(None)
        self._wait(lambda: False)
        return self.run

    def stop(self) -> None:
        """End the run with what it has."""
        self._end_clean_on_termination(False)
        if not self.ended:
            self._thread.cancel()
            while not self.ended:
                try:
                    self._take(self._thread.records.get(timeout=LAST_RECORD_S))
                except queue.Empty:
                    self.error = TimeoutError(f"the run did not end within {LAST_RECORD_S:g} s")
        self._thread.join()

    def release(self) -> None:
        """Let this process end as it likes again: the run has ended, or never will."""
        self._guard.close()

    def _leave(self, text: str) -> None:
        """Tell why pytest ends here and now, past its capture; what it has printed comes first."""
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        with nullcontext() if capture is None else capture.global_and_fixture_disabled():
            self._config.get_terminal_writer().flush()
            advice = f"run {self.job.run_id} is unfinished: let the agent return or raise, and run again"
            tell_stderr(f"\n{text}; {advice}")

    def _wait(self, done: Callable[[], bool]) -> None:
        while not (done() or self.ended):
            try:
                self._take(self._thread.records.get(timeout=POLL_S))
            except queue.Empty:
                self._progress.tick()
        self._progress.clear()

    def _end_clean_on_termination(self, wanted: bool) -> None:
        """Take SIGTERM for Ctrl-C while the run lasts: agents in other processes would outlive pytest."""
        handlers: tuple[Any, Any] = (signal.SIG_DFL, signal.default_int_handler)
        before, after = handlers if wanted else handlers[::-1]
        on_main_thread = threading.current_thread() is threading.main_thread()
        if on_main_thread and signal.getsignal(signal.SIGTERM) is before:
            signal.signal(signal.SIGTERM, after)

    def _take(self, record: Record | EngineFailed) -> None:
        match record:
            case Phase():
                self._sweep = record
            case Notice():
                self._progress.notice(record.text)
            case SharedPrompt():
                self._shared.add(record.scenario_id)
            case AwaitingChecker():
                self._rollouts[record.rollout.rollout_id] = record.rollout
                self._workspaces[record.rollout.rollout_id] = record.workspace
            case Rollout():
                if record.scenario_id in self._watched:
                    self._rollouts[record.rollout_id] = record
                now = self._sweep
                at = now if now and (now.epoch, now.mode) == (record.epoch, record.mode) else None
                self._progress.rollout(record, at or self._phases[record.epoch])
                self._tell("pytest_tfgrpo_rollout", rollout=record)
            case Group():
                self._keep(record)
            case PhaseResult():
                for group in record.shared:
                    self._keep(group)
                self._results[record.phase.epoch] = record
                self._progress.phase(record)
                self._tell("pytest_tfgrpo_epoch", result=record)
            case Experience():
                self._tell("pytest_tfgrpo_experience", experience=record)
            case Run():
                self.run = record
                self._tell("pytest_tfgrpo_run", run=record)
            case EngineFailed():
                self.error = record.error

    def _keep(self, group: Group) -> None:
        """Keep a group for its epoch, and for the control if it serves that too."""
        self._groups[group.epoch, group.scenario_id] = group
        if group.shared and self._control is not None:
            self._shared.add(group.scenario_id)
            self._groups[self._control, group.scenario_id] = group

    def _tell(self, hook: str, **record: object) -> None:
        """Call an observing hook: it cannot break the run."""
        try:
            getattr(self._hook, hook)(config=self._config, **record)
        except Exception as error:  # noqa: BLE001 - an observer cannot break the pipe
            text = f"hook {hook} raised {type(error).__name__}: {error}"
            if text not in self.warnings:
                self.warnings.append(text)
