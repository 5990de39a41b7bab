"""Reports of items: a reason in one line beside the whole text, and the time that rollouts took."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from typing import Any

import pytest

from pytest_tfgrpo.plugin.categories import ATTRIBUTE, Apart
from pytest_tfgrpo.plugin.items.failures import ABOUT, TOOK_S, ItemFailed, MarkedFailed

WITHOUT_TEXT = ("line", "no")
"""Styles of ``--tb`` that show only the reason; pytest itself leaves out the text for ``no``."""


class ItemReports:
    """Makes the reports of the items of all runs; registered with the session."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give a report its reason, category and duration.

        An item waits for rollouts that run beside all others, so its own duration says nothing.
        """
        report = yield
        if call.when != "call":
            return report
        value = call.excinfo.value if call.excinfo is not None else None
        path, line, _ = item.reportinfo()
        place = os.fspath(path), (line or 0) + 1
        brief = item.config.getoption("tbstyle", "auto") == "line"
        if isinstance(value, Apart):
            setattr(report, ATTRIBUTE, value.category)
            item.user_properties.append((ATTRIBUTE, value.category))
            report.longrepr = (*place, value.reason)
        elif isinstance(value, ItemFailed | MarkedFailed):
            report.longrepr = failure_representation("" if brief else str(value), value.reason, *place)
        elif report.failed and not brief and (about := item.stash.get(ABOUT, None)):
            add: Callable[[str, str], None] | None = getattr(report.longrepr, "addsection", None)
            if add is not None:
                add("rollout", about())
        report.duration = item.stash.get(TOOK_S, report.duration)
        return report


def failure_representation(text: str, reason: str, path: str, line: int) -> Any:
    """Return what pytest shows of a failure: its whole text, and where and why in one line.

    It is one of pytest's own, as pytest-xdist sends only those, made by the public way to one.
    """
    try:
        raise ItemFailed(reason)
    except ItemFailed as failed:
        made: Any = pytest.ExceptionInfo.from_exception(failed).getrepr(style="native")
    (entry,) = made.reprtraceback.reprentries
    entry.lines = [f"{text}\n"] if text else []
    made.reprcrash.path, made.reprcrash.lineno, made.reprcrash.message = path, line, reason
    return made
