"""The pytest plugin: only what every start of pytest needs; the rest is loaded on first use.

Nothing heavy may be imported here: no numpy, jsonschema, yaml or asyncio. An unused plugin must cost nothing.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pytest_tfgrpo.hookspecs  # `from` asks the package for the name first, which looks for one alike
from pytest_tfgrpo.core.files import SCENARIO_SUFFIXES, scenario_name
from pytest_tfgrpo.plugin.start import agent_folders, own_modules, unset_options

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Rollout
    from pytest_tfgrpo.plugin.items.checkers import Checkers

MARKER = (
    "tfgrpo(prompt, domain='general', split='train', input=None, turns=None, user=None, attachments=(), "
    "workspace=None, environment=None, tools=None, mocks=None, checks=(), expected=None, rubric=None, "
    "truth=None, min_score=None, tags=(), timeout_s=None, family=None, agents=(), fixtures=(), agent=None): "
    "make the test function the checker of a scenario"
)
own_modules.load_as_they_are()


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the ``pytest_tfgrpo_*`` hooks."""
    pluginmanager.add_hookspecs(pytest_tfgrpo.hookspecs)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare all that can be set, in full where something may be set."""
    group = parser.getgroup("tfgrpo", "learning from scenarios (pytest-tfgrpo)")
    text = "learn: run groups of rollouts over several epochs"
    group.addoption("--tfgrpo", action="store_true", default=False, help=text)
    text = "print what would run, without running it"
    group.addoption("--tfgrpo-dry-run", action="store_true", default=False, help=text)
    config = pluginmanager.get_plugin("pytestconfig")
    if config is not None and not _is_mentioned(config):
        unset_options.declare(parser, config)
        return
    _register_configured(pluginmanager, parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Load no conftest.py where agents write."""
    agent_folders.refuse_arguments(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and look again for variables: a conftest.py may have set one."""
    config.addinivalue_line("markers", MARKER)
    config.add_cleanup(partial(_end_sparing, config.pluginmanager))  # first in, last out
    if _has_variables():
        _register_configured(config.pluginmanager)
    if any(map(config.pluginmanager.hasplugin, ("xdist", "xdist.plugin"))):  # however it was loaded
        from pytest_tfgrpo.plugin import distributed

        distributed.register(config, partial(_adopt, config))


def _end_sparing(manager: pytest.PytestPluginManager) -> None:
    end = manager.get_plugin("tfgrpo-session-end")
    if end is not None:
        end.spared.close()


def _register_configured(manager: pytest.PytestPluginManager, parser: pytest.Parser | None = None) -> None:
    """Register the hooks of a start that may set something; `parser` is still to know all flags and keys."""
    if not manager.hasplugin(agent_folders.CONFIGURED):
        from pytest_tfgrpo.plugin import configured

        if parser is not None:
            configured.declare(parser)
        manager.register(configured, agent_folders.CONFIGURED)


def _has_variables() -> bool:
    return any("TFGRPO_" in name for name in os.environ)


def _is_mentioned(config: pytest.Config) -> bool:
    """Return whether something of this plugin may be set, or all that can be set is asked for.

    To declare 70 options in full takes longer than all else of a start that uses none.
    """
    given = (value for name, value in vars(config.option).items() if name.startswith("tfgrpo"))
    if _has_variables() or "_ARGCOMPLETE" in os.environ or any(value not in (None, False) for value in given):
        return True  # the last: a worker of pytest-xdist gets options, not words
    try:
        addopts = config.getini("addopts")
    except (AttributeError, ValueError):  # the ini file is not read yet
        return True
    words = [os.environ.get("PYTEST_ADDOPTS", ""), *addopts, *map(os.fspath, config.invocation_params.args)]
    ini = b"" if config.inipath is None else config.inipath.read_bytes()
    return any(map(_may_set, words)) or b"tfgrpo_" in ini or b"\ntfgrpo-" in ini


def _may_set(word: str) -> bool:
    """Return whether a word may be or hold a flag or key, name a file of flags, or ask for help."""
    short = word.startswith("-") and not word.startswith("--")
    held = "--tfg" in word or "tfgrpo_" in word
    return held or word.startswith("@") or word == "--help" or (short and "h" in word)  # -vh


def _adopt(config: pytest.Config, output: dict[str, Any]) -> None:
    from pytest_tfgrpo.plugin.session import session_of

    session_of(config).adopt(output)


@pytest.hookimpl(wrapper=True)
def pytest_collect_directory(
    path: Path, parent: pytest.Collector
) -> Generator[None, pytest.Collector | None, pytest.Collector | None]:
    """Collect nothing where agents write."""
    folder = yield
    return None if folder is not None and agent_folders.is_agents(path, parent.config) else folder


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect scenario files, and the ini file where the command line names a gate by it."""
    if file_path.name.endswith(SCENARIO_SUFFIXES):
        from pytest_tfgrpo.plugin.files import ScenarioFile

        file: pytest.Collector = ScenarioFile.from_parent(parent, path=file_path)
        return file
    if file_path == parent.config.inipath and parent.session.isinitpath(file_path):
        from pytest_tfgrpo.plugin.items.items import RunFile
        from pytest_tfgrpo.plugin.session import session_of

        session_of(parent.config)
        return RunFile.of(parent)
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Say what the items of a marked test function are called where the command line names none of them."""
    try:
        return (yield)
    except pytest.UsageError as error:
        if session.config.pluginmanager.hasplugin("tfgrpo-session"):
            from pytest_tfgrpo.plugin.session import session_of

            hints = session_of(session.config).hints(str(error))
            raise pytest.UsageError(*error.args, *hints) from error
        named = (Path(word.partition("::")[0]) for word in session.config.args)
        renamed = [name for path in named if path.is_file() and (name := scenario_name(path))]
        if renamed:
            hint = f"a file of scenarios is named like {renamed[0]}"
            raise pytest.UsageError(*error.args, hint) from error
        raise


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
        from pytest_tfgrpo.plugin.items import markers
        from pytest_tfgrpo.plugin.session import session_of

        session = session_of(metafunc.config)
        try:
            markers.parametrize(metafunc, session, learning=session.learning)
        except pytest.UsageError as error:
            session.misuse = error  # raised here, it would be a traceback under "ERROR collecting"


@pytest.fixture
def _tfgrpo_slot(request: pytest.FixtureRequest) -> object:
    """Which rollout of its scenario a marked test function judges; internal."""
    return getattr(request, "param", None)


@pytest.fixture
def rollout(request: pytest.FixtureRequest, _tfgrpo_slot: object) -> Rollout:
    """Return the rollout that a test function marked with ``tfgrpo`` judges."""
    checkers = _checkers(request, _tfgrpo_slot)
    checkers.set_up(request.node, request.getfixturevalue)
    return checkers.rollout(request.node)


@pytest.fixture
def rollout_workspace(request: pytest.FixtureRequest, _tfgrpo_slot: object, rollout: Rollout) -> Path:
    """Return the folder that the rollout worked in."""
    return _checkers(request, _tfgrpo_slot).workspace(rollout)


def _checkers(request: pytest.FixtureRequest, slot: object) -> Checkers:
    from pytest_tfgrpo.plugin.session import session_of

    checkers = session_of(request.config).checkers_of(slot) if slot is not None else None
    if checkers is None:
        pytest.fail(f"{request.node.nodeid}: this fixture needs the mark `tfgrpo` on the test", pytrace=False)
    return checkers
