"""The run monitor: waits on pytest's main thread for the engine's records."""

from __future__ import annotations

import itertools
import queue
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import CheckerResult, Group, PhaseResult, Rollout, Run
from pytest_tfgrpo.engine.observers import EngineFailed, Notice, Record
from pytest_tfgrpo.launch.engine_thread import EngineThread, LoopThread
from pytest_tfgrpo.launch.exit_guard import guard_exits, tell_stderr
from pytest_tfgrpo.plugin.fixtures.main_thread import MainThreadCall
from pytest_tfgrpo.plugin.progress.progress import Progress
from pytest_tfgrpo.plugin.progress.run_records import RunRecords
from pytest_tfgrpo.protocols import Actor

if TYPE_CHECKING:
    from pytest_tfgrpo.launch.launch import Launch
    from pytest_tfgrpo.plugin.progress.screen import LiveScreen
    from pytest_tfgrpo.runs.job import Job

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
        self.records = RunRecords(self.job)
        self.warnings: list[str] = []
        """Warnings about observing hooks that raised."""
        self._config = config
        self._queue = queue.SimpleQueue[Record | EngineFailed | MainThreadCall]()
        self._thread = EngineThread(
            self.job,
            folder=launch.prepared.folder,
            watch=launch.watch,
            extend=launch.more_rollouts,
            paced=True,
            deliver=self._queue.put,
            host=host,
        )
        self._progress = Progress(screen, self._thread.gauge, self.job, agent)
        self._closed: set[int] = set()
        self.started = False
        self._entered: int | None = None
        """The epoch whose items run now."""
        self._guard = ExitStack()

    @property
    def job(self) -> Job:
        """What the run is."""
        return self.launch.prepared.job

    @property
    def run(self) -> Run | None:
        """The run, once it has ended, complete or not."""
        return self.records.run

    @property
    def error(self) -> BaseException | None:
        """What ended the engine, when it could not even return an incomplete run."""
        return self.records.error

    @property
    def why(self) -> str:
        """Return why the run has no more records."""
        return self.records.why

    def group(self, epoch: int, scenario_id: str) -> Group | None:
        """Wait for a group; None when the run ended or excluded the scenario without it."""
        self._wait(lambda: self.records.has_group(epoch, scenario_id))
        return self.records.group(epoch, scenario_id)

    def dev_group(self, epoch: int, scenario_id: str) -> tuple[Group | None, str]:
        """Wait for the end of an epoch; return the last group of a dev scenario, scored if one is.

        Without a group: None, and why it did not run; no reason if the run ended before.
        """
        self._wait(lambda: epoch in self.records.results)
        return self.records.dev_group(epoch, scenario_id)

    def rollout(self, epoch: int, scenario_id: str, index: int) -> Rollout | None:
        """Wait until a rollout of a marked test function can be judged; None when the run ended without."""
        wanted = self.records.id_of(epoch, scenario_id, index)
        self._wait(lambda: self.records.is_decided(wanted) or self.records.is_shared(epoch, scenario_id))
        return self.records.rollouts.get(wanted)

    def is_lost(self, epoch: int, scenario_id: str, index: int) -> bool:
        """Wait for a rollout with fixtures; return whether its agent runs again, with fresh ones."""
        wanted, lost = self.records.id_of(epoch, scenario_id, index), self.records.lost
        self._wait(
            lambda: (
                wanted in lost
                or self.records.is_decided(wanted)
                or self.records.is_shared(epoch, scenario_id)
            )
        )
        found = wanted in lost
        lost.discard(wanted)
        return found

    def judge(self, rollout: Rollout, checker_result: CheckerResult) -> None:
        """Hand over what a marked test function found."""
        self._thread.judge(rollout.rollout_id, checker_result)

    def supply(self, epoch: int, scenario_id: str, index: int, agent: Actor) -> None:
        """Hand over the agent of a rollout whose fixtures are set up now."""
        self.enter(epoch)
        self._thread.supply(self.records.id_of(epoch, scenario_id, index), agent)

    def post(self, call: MainThreadCall) -> None:
        """Hand a call to pytest's thread; called on the engine's."""
        self._queue.put(call)

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
        if epoch is not None and epoch not in self.records.phases:
            return
        self._entered = epoch
        self._thread.open_phase(epoch)
        for earlier in itertools.takewhile(lambda known: known != epoch, self.records.phases):
            if earlier not in self._closed:
                self._closed.add(earlier)
                self._thread.close_judging(earlier)

    def _load_ahead(self) -> None:
        """Load what only the end of the run needs, unless the first answers come at once."""
        try:
            self._take(self._queue.get(timeout=FIRST_CALLS_S))
        except queue.Empty:
            self.launch.load_conclusion()

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

    def cancel(self, why: str) -> None:
        """Make the run end with what it has; one that has ended stays as it is."""
        self._thread.cancel(why)

    def stop(self, why: str = "interrupted") -> None:
        """End the run with what it has; `why` it does not go on."""
        self._end_clean_on_termination(False)
        self._progress.clear()
        if not self.records.ended:
            for one in self.together:
                one.cancel(why)
            while not self.records.ended:
                try:
                    record = self._queue.get(timeout=LAST_RECORD_S)
                    if not isinstance(record, MainThreadCall):  # its fixtures are gone, and so is its caller
                        self._take(record)
                except queue.Empty:
                    self.records.error = TimeoutError(f"the run did not end within {LAST_RECORD_S:g} s")

    def join(self) -> None:
        """Wait for what the engine does after the last record: it closes actors and connections."""
        self._thread.join()
        self._progress.finish()

    def release(self) -> None:
        """Let this process end as it likes again: the run has ended, or never will."""
        self._guard.close()

    def _leave(self, text: str) -> None:
        """Say why pytest ends here and now, past its capture; what it has printed comes first."""
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        with nullcontext() if capture is None else capture.global_and_fixture_disabled():
            self._config.get_terminal_writer().flush()
            advice = f"run {self.job.run_id} is unfinished: let the agent return or raise, and run again"
            tell_stderr(f"\n{text}; {advice}")

    def _wait(self, done: Callable[[], bool]) -> None:
        while not (done() or self.records.ended):
            self._progress.tick()
            with suppress(queue.Empty):
                self._take(self._queue.get(timeout=POLL_S))
        if self.records.ended:
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
                return
            case Notice():
                self._progress.notice(record.text)
                return
        self.records.take(record)
        match record:
            case Rollout():
                self._tell("pytest_tfgrpo_rollout", rollout=record)
            case PhaseResult():
                self._progress.phase(record)
                self._tell("pytest_tfgrpo_epoch", result=record)
            case Experience():
                self._tell("pytest_tfgrpo_experience", experience=record)
            case Run():
                self._tell("pytest_tfgrpo_run", run=record)

    def _tell(self, hook: str, **record: object) -> None:
        """Call an observing hook: it cannot break the run."""
        try:
            getattr(self._config.hook, hook)(config=self._config, **record)
        except Exception as error:  # noqa: BLE001 - an observer cannot break the pipe
            text = f"hook {hook} raised {type(error).__name__}: {error}"
            if text not in self.warnings:
                self.warnings.append(text)
