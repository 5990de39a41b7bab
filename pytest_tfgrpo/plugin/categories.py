"""Categories of their own: an item that a gate stands in for neither passes nor fails.

Below its minimum (``b``, BELOW) is a scenario where the gate decides by the mean; tolerated (``t``,
TOLERATED) is a failed gate that only warns. To other plugins and in JUnit they are skipped, with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import pytest

NAME = "tfgrpo-categories"
Category: TypeAlias = Literal["below", "tolerated"]
STATUSES: Mapping[str, tuple[str, str, tuple[str, Mapping[str, bool]]]] = {
    "below": ("below", "b", ("BELOW", {"yellow": True})),
    "tolerated": ("tolerated", "t", ("TOLERATED", {"yellow": True})),
}
ATTRIBUTE = "tfgrpo_category"
"""Of a report; pytest-xdist sends it along."""


class Apart(pytest.skip.Exception):  # type: ignore[name-defined,misc]
    """Ends an item in a category of its own, for a reason."""

    def __init__(self, category: Category, reason: str) -> None:
        super().__init__(reason)
        self.category = category
        self.reason = reason


def register(config: pytest.Config) -> None:
    """Let the terminal of this process know the categories."""
    if not config.pluginmanager.hasplugin(NAME):
        config.pluginmanager.register(_Statuses(), NAME)


class _Statuses:
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, Mapping[str, bool]]] | None:
        """Return category, letter and word of an item's report."""
        return STATUSES.get(getattr(report, ATTRIBUTE, ""))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List them with their reasons, with ``-rb``, ``-ra`` or ``-rA``, which pytest does for its own."""
        if not {"a", "A", "b"} & {*terminalreporter.config.getoption("reportchars")}:
            return
        found = [
            (word, report)
            for category, _, (word, _) in STATUSES.values()
            for report in terminalreporter.getreports(category)
        ]
        if found:
            terminalreporter.section("a gate decides")
        for word, report in found:
            terminalreporter.write_line(f"{word} {report.nodeid} - {report.longrepr[2]}")
