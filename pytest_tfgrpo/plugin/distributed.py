"""pytest-xdist: run all scenario items on one worker, through the public scheduler hook."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfgrpo.core.files import SCENARIO_SUFFIXES
from pytest_tfgrpo.plugin import categories
from pytest_tfgrpo.plugin.start.gate_ids import run_id

if TYPE_CHECKING:
    from pytest_tfgrpo.plugin.progress.live_line import Moment
    from pytest_tfgrpo.plugin.progress.screen import LiveScreen

RUN_ID = "tfgrpo_run_id"
PLACES = "tfgrpo_places"
SCREEN = "tfgrpo_screen"
OUTPUT = "tfgrpo"
MISUSE = "tfgrpo_misuse"
MODES = ("load", "loadfile", "loadscope")
GONE = ("gone",)
"""Comes from a worker that says no more."""
_SLOT = re.compile(r"[\[-]tfgrpo-(?:[\w.-]+-)?(?:early|baseline|placebo|epoch\d+(?:-eval)?|eval)-r\d+\]$")
_SCOPE = "tfgrpo"


def is_scenario_id(node_id: str, run: str) -> bool:
    """Return whether a node id is that of a scenario item, a checker or a gate of `run`, a node id too."""
    path = node_id.partition("::")[0]
    return path.endswith(SCENARIO_SUFFIXES) or path == run or _SLOT.search(node_id) is not None


@contextmanager
def handing_over(config: pytest.Config) -> Iterator[None]:
    """Let a usage error that a worker raises reach the controller, which else knows only that it ended."""
    try:
        yield
    except pytest.UsageError as error:
        if hasattr(config, "workeroutput"):
            config.workeroutput[MISUSE] = str(error)
        raise


def raise_again(config: pytest.Config) -> None:
    """Raise the usage error that a worker has raised; pytest ends a collection in the same way after one."""
    misuse = getattr(config, "workeroutput", {}).get(MISUSE)
    if misuse is not None:
        raise pytest.UsageError(misuse)


class WorkerScreen:
    """Sends what it is to show to the controller, which has the terminal."""

    every_s = 0.5

    def __init__(self, channel: Any) -> None:
        """`channel` is execnet's, made by the controller."""
        self._channel = channel

    def show(self, moment: Moment) -> None:
        """Send what goes on."""
        self._send(("show", moment.at_s, moment.share, [tuple(part) for part in moment.parts]))

    def restore(self) -> None:
        """Do nothing: the controller sees itself what pytest has wiped."""

    def keep(self, text: str) -> None:
        """Send a line that stays."""
        self._send(("keep", text))

    def clear(self) -> None:
        """Let the controller take the live line away."""
        self._send(("clear",))

    def finish(self) -> None:
        """Let the controller take the live line away; it sees itself when its list is complete."""
        self.clear()

    def _send(self, message: tuple[object, ...]) -> None:
        with suppress(OSError):  # a controller that has gone needs no line
            self._channel.send(message)


def screen_of(config: pytest.Config) -> LiveScreen | None:
    """Return where a run of this process shows how far it is."""
    given = getattr(config, "workerinput", None)
    if given is None:
        if config.get_verbosity() < 0:
            return None
        from pytest_tfgrpo.plugin.progress.screen import open_screen

        return open_screen(config)
    channel = given.get(SCREEN)
    return WorkerScreen(channel) if channel is not None else None


def register(config: pytest.Config, adopt: Callable[[dict[str, Any]], None]) -> None:
    """Take part in a distributed run, as its controller; `adopt` takes what the worker with the run sends."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Controller(config, adopt), "tfgrpo-controller")
        categories.register(config)


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
        self._screen: LiveScreen | None = None
        """Where the worker that makes the run shows how far it is; made once there are scenarios."""
        self._channels: list[Any] = []
        """Kept, as a channel that nobody holds is closed."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send every worker, also one that replaces another, the same run id."""
        if not self._run_id:
            from pytest_tfgrpo.runs.journal.journal_contents import new_run_id

            self._run_id = new_run_id()
        node.workerinput[RUN_ID] = self._run_id
        node.workerinput[PLACES] = places(self._config)
        if self._config.get_verbosity() >= 0:
            channel = node.gateway.newchannel()
            channel.setcallback(self._show, endmarker=GONE)
            self._channels.append(channel)
            node.workerinput[SCREEN] = channel

    def _show(self, message: tuple[Any, ...]) -> None:
        """Do what a worker requests of the screen; called on execnet's thread."""
        screen = self._screen
        if screen is None:
            return
        match message:
            case ("show", at_s, share, parts):
                from pytest_tfgrpo.plugin.progress.live_line import Moment, Part

                screen.show(Moment(at_s, share, [Part(*part) for part in parts]))
            case ("keep", text):
                screen.keep(text)
            case _:  # it says so itself, or has GONE: what it showed last is true no more
                screen.clear()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Leave what stays below the list of tests."""
        if self._screen is not None:
            self._screen.finish()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Return a scheduler that keeps scenario items together, if there are any."""
        mode = config.getoption("dist")
        return Deferring(config, log, mode) if mode in MODES else None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self._errors += 1
            self._scenarios = self._scenarios or is_scenario_id(report.nodeid, run_id(self._config))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Refuse scenarios in a mode that would run them in several workers at once, and in part of a suite.

        Without workers, pytest itself ends after errors of collection.
        """
        run = run_id(self._config)
        self._scenarios = self._scenarios or any(is_scenario_id(id_, run) for id_ in ids)
        mode, errors = self._config.getoption("dist"), self._errors
        if not self._scenarios:
            return
        if self._screen is None:
            from pytest_tfgrpo.plugin.progress.screen import open_screen

            self._screen = open_screen(self._config)
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
            run = run_id(self._config)
            if any(is_scenario_id(id_, run) for id_ in collection):
                together = _keeping_scenarios_together(self._mode, run)(self._config, self._log)
                for known in self._inner.nodes:
                    together.add_node(known)
                self._inner = together
        self._inner.add_node_collection(node, collection)


def _keeping_scenarios_together(mode: str, run: str) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):  # type: ignore[misc]
        """Scopes as the mode has them; all scenario items are one scope more."""

        def _split_scope(self, nodeid: str) -> str:
            if is_scenario_id(nodeid, run):
                return _SCOPE
            if mode == "loadfile":
                return nodeid.partition("::")[0]
            return super()._split_scope(nodeid) if mode == "loadscope" else nodeid

    return Together
