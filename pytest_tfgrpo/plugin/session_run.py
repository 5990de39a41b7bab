"""The run of one agent under pytest: what its items show, its gate, and its report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

import pytest

from pytest_tfgrpo.actors.python import PythonActor
from pytest_tfgrpo.core.errors import TfgrpoError
from pytest_tfgrpo.core.files import REPORT_HTML
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import is_gated
from pytest_tfgrpo.core.settings.gate import MIN_SCORE
from pytest_tfgrpo.launch.engine_thread import LoopThread
from pytest_tfgrpo.plugin import hook_calls
from pytest_tfgrpo.plugin.items.checkers import Checkers
from pytest_tfgrpo.plugin.items.failures import (
    ItemFailed,
    ItemNotRun,
    end_unrun,
    judge_group,
    note_group,
    report_low,
)
from pytest_tfgrpo.plugin.items.item_reports import WITHOUT_TEXT
from pytest_tfgrpo.plugin.items.items import GateItem, ScenarioItem
from pytest_tfgrpo.plugin.progress.run_monitor import RunMonitor

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Run
    from pytest_tfgrpo.launch.conclusion import Conclusion
    from pytest_tfgrpo.launch.launch import Launch
    from pytest_tfgrpo.plugin.progress.screen import LiveScreen


class SessionRun:
    """One run of an invocation: that of its actor, or of one agent of several."""

    def __init__(
        self,
        config: pytest.Config,
        launch: Launch,
        functions: Mapping[str, Scenario],
        *,
        agent: str,
        screen: LiveScreen | None,
        host: LoopThread,
    ) -> None:
        """`functions` are the scenarios of marked test functions, by the node id that their items share."""
        self.agent = agent
        """Its name where several run side by side, else empty."""
        self.launch = launch
        self.live = RunMonitor(config, launch, agent, screen, host)
        self._excused = launch.excused
        """Ids of the scenarios that a gate judges in place of their items."""
        self.checkers = Checkers(config, self.live, functions, excused=self._excused)
        self._conclusion: Conclusion | None = None
        self.lines: list[str] = []
        """Its part of the terminal section."""
        self.warnings: list[str] = []
        """What a reader of the run must know, for pytest to show."""
        self.notes: list[str] = []
        """Commands for GitHub Actions annotations; empty elsewhere."""
        self.unsound = ""
        """Why this fails whatever the gate says: a file was not written, or a replay lacked answers."""
        self.failed = False
        """True when a gate failed, whatever became of its item."""
        self._telling = False
        """True once an item of a gate shows what its gate found, where pytest shows failures."""
        self._config = config
        self._settings = launch.settings
        self._crashes: dict[tuple[str, int], TracebackType | None] = {}
        """For a debugger, tracebacks of what an agent function raised, by scenario and seed."""
        if config.getoption("usepdb", False) and isinstance(launch.prepared.job.actor, PythonActor):
            launch.prepared.job.actor.crashes = self._crashes

    @property
    def ended(self) -> Run | None:
        """The run with all its warnings, once it is concluded."""
        return None if self._conclusion is None else self._conclusion.run

    def show(self, item: ScenarioItem) -> None:
        """Wait for the item's groups, and raise ItemFailed when the item fails."""
        live = self.live
        live.enter(item.phase.epoch)
        problems: list[ItemFailed] = []
        for scenario in live.records.drawn(item.phase.epoch, item.scenarios):
            group = live.group(item.phase.epoch, scenario.id)
            if group is None and live.records.is_settled(item.phase.epoch, scenario.id):
                if len(item.scenarios) == 1:
                    pytest.skip("gate already decided")
                continue
            try:
                excused = self._settings.learning or scenario.id in self._excused
                least = None if excused else MIN_SCORE.of(self._settings)
                why = live.why if group is None else ""
                judge_group(self._config, scenario, group, item.nodeid, least=least, why=why)
            except ItemFailed as shortfall:
                problems.append(shortfall)
            if group is not None and len(item.scenarios) == 1:
                note_group(item, group)
        problems += self._show_dev(item, live)
        live.stop_when_broken(item.session)
        unrun = [problem for problem in problems if isinstance(problem, ItemNotRun)]
        if len(unrun) < len(problems) or (unrun and live.error is not None):
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            failed = ItemFailed("\n\n".join(map(str, problems[:10])), problems[0].reason + more)
            raise failed.with_traceback(self._crash_in(item))  # a debugger stops in its last frame
        if unrun:
            end_unrun(item, unrun[0])
        self._report_low(item, live)

    def _crash_in(self, item: ScenarioItem) -> TracebackType | None:
        groups = [self.live.group(item.phase.epoch, scenario.id) for scenario in item.scenarios]
        rollouts = [rollout for group in groups if group is not None for rollout in group.rollouts]
        known = (self._crashes.get((rollout.scenario_id, rollout.seed)) for rollout in rollouts)
        return next(filter(None, known), None)

    def _report_low(self, item: ScenarioItem, live: RunMonitor) -> None:
        """Mark the item of one scenario that is below its minimum where the gate decides."""
        (first, *others), epoch = item.scenarios, item.phase.epoch
        if others or first.id not in self._excused:
            return
        group, least = live.group(epoch, first.id), MIN_SCORE.of(self._settings)
        if group is not None and group.gt_mean is not None and group.gt_mean < least:
            report_low(group.gt_mean, least)

    def _show_dev(self, item: ScenarioItem, live: RunMonitor) -> list[ItemFailed]:
        """Return what is wrong with the dev scenarios of an item; skips one that did not run."""
        epoch, problems = item.phase.epoch, list[ItemFailed]()
        for scenario in item.scenarios:
            if not live.records.decides(epoch, scenario.id):
                continue
            group, unasked = live.dev_group(epoch, scenario.id)
            if group is None and unasked:
                if len(item.scenarios) == 1:
                    pytest.skip(unasked)
                continue
            try:
                judge_group(self._config, scenario, group, item.nodeid, why=live.why)
            except ItemFailed as shortfall:
                problems.append(shortfall)
            if group is not None and len(item.scenarios) == 1:
                note_group(item, group)
        return problems

    def show_gate(self, item: GateItem) -> None:
        """Wait for the end of the run, and raise ItemFailed when the gate fails."""
        from pytest_tfgrpo.plugin.items import gates

        live = self.live
        live.finish()
        self._telling = self._config.getoption("tbstyle", "auto") not in WITHOUT_TEXT
        conclusion = self.conclude()
        if conclusion is not None:
            gates.show(item, conclusion)
        else:
            gates.fall(item, f"the run did not end: {live.why}", live.why)
        if self.unsound and item.named is None:
            raise ItemFailed(self.unsound)

    def conclude(self) -> Conclusion | None:
        """Check the gate and report the run, once; None if there is nothing to report."""
        live = self.live
        if self._conclusion is not None:
            return self._conclusion
        if live.run is None:
            self.lines = [f"tfgrpo: the run failed: {live.why}"] if live.error is not None else []
            return None
        from pytest_tfgrpo.report.terminal import terminal, warnings_of

        launch = live.launch
        sections, broken = hook_calls.report_sections(self._config, live.run)
        self.unsound = "\n".join(launch.missed)
        conclusion = launch.conclude(
            live.run, warnings=(*live.warnings, *broken), sections=sections, files=self._files(launch)
        )
        self._conclusion = conclusion
        verdict = conclusion.verdict
        self.failed = verdict is not None and (verdict.failed or any(gate.failed for gate in verdict.gates))
        verbosity = self._config.get_verbosity()
        self.lines = terminal(
            conclusion.report,
            verbosity=-1 if self.agent and verbosity < 1 else verbosity,  # the comparison follows
            told_above=self._telling,
            warned=True,
        )
        self.warnings = warnings_of(conclusion.report, every=verbosity > 0)
        if is_gated(self._settings):
            from pytest_tfgrpo.plugin.progress import github

            self.notes = github.notes(conclusion.report, os.environ)
            self.warnings += github.summarise(conclusion.report, os.environ)
        with self._noting_what_is_unwritten():
            launch.write(conclusion)
            if (folder := launch.prepared.folder) is not None:
                self.lines.append((folder.absolute() / REPORT_HTML).as_uri())  # alone, so a terminal links it
        with self._noting_what_is_unwritten():
            self.lines += launch.record(live.run, tuple(live.records.rollouts.values()))
        return conclusion

    @contextmanager
    def _noting_what_is_unwritten(self) -> Iterator[None]:
        try:
            yield
        except TfgrpoError as error:
            self.unsound = str(error)
            self.lines.append(f"tfgrpo: {error}")

    def _files(self, launch: Launch) -> str:
        """Return the run's folder as a reader would type it."""
        folder = launch.prepared.folder
        return "" if folder is None else os.path.relpath(folder, self._config.invocation_params.dir)
