"""One process: an item of a run is shown where its run is, and nowhere else.

The engine's thread, its answers and its budget live in the process that prepared the run. An item in a child
of it, as ``--forked`` and the like make one, would wait for a thread that does not exist there.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Generator, Iterable

import pytest

from pytest_tfgrpo.plugin import distributed
from pytest_tfgrpo.plugin.items.failures import InOtherProcess
from pytest_tfgrpo.plugin.items.items import GateItem
from pytest_tfgrpo.plugin.items.selection import is_scenario_item

ELSEWHERE = (
    "scenarios and gates must run in process {run}, which prepared their run: remove the option or plugin "
    "that runs tests in separate processes (for example --forked, --isolate or --workers), or deselect the "
    "scenarios"
)
LOOPING = (
    "scenarios cannot run with --looponfail, which runs them again whenever a file changes, even one "
    "that the run writes; run pytest without it"
)


def refuse_known(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Raise pytest.UsageError where it is known beforehand that `items` would run elsewhere, or for ever.

    Those are the option and the mark of pytest-forked, and xdist's loop.
    """
    plugins = config.pluginmanager.get_plugins()
    if any(type(plugin).__module__ == "xdist.looponfail" for plugin in plugins):
        raise pytest.UsageError(LOOPING)
    forked = config.getoption("forked", None)  # None: no plugin has it, and the mark means nothing
    if forked or (forked is not None and any(item.get_closest_marker("forked") for item in items)):
        raise pytest.UsageError(ELSEWHERE.format(run=os.getpid()))


class OneProcess:
    """Fails items in other processes at once, and ends the session of the run's own with a usage error."""

    def __init__(self, config: pytest.Config) -> None:
        """The run is prepared in this process."""
        self._config = config
        self._pid = os.getpid()
        self._told = mmap.mmap(-1, 1)
        """Shared with the processes that are forked off this one: 1 once an item ran in one of them."""

    @property
    def misused(self) -> bool:
        """Return whether an item ran in another process."""
        return self._told[0] != 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail what belongs to a run in a process that does not have it, before it waits for anything."""
        if os.getpid() != self._pid and (isinstance(item, GateItem) or is_scenario_item(item)):
            self._told[0] = 1
            raise InOtherProcess(ELSEWHERE.format(run=self._pid), pytrace=False)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self) -> None:
        """End the session with the first report of such an item."""
        self._refuse()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        """End it too where the other process has left no report."""
        self._refuse()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """End it too where somebody else makes the loop."""
        result = yield
        self._refuse()
        return result

    def _refuse(self) -> None:
        if self.misused and os.getpid() == self._pid:
            with distributed.handing_over(self._config):
                raise pytest.UsageError(ELSEWHERE.format(run=self._pid))

    def close(self) -> None:
        """Give the shared memory back."""
        self._told.close()


def keep(config: pytest.Config, items: Iterable[pytest.Item]) -> OneProcess:
    """Refuse a run whose items would run elsewhere, as far as that is known now; the result does it later."""
    refuse_known(config, items)
    process = OneProcess(config)
    config.pluginmanager.register(process, "tfgrpo-one-process")
    return process
