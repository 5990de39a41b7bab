"""The end of an invocation: its runs end, what they found is shown, and the process is as it was before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfgrpo.core.errors import TfgrpoError
from pytest_tfgrpo.core.keys.setting_parsers import default_task_id
from pytest_tfgrpo.core.settings import Settings, is_gated
from pytest_tfgrpo.core.settings.runs import TASK_ID
from pytest_tfgrpo.plugin import distributed
from pytest_tfgrpo.plugin.section import RunSection

if TYPE_CHECKING:
    from pytest_tfgrpo.plugin.one_process import OneProcess
    from pytest_tfgrpo.plugin.session_run import SessionRun

AGAIN = "tfgrpo: interrupted again before the run had ended; "


class SessionEnd:
    """Ends the prepared runs with pytest's session; registered with the session of the plugin."""

    def __init__(self, config: pytest.Config, settings: Settings, runs: Mapping[str, SessionRun]) -> None:
        """`runs` are by agent, also those that are prepared later."""
        self._config, self._settings, self._runs = config, settings, runs
        self.section = RunSection()
        self.process: OneProcess | None = None
        """Keeps the items of the runs in this process."""
        self.spared = ExitStack()
        """Lets the garbage collector trace all objects again; closed after pytest's last collection."""
        self._ran = False
        """True once pytest has run its items to the end; an interrupt at any time leaves it false."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Any:
        """Note that the items ran to their end: after two interrupts pytest's exit status does not say."""
        result = yield
        self._ran = True
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        """End the run with what it has, and write its results."""
        section = self.section
        if self._started:
            normal = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
            try:
                stopped = session.shouldfail or session.shouldstop
                self._end(
                    finish=self._ran and normal and not stopped,
                    why=f"pytest stopped: {stopped}" if stopped else "interrupted",
                )
            except KeyboardInterrupt:
                section.lines = [AGAIN + self._advice()]
                session.exitstatus = pytest.ExitCode.INTERRUPTED
        if self._is_bypassed():
            section.lines = []
            uncollected = exitstatus == pytest.ExitCode.INTERRUPTED and session.testsfailed
            why = "collection failed" if uncollected else "something removed its items, or ended the session"
            section.fail(f"tfgrpo: the gate did not run: {why}")
        if not hasattr(self._config, "workerinput"):
            section.warn(self._config)
        unsound = any(run.unsound for run in self._runs.values())
        if (unsound or section.failed) and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        nothing_ran = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
        if nothing_ran and self._config.getoption("tfgrpo_dry_run", False) and section.lines:
            session.exitstatus = pytest.ExitCode.OK
        output = getattr(self._config, "workeroutput", None)
        if output is not None and section.lines:
            output[distributed.OUTPUT] = section.output()

    @property
    def _started(self) -> bool:
        """True once one of the runs, and so all of them, have started."""
        return any(run.live.started for run in self._runs.values())

    def _end(self, *, finish: bool, why: str) -> None:
        """End the runs, to their very end if they are to `finish`, else for a reason, and report them."""
        runs = [*self._runs.values()]
        for run in runs if finish else ():
            run.live.finish()
        for run in runs:
            run.live.stop(why)
        for run in runs:
            run.conclude()  # while the engine closes its connections
            self.section.add(run)
        self._compare(runs)
        for run in runs:
            run.live.join()

    def _compare(self, runs: Sequence[SessionRun]) -> None:
        """Set the runs of several agents side by side."""
        ended = {run.agent: run.ended for run in runs if run.ended is not None}
        if len(ended) < 2:
            return
        from pytest_tfgrpo.launch.agents import compare_agents

        try:
            self.section.lines += [
                "",
                f"{len(ended)} agents",
                *compare_agents(
                    ended,
                    {run.agent: run.launch.prepared.folder for run in runs},
                    task=TASK_ID.of(self._settings) or default_task_id(self._config.rootpath.name),
                    verbosity=self._config.get_verbosity(),
                    start=self._config.invocation_params.dir,
                ),
            ]
        except TfgrpoError as error:
            self.section.fail(f"tfgrpo: {error}")

    def _advice(self) -> str:
        run = next(iter(self._runs.values()))
        if run.launch.prepared.folder is None:
            return "nothing is kept"
        return f"go on with --tfgrpo-resume={run.live.job.run_id}"

    def _is_bypassed(self) -> bool:
        """Return whether a gated run was prepared in this process, and none of its items was ever run."""
        if not self._runs or self._started or hasattr(self._config, "workerinput"):
            return False
        if self.process is not None and self.process.misused:
            return False
        idle = ("tfgrpo_dry_run", "setuponly", "setupplan")
        return is_gated(self._settings) and not any(self._config.getoption(name, False) for name in idle)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Restore what was changed in this process for the run."""
        for run in self._runs.values():
            run.live.release()
        if self.process is not None:
            self.process.close()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the section of the run."""
        self.section.show(terminalreporter)
