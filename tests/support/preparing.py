"""What a run does before anything is asked, without pytest: read settings, suite and hooks, and prepare."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import iniconfig
import pytest

from pytest_tfgrpo import hookspecs
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import TABLE, Settings, resolve
from pytest_tfgrpo.launch.agents import Agent
from pytest_tfgrpo.launch.choice import choose
from pytest_tfgrpo.launch.launch import Launch, read_gates
from pytest_tfgrpo.plugin import hook_calls
from pytest_tfgrpo.plugin.items.selection import Pick
from pytest_tfgrpo.plugin.prepare import open_agents, open_tracing, prepare, usage_errors
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.collection import collect
from support.project import Project


@cache
def _flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--tfgrpo", action="store_true")
    parser.add_argument("--tfgrpo-resume", nargs="?", const="latest")
    for setting in TABLE:
        parser.add_argument(setting.flag, dest=setting.name)
    return parser


def _config(project: Project, resume: str | None) -> pytest.Config:
    """Return what the plugin uses of a configuration: its root, its stash and the hooks of conftest.py."""
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(hookspecs)
    file = project.root / "conftest.py"
    if file.exists():
        module = ModuleType("conftest")
        exec(compile(file.read_bytes(), file, "exec"), vars(module))
        manager.register(module, str(file))
    config = SimpleNamespace(
        rootpath=project.root,
        stash=pytest.Stash(),
        hook=manager.hook,
        getoption=lambda name, default=None: resume if name == "tfgrpo_resume" else default,
    )
    return cast("pytest.Config", config)


def loaded(project: Project, kinds: Mapping[str, CheckKind] = KINDS) -> list[Scenario]:
    """Return the scenarios of all files of the project; raises ScenarioError."""
    return collect(project.root, ["."], kinds)


@usage_errors()
def _settings(project: Project, flags: Mapping[str, Any], *, learning: bool) -> Settings:
    ini = iniconfig.IniConfig(project.root / "pytest.ini")["pytest"].items()
    return resolve(
        {name: value for name, value in flags.items() if value is not None},
        os.environ,
        {name.removeprefix("tfgrpo_"): value for name, value in ini if name.startswith("tfgrpo_")},
        learning_flag=learning,
    )


def prepared(project: Project, *args: str) -> list[Launch]:
    """Return the launches that `project.run` with these flags would start; raises pytest.UsageError.

    There are as many as agents. Test functions are no part of the suite.
    """
    given: dict[str, Any] = vars(_flags().parse_args([*args, *project.sweeps(args)]))
    learning, resume = given.pop("tfgrpo"), given.pop("tfgrpo_resume")
    settings, config = _settings(project, given, learning=learning), _config(project, resume)
    if settings["otel"]:
        open_tracing(config, settings)
    kinds = hook_calls.check_kinds(config)
    agents = open_agents(config, settings)
    found = loaded(project, kinds)
    wanted = hook_calls.revise_scenarios(config, found, kinds)
    return [_prepared(config, agent, found, wanted, kinds) for agent in agents]


def _prepared(
    config: pytest.Config,
    agent: Agent,
    found: Sequence[Scenario],
    wanted: Sequence[Scenario],
    kinds: Mapping[str, CheckKind],
) -> Launch:
    settings, root = agent.settings, config.rootpath
    choice = choose(wanted, settings, root, agent.resume)
    with usage_errors():
        gates = read_gates(settings, root, [*found, *wanted], partial=bool(choice.left_out))
    pick = Pick(
        agent=agent,
        scenarios=choice.scenarios,
        phases=choice.phases,
        functions=(),
        items=(),
        partial=choice.left_out,
    )
    return prepare(config, pick, kinds=kinds, gates=gates, elsewhere=lambda ids: "")


def refusal(project: Project, *args: str) -> str:
    """Return the usage error that ends `project.run` with these flags before anything is asked."""
    asked = project.calls
    with pytest.raises(pytest.UsageError) as refused:
        prepared(project, *args)
    assert project.calls == asked
    return str(refused.value)
