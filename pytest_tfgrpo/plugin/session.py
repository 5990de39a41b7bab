"""The session: created with the first scenario; connects pytest's hooks with the run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfgrpo.core.errors import ScenarioError, TfgrpoError
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.harness.launch.launch import (
    is_gated,
    phases_of,
    planned,
    read_gates,
    select,
    stored_baseline,
)
from pytest_tfgrpo.plugin import agent_folders, distributed, hook_calls, options, prepare
from pytest_tfgrpo.plugin.catalog import Catalog, Marked
from pytest_tfgrpo.plugin.checkers import Checkers
from pytest_tfgrpo.plugin.failures import (
    ItemFailed,
    ItemNotRun,
    end_unrun,
    judge_group,
    note_group,
    report_low,
)
from pytest_tfgrpo.plugin.items import GateItem, RunFile, ScenarioItem, StandIn, make_gates, make_items
from pytest_tfgrpo.plugin.run_monitor import RunMonitor
from pytest_tfgrpo.plugin.selection import (
    elsewhere,
    functions_of,
    is_scenario_item,
    left_out,
    may_add,
    narrowed,
    order,
    whole,
)

if TYPE_CHECKING:
    from pytest_tfgrpo.harness.gate.config import NamedGate
    from pytest_tfgrpo.harness.launch.launch import Launch
    from pytest_tfgrpo.harness.report.conclusion import Conclusion
    from pytest_tfgrpo.harness.scoring.checks.protocol import CheckKind

NAME = "tfgrpo-session"
ONLY_DEV = (
    "only dev scenarios are selected; they validate what train scenarios teach, "
    "so select train scenarios as well"
)
AGAIN = "tfgrpo: interrupted again before the run had ended; "
ONLY_TRAIN = "only train scenarios are selected; they run only with --tfgrpo"


def session_of(config: pytest.Config) -> TfgrpoSession:
    """Return the session of an invocation, made and registered on first use."""
    session: TfgrpoSession | None = config.pluginmanager.get_plugin(NAME)
    if session is None:
        session = TfgrpoSession(config)
        # Registered late, so that its wrapper of the item list is the outermost one.
        config.pluginmanager.register(session, NAME)
    return session


class TfgrpoSession:
    """The scenarios of one invocation of pytest and their run."""

    def __init__(self, config: pytest.Config) -> None:
        """Read the settings; nothing is opened yet."""
        self.config = config
        self.settings = options.settings_of(config)
        self.learning = self.settings.learning
        self.phases: list[Phase] = phases_of(self.settings, config.rootpath)
        self._kinds: dict[str, CheckKind] = {}
        self._catalog = Catalog(config.rootpath, self._kinds)
        self._broken = ""
        """Why no scenario file can be read: a hook that supplies check kinds broke."""
        try:
            self._kinds.update(hook_calls.check_kinds(config))
        except pytest.UsageError as error:
            self._broken = str(error)
        self.misuse: pytest.UsageError | None = None
        """What is wrong with the mark of a test function."""
        self._unsound = ""
        """Why this fails whatever the gate says: a file was not written, or a replay lacked answers."""
        self._partial = ""
        """What left out scenarios of the suite; empty when all of them were selected."""
        self._unrun = ""
        """Why the gate fails though nothing ran: no eval scenario is left."""
        self._ran = False
        """True once pytest has run its items to the end; an interrupt at any time leaves it false."""
        self._telling = False
        """True once an item of a gate tells what its gate found, where pytest shows failures."""
        self._failed = False
        """True when a gate failed, whatever became of its item."""
        self._named: list[NamedGate] = []
        self._excused: frozenset[str] = frozenset()
        """Ids of the scenarios that a gate judges in place of their items."""
        self._live: RunMonitor | None = None
        self._checkers: Checkers | None = None
        self._conclusion: Conclusion | None = None
        self._lines: list[str] = []
        """The terminal section, also when it comes from an xdist worker."""
        self._notes: list[str] = []
        """Commands for GitHub Actions annotations; empty elsewhere."""

    def load(self, path: Path) -> tuple[Scenario, ...]:
        """Return the scenarios of a file, known from now on; raises ScenarioError."""
        if self._broken:
            raise ScenarioError(self._broken)
        return self._catalog.load(path)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> Any:
        """Bring back whole scenarios, restore epoch order, add the gate, and prepare the run."""
        with distributed.handing_over(self.config):
            if self.misuse is not None:
                raise self.misuse
            functions = functions_of(items, learning=self.learning)
            result = yield
            kept = functions_of(items, learning=self.learning)
            self._partial = left_out(sorted(functions), kept, functions) or self._partial
        self.arrange(session, items)
        return result

    def arrange(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Select the scenarios of a run, order their items, and prepare it; raises pytest.UsageError."""
        with distributed.handing_over(self.config):
            self._partial = narrowed(session) or self._partial
            chosen = [item for item in items if is_scenario_item(item)]
            named = [item for item in items if isinstance(item, StandIn)]
            others = [item for item in items if not is_scenario_item(item) and item not in named]
            if chosen or may_add(session, asked=bool(named) or self.learning):
                if self.settings["out"] or self.learning:
                    agent_folders.refuse_output(self.config, items)
                items[:] = others + self._select(session, chosen)
            elif named:
                raise pytest.UsageError(f"{named[0].nodeid} needs the scenarios of its run; select these too")
            else:
                items[:] = others + self._without_eval(session)

    def _select(self, session: pytest.Session, chosen: list[pytest.Item]) -> list[pytest.Item]:
        files = [item for item in chosen if isinstance(item, ScenarioItem)]
        functions = self._catalog.functions(
            [item for item in chosen if not isinstance(item, ScenarioItem)], self.phases
        )
        chosen_ids = {s.id for item in files for s in item.scenarios}
        chosen_ids |= {function.scenario.id for function in functions}
        # In order of collection, whatever --ff or random-order plugins made of it.
        selected = {id: s for id, s in self._catalog.scenarios.items() if id in chosen_ids}
        wanted = hook_calls.revise_scenarios(self.config, list(selected.values()), self._kinds)
        changed = {s.id: s for s in wanted}
        for item in files:
            item.scenarios = tuple(changed.get(s.id, s) for s in item.scenarios)
        wanted = select(wanted, self.settings, self.config.rootpath, self.config.getoption("tfgrpo_resume"))
        home = RunFile.of(session)
        added = make_items(home, [s for s in wanted if s.id not in selected], self)
        phases = planned(wanted, self.settings, self.config.rootpath)
        collected = [s.id for s in self._catalog.scenarios.values() if self.learning or s.split == "eval"]
        self._partial = self._partial or left_out(collected, selected, {s.id for s in wanted})
        ordered = order(phases, [*(whole(files) if self.learning else files), *added], functions)
        kept = {item.nodeid for item in ordered}
        dropped = [item for item in chosen if item.nodeid not in kept]
        if dropped:
            self.config.hook.pytest_deselected(items=dropped)
        if not ordered:
            idle = wanted if self.learning else selected
            self._lines = [ONLY_DEV if self.learning else ONLY_TRAIN] if idle else []
            return self._without_eval(session)
        known = [*self._catalog.scenarios.values(), *wanted]
        with prepare.usage_errors():
            self._named = read_gates(self.settings, self.config.rootpath, known, partial=bool(self._partial))
        if not self.config.option.collectonly:
            self._prepare(wanted, phases, functions)
        if self.config.getoption("tfgrpo_dry_run"):
            return []
        return [*ordered, *make_gates(home, self, self._named)] if is_gated(self.settings) else ordered

    def _elsewhere(self, ids: Sequence[str], *, anywhere: bool = False) -> str:
        """Return which of `ids` are outside the paths that pytest looked in; see `elsewhere`."""
        missing = [id for id in ids if id not in self._catalog.scenarios]
        return elsewhere(self.config, missing, anywhere=anywhere)

    def _without_eval(self, session: pytest.Session) -> list[pytest.Item]:
        """Return the gate, which fails, where a baseline is set and the whole suite has nothing to run."""
        if not self.settings["baseline"] or self._partial or self.config.getoption("tfgrpo_dry_run"):
            return []
        with prepare.usage_errors():
            baseline = stored_baseline(self.settings, self.config.rootpath)
        if baseline is None:  # a library or packs, which name no scenarios
            return []
        ids = list(baseline.scenarios)
        if self._elsewhere(ids, anywhere=not self._catalog.scenarios):
            return []
        self._unrun = (
            f"no eval scenario was collected to compare with the {len(ids)} of the baseline "
            f"{self.settings['baseline']!r}; bring them back, or set tfgrpo_baseline = none"
        )
        return [*make_gates(RunFile.of(session), self, [])]

    def _prepare(self, scenarios: list[Scenario], phases: list[Phase], functions: list[Marked]) -> None:
        launch = prepare.prepare(
            self.config,
            self.settings,
            scenarios=scenarios,
            phases=phases,
            kinds=self._kinds,
            gates=self._named,
            partial=self._partial,
            elsewhere=self._elsewhere,
        )
        self._live = RunMonitor(self.config, launch)
        by_node = {str(f.scenario.checker): f.scenario for f in functions}
        self._excused = launch.excused
        self._checkers = Checkers(self.config, self._live, by_node, excused=self._excused)
        self.config.pluginmanager.register(self._checkers, "tfgrpo-checkers")
        if self.config.getoption("tfgrpo_dry_run"):
            self._lines = prepare.dry_run(launch)

    def show(self, item: ScenarioItem) -> None:
        """Wait for the item's groups, and raise ItemFailed when the item fails."""
        live = self._run()
        live.enter(item.phase.epoch)
        problems: list[ItemFailed] = []
        for scenario in live.drawn(item.phase.epoch, item.scenarios):
            group = live.group(item.phase.epoch, scenario.id)
            if group is None and live.is_settled(item.phase.epoch, scenario.id):
                if len(item.scenarios) == 1:
                    pytest.skip("gate already decided")
                continue
            try:
                least = None if self.learning or scenario.id in self._excused else self.settings["min_score"]
                judge_group(self.config, scenario, group, item.nodeid, least=least, why=live.why)
            except ItemFailed as shortfall:
                problems.append(shortfall)
            if group is not None and len(item.scenarios) == 1:
                note_group(item, group)
        problems += self._show_dev(item, live)
        live.stop_when_broken(item.session)
        unrun = [problem for problem in problems if isinstance(problem, ItemNotRun)]
        if len(unrun) < len(problems) or (unrun and live.error is not None):
            raise ItemFailed("\n\n".join(map(str, problems[:10])))
        if unrun:
            end_unrun(item, unrun[0])
        self._report_low(item, live)

    def _report_low(self, item: ScenarioItem, live: RunMonitor) -> None:
        """Mark the item of one scenario that is below its minimum where the gate decides."""
        (first, *others), epoch = item.scenarios, item.phase.epoch
        if others or first.id not in self._excused:
            return
        group, least = live.group(epoch, first.id), self.settings["min_score"]
        if group is not None and group.gt_mean is not None and group.gt_mean < least:
            report_low(group.gt_mean, least)

    def _show_dev(self, item: ScenarioItem, live: RunMonitor) -> list[ItemFailed]:
        """Return what is wrong with the dev scenarios of an item; skips one that did not run."""
        epoch, problems = item.phase.epoch, list[ItemFailed]()
        for scenario in item.scenarios:
            if not live.decides(epoch, scenario.id):
                continue
            group, unasked = live.dev_group(epoch, scenario.id)
            if group is None and unasked:
                if len(item.scenarios) == 1:
                    pytest.skip(unasked)
                continue
            try:
                judge_group(self.config, scenario, group, item.nodeid, why=live.why)
            except ItemFailed as shortfall:
                problems.append(shortfall)
            if group is not None and len(item.scenarios) == 1:
                note_group(item, group)
        return problems

    def show_gate(self, item: GateItem) -> None:
        """Wait for the end of the run, and raise ItemFailed when the gate fails."""
        from pytest_tfgrpo.plugin import gates

        if self._unrun:
            raise ItemFailed(self._unrun)
        live = self._run()
        live.finish()
        self._telling = self.config.getoption("tbstyle", "auto") != "no"
        conclusion = self._conclude()
        if conclusion is not None:
            gates.show(item, conclusion)
        else:
            gates.fall(item, f"the run did not end: {live.why}", live.why)
        if self._unsound and item.named is None:
            raise ItemFailed(self._unsound)

    @property
    def checkers(self) -> Checkers | None:
        """What judges the rollouts of marked test functions; None before the run is prepared."""
        return self._checkers

    def adopt(self, output: dict[str, Any]) -> None:
        """Take over the terminal section from the xdist worker that made the run."""
        self._lines, self._notes = list(output["lines"]), list(output["notes"])
        self._failed = output["failed"]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Any:
        """Note that the items ran to their end: after two interrupts pytest's exit status does not say."""
        result = yield
        self._ran = True
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        """End the run with what it has, and write its results."""
        if self._live is not None and self._live.started:
            normal = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
            try:
                if self._ran and normal and not (session.shouldstop or session.shouldfail):
                    self._live.finish()
                self._live.stop()
                self._conclude()
            except KeyboardInterrupt:
                kept = self._live.launch.prepared.folder is not None
                advice = f"go on with --tfgrpo-resume={self._live.job.run_id}" if kept else "nothing is kept"
                self._lines = [AGAIN + advice]
                session.exitstatus = pytest.ExitCode.INTERRUPTED
        if self._is_bypassed():
            self._lines = ["tfgrpo: the gate did not run: something removed its items, or ended the session"]
            self._failed = True
        if (self._unsound or self._failed) and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        nothing_ran = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
        if nothing_ran and self.config.getoption("tfgrpo_dry_run") and self._lines:
            session.exitstatus = pytest.ExitCode.OK
        output = getattr(self.config, "workeroutput", None)
        if output is not None and self._lines:
            output[distributed.OUTPUT] = {"lines": self._lines, "notes": self._notes, "failed": self._failed}

    def _is_bypassed(self) -> bool:
        """Return whether a gated run was prepared in this process, and none of its items was ever run."""
        if self._live is None or self._live.started or hasattr(self.config, "workerinput"):
            return False
        idle = ("tfgrpo_dry_run", "setuponly", "setupplan")
        return is_gated(self.settings) and not any(self.config.getoption(name, False) for name in idle)

    def pytest_unconfigure(self) -> None:
        """Restore what was changed in this process for the run."""
        if self._live is not None:
            self._live.release()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the section of the run."""
        if self._lines:
            terminalreporter.section("tfgrpo")
            for line in (*self._lines, *self._notes):
                terminalreporter.write_line(line)

    def _run(self) -> RunMonitor:
        assert self._live is not None, "items run only after the run was prepared"
        return self._live

    def _conclude(self) -> Conclusion | None:
        """Check the gate and report the run, once; None if there is nothing to report."""
        live = self._run()
        if self._conclusion is not None:
            return self._conclusion
        if live.run is None:
            self._lines = [f"tfgrpo: the run failed: {live.why}"] if live.error is not None else []
            return None
        from pytest_tfgrpo.harness.report.terminal import terminal

        launch = live.launch
        sections, broken = hook_calls.report_sections(self.config, live.run)
        self._unsound = "\n".join(launch.missed)
        conclusion = launch.conclude(
            live.run, warnings=(*live.warnings, *broken), sections=sections, files=self._files(launch)
        )
        self._conclusion = conclusion
        verdict = conclusion.verdict
        self._failed = verdict is not None and (verdict.failed or any(gate.failed for gate in verdict.gates))
        self._lines = terminal(
            conclusion.report, verbosity=self.config.get_verbosity(), told_above=self._telling
        )
        if is_gated(self.settings):
            from pytest_tfgrpo.plugin import github

            self._notes = github.notes(conclusion.report, os.environ)
            self._lines += github.summarise(conclusion.report, os.environ)
        with self._noting_what_is_unwritten():
            launch.write(conclusion)
        with self._noting_what_is_unwritten():
            self._lines += launch.record(live.run, live.watched)
        return conclusion

    @contextmanager
    def _noting_what_is_unwritten(self) -> Iterator[None]:
        try:
            yield
        except TfgrpoError as error:
            self._unsound = str(error)
            self._lines.append(f"tfgrpo: {error}")

    def _files(self, launch: Launch) -> str:
        """Return the run's folder as a reader would type it."""
        folder = launch.prepared.folder
        return "" if folder is None else os.path.relpath(folder, self.config.invocation_params.dir)
