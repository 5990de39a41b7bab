"""The section of the run on the terminal, also when it comes from an xdist worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfgrpo.core.texts.text import plural, wrapped
from pytest_tfgrpo.plugin import run_warnings
from pytest_tfgrpo.plugin.items.item_reports import failure_representation

if TYPE_CHECKING:
    from pytest_tfgrpo.plugin.session_run import SessionRun

WIDTH = 80


class RunSection:
    """What an invocation shows of its runs."""

    def __init__(self) -> None:
        """Nothing is to be shown yet."""
        self.lines: list[str] = []
        self.warnings: list[str] = []
        """For pytest, which has its own place for them; else shown below the lines."""
        self.notes: list[str] = []
        """Commands for GitHub Actions annotations; empty elsewhere."""
        self.failed = False
        """True when a gate failed, whatever became of its item."""
        self._refused: list[str] = []
        """Warnings that filters make errors."""

    def add(self, run: SessionRun) -> None:
        """Add a run, under the name of its agent where there are several."""
        self.lines += ["", f"agent  {run.agent}", *run.lines] if run.agent and run.lines else run.lines
        self.notes += run.notes
        self.warnings += [f"{run.agent}: {text}" if run.agent else text for text in run.warnings]
        self.failed = self.failed or run.failed

    def fail(self, line: str) -> None:
        """Add why the invocation fails."""
        self.lines.append(line)
        self.failed = True

    def adopt(self, output: dict[str, Any]) -> None:
        """Take over what `output` returned in the xdist worker that made the run."""
        self.lines, self.notes = list(output["lines"]), list(output["notes"])
        self.warnings = list(output["warnings"])
        self.failed = output["failed"]

    def output(self) -> dict[str, Any]:
        """Return it for the process that shows it."""
        return {name: getattr(self, name) for name in ("lines", "notes", "warnings", "failed")}

    def warn(self, config: pytest.Config) -> None:
        """Hand the warnings to pytest; the invocation fails where its filters make errors of them.

        Shown here are those that pytest does not show: errors, and all of them where it shows none.
        """
        if not self.warnings:
            return
        refused = self._refused = run_warnings.issue(config, self.warnings)
        for text in refused if run_warnings.are_shown(config) else self.warnings:
            self.lines += wrapped(f"warning: {text}", WIDTH, hanging="  ")
        if refused:
            self.lines += wrapped(
                f"tfgrpo: -W or filterwarnings makes an error of {plural(len(refused), 'warning')}, so "
                "pytest fails, after the run has ended; to allow it: -W default::pytest_tfgrpo.TfgrpoWarning",
                WIDTH,
                hanging="  ",
            )
            self.failed = True

    def show(self, reporter: pytest.TerminalReporter) -> None:
        """Write it to the terminal, which lists and counts refused warnings among its errors."""
        place = (reporter.config.inipath or reporter.config.rootpath).name
        for text in self._refused:
            why = failure_representation("", f"TfgrpoWarning: {text}", place, 0)
            report = pytest.CollectReport(place, "failed", why, None)
            reporter.stats.setdefault("error", []).append(report)
        if self.lines:
            reporter.section("tfgrpo")
            for n, line in enumerate(self.lines):
                reporter.write_line(line, **markup_of(line) or ({} if n else {"bold": True}))  # the outcome
            for note in self.notes:
                reporter.write_line(note)


def markup_of(line: str) -> dict[str, bool]:
    """Return how pytest is to colour a line of the section, where it has colour."""
    if line.startswith("gate"):
        outcomes = {"FAILED": "red", "inconclusive": "yellow", "passed": "green"}
        return {colour: True for outcome, colour in outcomes.items() if f"  {outcome}" in line}
    if line.startswith(("warning: ", "the run is ")):
        return {"yellow": True}
    return {"bold": True} if line.startswith("gain  ") else {}
