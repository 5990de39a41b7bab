"""pytest-xdist: run all scenario items on one worker, through the public scheduler hook."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_tfgrpo.core.files import SCENARIO_SUFFIXES

RUN_ID = "tfgrpo_run_id"
PLACES = "tfgrpo_places"
OUTPUT = "tfgrpo"
MISUSE = "tfgrpo_misuse"
MODES = ("load", "loadfile", "loadscope")
_SLOT = re.compile(r"[\[-]tfgrpo-(?:early|baseline|epoch\d+(?:-eval)?|eval)-r\d+\]$")
_SCOPE = "tfgrpo"


def is_scenario_id(node_id: str) -> bool:
    """Return whether a node id is that of a scenario item, a checker or the gate."""
    path = node_id.partition("::")[0]
    return path.endswith(SCENARIO_SUFFIXES) or path == "tfgrpo" or _SLOT.search(node_id) is not None


@contextmanager
def handing_over(config: pytest.Config) -> Iterator[None]:
    """Let a usage error that a worker raises reach the controller, which else knows only that it ended."""
    try:
        yield
    except pytest.UsageError as error:
        if hasattr(config, "workeroutput"):
            config.workeroutput[MISUSE] = str(error)
        raise


def register(config: pytest.Config, adopt: Callable[[dict[str, Any]], None]) -> None:
    """Take part in a distributed run, as its controller; `adopt` takes what the worker with the run sends."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Controller(config, adopt), "tfgrpo-controller")


def places(config: pytest.Config) -> tuple[list[str], bool]:
    """Return the paths that pytest looks in, and whether they are the whole suite.

    That is what ``testpaths`` says, else the rootdir. A worker knows it from the controller.
    """
    given = getattr(config, "workerinput", None)
    if given is not None:
        return given.get(PLACES, ([], True))  # type: ignore[no-any-return]
    start, root = config.invocation_params.dir, config.rootpath.resolve()
    found = [(start / arg.partition("::")[0]).resolve() for arg in config.args]
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return [*map(str, found)], whole or any(root.is_relative_to(path) for path in found)


class Controller:
    """The controller's side: one run id, one scheduler, one report."""

    def __init__(self, config: pytest.Config, adopt: Callable[[dict[str, Any]], None]) -> None:
        """Nothing is sent before a worker starts."""
        self._config = config
        self._adopt = adopt
        self._run_id = ""
        self._scenarios = False
        """True when a worker found scenarios, good ones or not."""
        self._errors = 0
        """Files that no worker could collect."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give every worker, also one that replaces another, the same run id."""
        if not self._run_id:
            from pytest_tfgrpo.harness.run.journal_contents import new_run_id

            self._run_id = new_run_id()
        node.workerinput[RUN_ID] = self._run_id
        node.workerinput[PLACES] = places(self._config)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Return a scheduler that keeps scenario items together, if there are any."""
        mode = config.getoption("dist")
        return Deferring(config, log, mode) if mode in MODES else None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self._errors += 1
            self._scenarios = self._scenarios or is_scenario_id(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Refuse scenarios in a mode that would run them in several workers at once, and in part of a suite.

        Without workers, pytest itself ends after errors of collection.
        """
        self._scenarios = self._scenarios or any(map(is_scenario_id, ids))
        mode, errors = self._config.getoption("dist"), self._errors
        if not self._scenarios:
            return
        if errors and not self._config.getoption("continue_on_collection_errors"):
            raise pytest.Session.Interrupted(f"{errors} error{'s' if errors > 1 else ''} during collection")
        if mode not in MODES:
            raise pytest.UsageError(
                f"scenarios cannot run with --dist {mode}; use --dist load, loadfile or loadscope"
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the report from the worker that made the run; raises the usage error of one that could not."""
        output = getattr(node, "workeroutput", {})
        if MISUSE in output:
            raise pytest.UsageError(output[MISUSE])
        if OUTPUT in output:
            self._adopt(output[OUTPUT])


class Deferring:
    """The mode's own scheduler, unless scenarios were collected: then one that keeps them together."""

    def __init__(self, config: pytest.Config, log: Any, mode: str) -> None:
        """Start as the mode's own scheduler."""
        from xdist import scheduler

        native = {
            "load": scheduler.LoadScheduling,
            "loadfile": scheduler.LoadFileScheduling,
            "loadscope": scheduler.LoadScopeScheduling,
        }
        self._config, self._log, self._mode = config, log, mode
        self._inner: Any = native[mode](config, log)
        self._decided = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Take what a worker collected; all workers collect the same, so the first one decides."""
        if not self._decided:
            self._decided = True
            if any(map(is_scenario_id, collection)):
                together = _keeping_scenarios_together(self._mode)(self._config, self._log)
                for known in self._inner.nodes:
                    together.add_node(known)
                self._inner = together
        self._inner.add_node_collection(node, collection)


def _keeping_scenarios_together(mode: str) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):  # type: ignore[misc]
        """Scopes as the mode has them; all scenario items are one scope more."""

        def _split_scope(self, nodeid: str) -> str:
            if is_scenario_id(nodeid):
                return _SCOPE
            if mode == "loadfile":
                return nodeid.partition("::")[0]
            return super()._split_scope(nodeid) if mode == "loadscope" else nodeid

    return Together
