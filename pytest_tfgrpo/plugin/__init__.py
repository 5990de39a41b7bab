"""The pytest plugin: only what every start of pytest needs; the rest is loaded on first use.

Nothing heavy may be imported here: no numpy, jsonschema, yaml or asyncio. An unused plugin must cost nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfgrpo import hookspecs
from pytest_tfgrpo.core.files import SCENARIO_SUFFIXES, USUAL_SUFFIXES
from pytest_tfgrpo.plugin import agent_folders, options

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Rollout
    from pytest_tfgrpo.plugin.checkers import Checkers

MARKER = (
    "tfgrpo(domain, prompt, split='train', input=None, tools=None, attachments=(), min_score=None, "
    "timeout_s=None, tags=(), family=None): make the test function the checker of a scenario"
)
ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""How pytest ends when it has collected everything."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the ``pytest_tfgrpo_*`` hooks."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare flags and ini keys."""
    options.declare(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Refuse a misspelt flag, and load no conftest.py where agents write."""
    options.refuse_misspelt(args)
    agent_folders.refuse_arguments(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and check every setting that is set, feature on or off (decision 20)."""
    if any("--tfgrpo-" in word or word.startswith("@") for word in options.words(config)):
        from pytest_tfgrpo.plugin import rootdir

        rootdir.require_unmoved(config)
    config.addinivalue_line("markers", MARKER)
    settings = config.stash[options.SETTINGS] = options.read(config)
    if settings["otel"]:  # here, since an error of an xdist worker would come too late
        from pytest_tfgrpo.plugin import prepare

        prepare.open_tracing(config, settings)
    if config.pluginmanager.hasplugin("xdist"):
        from pytest_tfgrpo.plugin import distributed

        distributed.register(config, partial(_adopt, config))


def _adopt(config: pytest.Config, output: dict[str, Any]) -> None:
    from pytest_tfgrpo.plugin.session import session_of

    session_of(config).adopt(output)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say in one line what a learning run is set to."""
    return options.headline(config)


@pytest.hookimpl(wrapper=True)
def pytest_collect_directory(
    path: Path, parent: pytest.Collector
) -> Generator[None, pytest.Collector | None, pytest.Collector | None]:
    """Collect nothing where agents write."""
    folder = yield
    return None if folder is not None and agent_folders.is_agents(path, parent.config) else folder


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Make the session where a baseline is set: its gate fails also if no scenario is left to collect."""
    if options.settings_of(session.config)["baseline"] is not None:
        from pytest_tfgrpo.plugin.session import session_of

        session_of(session.config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect scenario files, and the ini file where the command line names a gate by it."""
    if file_path.name.endswith(SCENARIO_SUFFIXES):
        from pytest_tfgrpo.plugin.files import ScenarioFile

        file: pytest.Collector = ScenarioFile.from_parent(parent, path=file_path)
        return file
    if file_path == parent.config.inipath and parent.session.isinitpath(file_path):
        from pytest_tfgrpo.plugin.items import RunFile
        from pytest_tfgrpo.plugin.session import session_of

        session_of(parent.config)
        return RunFile.of(parent)
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    """Let a hook add scenarios to a suite that has none."""
    result = yield
    implemented = config.hook.pytest_tfgrpo_scenarios.get_hookimpls()
    if implemented and not config.pluginmanager.hasplugin("tfgrpo-session"):
        from pytest_tfgrpo.plugin.session import session_of

        session_of(config).arrange(session, items)
    return result


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one item per rollout of a marked test function."""
    if metafunc.definition.get_closest_marker("tfgrpo") is not None:
        from pytest_tfgrpo.plugin import markers
        from pytest_tfgrpo.plugin.session import session_of

        session = session_of(metafunc.config)
        try:
            markers.parametrize(metafunc, session.phases, learning=session.learning)
        except pytest.UsageError as error:
            session.misuse = error  # raised here, it would be a traceback under "ERROR collecting"


@pytest.fixture
def tfgrpo_slot(request: pytest.FixtureRequest) -> object:
    """Which rollout of its scenario a marked test function judges; internal."""
    return getattr(request, "param", None)


@pytest.fixture
def rollout(request: pytest.FixtureRequest, tfgrpo_slot: object) -> Rollout:
    """Return the rollout that a test function marked with ``tfgrpo`` judges."""
    return _checkers(request, tfgrpo_slot).rollout(request.node)


@pytest.fixture
def rollout_workspace(request: pytest.FixtureRequest, tfgrpo_slot: object) -> Path:
    """Return the folder that the rollout worked in."""
    return _checkers(request, tfgrpo_slot).workspace(request.node)


def _checkers(request: pytest.FixtureRequest, slot: object) -> Checkers:
    from pytest_tfgrpo.plugin.session import session_of

    checkers = session_of(request.config).checkers if slot is not None else None
    if checkers is None:
        pytest.fail(f"{request.node.nodeid}: this fixture needs the mark `tfgrpo` on the test", pytrace=False)
    return checkers


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Report that --tfgrpo found no scenario."""
    for line in _unused(config) if exitstatus in ENDED else ():
        terminalreporter.write_line(line)


def _unused(config: pytest.Config) -> Iterable[str]:
    if options.settings_of(config).learning and not config.pluginmanager.hasplugin("tfgrpo-session"):
        suffixes = ", ".join(f"*{suffix}" for suffix in USUAL_SUFFIXES)
        yield (
            f"tfgrpo: no scenario was collected (looked for {suffixes} and the `tfgrpo` marker, "
            "outside the output folder)"
        )
