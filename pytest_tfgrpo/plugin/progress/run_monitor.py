"""The run monitor: waits on pytest's main thread for the engine's records."""

from __future__ import annotations

import itertools
import queue
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import CheckerResult, Group, PhaseResult, Rollout, Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.engine.observers import (
    AwaitingChecker,
    LostRollout,
    Notice,
    Record,
    RefusedRollout,
    SharedPrompt,
)
from pytest_tfgrpo.launch.engine_thread import EngineFailed, EngineThread, LoopThread
from pytest_tfgrpo.launch.exit_guard import guard_exits, tell_stderr
from pytest_tfgrpo.launch.launch import Launch, load_conclusion
from pytest_tfgrpo.plugin.fixtures.main_thread import MainThreadCall
from pytest_tfgrpo.plugin.progress.progress import Progress
from pytest_tfgrpo.protocols import Actor
from pytest_tfgrpo.runs.journal.stored_groups import StoredGroups, StoredRollouts, by_scenario
from pytest_tfgrpo.runs.schedule import rollout_id
from pytest_tfgrpo.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from pytest_tfgrpo.plugin.progress.screen import LiveScreen

POLL_S = 0.1
LAST_RECORD_S = 30.0
FIRST_CALLS_S = 0.03
"""What the engine takes to make its first calls; then it waits for answers, and other work costs no time."""


class RunMonitor:
    """A run in progress; starts when first waited for."""

    def __init__(
        self,
        config: pytest.Config,
        launch: Launch,
        agent: str = "",
        screen: LiveScreen | None = None,
        host: LoopThread | None = None,
    ) -> None:
        """Prepare; nothing is paid for before the first wait.

        Where several run, `agent` is its name, and `host` the thread that they share.
        """
        self.launch = launch
        self.agent = agent
        self.together: Sequence[RunMonitor] = (self,)
        """The runs that start with this one, which is among them, on one thread."""
        self.job = job = launch.prepared.job
        self.run: Run | None = None
        """The run, once it has ended, complete or not."""
        self.error: BaseException | None = None
        """What ended the engine, when it could not even return an incomplete run."""
        self.warnings: list[str] = []
        """Warnings about observing hooks that raised."""
        self._hook = config.hook
        self._config = config
        self._records = queue.SimpleQueue[Record | EngineFailed | MainThreadCall]()
        self._thread = EngineThread(
            job,
            folder=launch.prepared.folder,
            watch=launch.watch,
            extend=launch.more_rollouts,
            paced=True,
            deliver=self._records.put,
            host=host,
        )
        self._progress = Progress(screen, self._thread.gauge, job, agent)
        self._groups: dict[int, dict[str, Group | StoredRollouts]] = {}
        """By epoch and scenario id, until a phase has ended whose groups lie in a file."""
        self._last: tuple[int, Mapping[str, Group]] = (0, {})
        """Groups of such a phase, by scenario id, that were asked for last, with their epoch."""
        self._results: dict[int, PhaseResult] = {}
        self._rollouts: dict[str, Rollout] = {}
        self._workspaces: dict[str, Workspace] = {}
        self._refused: dict[str, str] = {}
        """Rollouts by id that will not be made, and why."""
        self._lost: set[str] = set()
        """Rollouts by id that wait for fresh fixtures."""
        self._shared: set[str] = set()
        """Ids of scenarios whose rollouts in the final sweep serve the control too."""
        self._closed: set[int] = set()
        self._watched = frozenset(s.id for s in job.scenarios if s.checker is not None)
        self._phases = {phase.epoch: phase for phase in job.phases}
        self._control = next((phase.epoch for phase in job.phases if phase.concurrent), None)
        self._dev = {phase.epoch: frozenset(phase.dev) for phase in job.phases}
        self.started = False
        self._entered: int | None = None
        """The epoch whose items run now."""
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
            return line((*ended, *self._refused.values(), "the run is not over")[0], 1000)
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
        self._wait(lambda: epoch in self._results or scenario_id in self._groups.get(epoch, ()))
        if scenario_id in self._groups.get(epoch, ()):
            found = self._groups[epoch][scenario_id]
            return found.group if isinstance(found, StoredRollouts) else found
        result = self._results.get(epoch)
        if result is None or not isinstance(result.groups, StoredGroups):
            return None
        if self._last[0] != epoch or not self._last[1]:
            self._last = epoch, by_scenario(result.groups)
        return self._last[1].get(scenario_id)

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
        self._wait(
            lambda: wanted in self._rollouts or wanted in self._refused or self.is_shared(epoch, scenario_id)
        )
        return self._rollouts.get(wanted)

    def is_lost(self, epoch: int, scenario_id: str, index: int) -> bool:
        """Wait for a rollout with fixtures; return whether its agent is asked again, with fresh ones."""
        wanted = rollout_id(self.job.run_id, self._phases[epoch], scenario_id, index)
        self._wait(
            lambda: (
                wanted in self._lost
                or wanted in self._rollouts
                or wanted in self._refused
                or self.is_shared(epoch, scenario_id)
            )
        )
        lost = wanted in self._lost
        self._lost.discard(wanted)
        return lost

    def is_shared(self, epoch: int, scenario_id: str) -> bool:
        """Return whether the control asks nothing for a scenario, as the final sweep's answers serve it."""
        return epoch == self._control and scenario_id in self._shared

    def workspace(self, rollout: Rollout) -> Path:
        """Return the workspace of a rollout that waits for judgement."""
        return self._workspaces[rollout.rollout_id].path

    def judge(self, rollout: Rollout, checker_result: CheckerResult) -> None:
        """Hand over what a marked test function found."""
        self._thread.judge(rollout.rollout_id, checker_result)

    def supply(self, epoch: int, scenario_id: str, index: int, agent: Actor) -> None:
        """Say whom to ask for a rollout whose fixtures are set up now."""
        self.enter(epoch)
        self._thread.supply(rollout_id(self.job.run_id, self._phases[epoch], scenario_id, index), agent)

    def post(self, call: MainThreadCall) -> None:
        """Hand a call to pytest's thread; called on the engine's."""
        self._records.put(call)

    def enter(self, epoch: int | None) -> None:
        """Say that items of `epoch` run now: it may start, and earlier test functions have had their turn.

        None: all items have run. Runs that started with this one enter the epoch too, unless they lack it.
        """
        if self.started and epoch == self._entered:
            return  # each word to the engine wakes its thread
        starting = not self.started
        if starting:
            for one in self.together:
                one.start()
        for one in self.together:
            one.reach(epoch)
        if starting and len(self.job.scenarios) > 1:  # the report of one needs less
            self._load_ahead()

    def start(self) -> None:
        """Start the run, and all others on its thread."""
        self.started = True
        self._end_clean_on_termination(True)
        self._guard.enter_context(guard_exits(self._leave))
        self._thread.start()

    def reach(self, epoch: int | None) -> None:
        """Let a phase start whose items run now; one that this run does not have changes nothing."""
        if epoch == self._entered and epoch is not None:
            return
        if epoch is not None and epoch not in self._phases:
            return
        self._entered = epoch
        self._thread.open_phase(epoch)
        for earlier in itertools.takewhile(lambda known: known != epoch, self._phases):
            if earlier not in self._closed:
                self._closed.add(earlier)
                self._thread.close_judging(earlier)

    def _load_ahead(self) -> None:
        """Load what only the end of the run needs, unless the first answers come at once."""
        try:
            self._take(self._records.get(timeout=FIRST_CALLS_S))
        except queue.Empty:
            load_conclusion()

    def stop_when_broken(self, session: pytest.Session) -> None:
        """Let `session` end when the engine failed: the items to come would all fail for that one reason.

        Not while another agent's goes on.
        """
        if all(one.error is not None for one in self.together):
            session.shouldfail = f"tfgrpo: the run failed: {self.why}"

    def finish(self) -> Run | None:
        """Wait for the end of the run and return it; None when the engine failed (see `error`)."""
        self.enter(None)
        self._wait(lambda: False)
        return self.run

    def cancel(self) -> None:
        """Ask the run to end with what it has; one that has ended stays as it is."""
        self._thread.cancel()

    def stop(self) -> None:
        """End the run with what it has."""
        self._end_clean_on_termination(False)
        self._progress.clear()
        if not self.ended:
            for one in self.together:
                one.cancel()
            while not self.ended:
                try:
                    record = self._records.get(timeout=LAST_RECORD_S)
                    if not isinstance(record, MainThreadCall):  # its fixtures are gone, and so is who asked
                        self._take(record)
                except queue.Empty:
                    self.error = TimeoutError(f"the run did not end within {LAST_RECORD_S:g} s")

    def join(self) -> None:
        """Wait for what the engine does after the last record: it closes actors and connections."""
        self._thread.join()
        self._progress.finish()

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
            self._progress.tick()
            with suppress(queue.Empty):
                self._take(self._records.get(timeout=POLL_S))
        if self.ended:
            self._progress.clear()

    def _end_clean_on_termination(self, wanted: bool) -> None:
        """Take SIGTERM for Ctrl-C while the run lasts: agents in other processes would outlive pytest."""
        handlers: tuple[Any, Any] = (signal.SIG_DFL, signal.default_int_handler)
        before, after = handlers if wanted else handlers[::-1]
        on_main_thread = threading.current_thread() is threading.main_thread()
        if on_main_thread and signal.getsignal(signal.SIGTERM) is before:
            signal.signal(signal.SIGTERM, after)

    def _take(self, record: Record | EngineFailed | MainThreadCall) -> None:
        match record:
            case MainThreadCall():
                record.make()
            case Notice():
                self._progress.notice(record.text)
            case RefusedRollout():
                self._refused[record.rollout_id] = record.reason
            case LostRollout():
                self._lost.add(record.rollout_id)
            case SharedPrompt():
                self._shared.add(record.scenario_id)
            case AwaitingChecker():
                self._rollouts[record.rollout.rollout_id] = record.rollout
                self._workspaces[record.rollout.rollout_id] = record.workspace
            case Rollout():
                if record.scenario_id in self._watched:
                    self._rollouts[record.rollout_id] = record
                self._tell("pytest_tfgrpo_rollout", rollout=record)
            case Group():
                self._keep(record)
            case PhaseResult():
                for group in record.shared:
                    self._keep(group)
                self._results[record.phase.epoch] = record
                self._let_go(record)
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
        kept = group.rollouts if isinstance(group.rollouts, StoredRollouts) else group
        self._groups.setdefault(group.epoch, {})[group.scenario_id] = kept
        if group.shared and self._control is not None:
            self._shared.add(group.scenario_id)
            self._groups.setdefault(self._control, {})[group.scenario_id] = kept

    def _let_go(self, result: PhaseResult) -> None:
        """Keep of a phase whose groups lie in a file only those that it has not itself."""
        if isinstance(result.groups, StoredGroups):
            own = self._groups.get(result.phase.epoch, {})
            for id_ in result.groups.ids:
                own.pop(id_, None)

    def _tell(self, hook: str, **record: object) -> None:
        """Call an observing hook: it cannot break the run."""
        try:
            getattr(self._hook, hook)(config=self._config, **record)
        except Exception as error:  # noqa: BLE001 - an observer cannot break the pipe
            text = f"hook {hook} raised {type(error).__name__}: {error}"
            if text not in self.warnings:
                self.warnings.append(text)
