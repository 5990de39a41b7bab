"""Hooks: the signature and documentation of each.

An exception in a hook that supplies something (`actor`, `rewarders`, `optimizer`, `scenarios`, `checks`,
`gate_rules`) is a usage error before the run spends anything; in `checks`, it is an error of every scenario
file. An exception in a hook that observes (`rollout`, `epoch`, `experience`, `run`) or adds lines
(`report_section`) becomes a warning; what an observer returns is ignored. All hooks run on pytest's main
thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_tfgrpo.core.lessons import Experience
    from pytest_tfgrpo.core.records import PhaseResult, Rollout, Run
    from pytest_tfgrpo.core.scenarios import Scenario
    from pytest_tfgrpo.gate.verdict import GateRule
    from pytest_tfgrpo.protocols import Actor, Optimizer, Rewarder
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind


@pytest.hookspec(firstresult=True)
def pytest_tfgrpo_actor(config: pytest.Config, spec: str) -> Actor | None:
    """Return the actor for the setting `actor`, or None. The first result that is not None counts."""


@pytest.hookspec
def pytest_tfgrpo_rewarders(config: pytest.Config) -> Sequence[Rewarder] | None:
    """Return additional rewarders, each a metric by its name.

    Those with ``weight > 0`` contribute to the reward that ranks a group. A name that is taken or unfit is a
    usage error.
    """


@pytest.hookspec(firstresult=True)
def pytest_tfgrpo_optimizer(config: pytest.Config, spec: str) -> Optimizer | None:
    """Return the optimizer for the setting `optimizer`, or None. The first result that is not None counts."""


@pytest.hookspec
def pytest_tfgrpo_scenarios(
    config: pytest.Config, scenarios: Sequence[Scenario]
) -> Sequence[Scenario] | None:
    """Return the scenarios to run, or None for no change.

    `scenarios` are the selected ones; there may be none, unless you select by name. Omit some
    to drop them, append new ones to add them. What is new or changed is checked and stamped as in a scenario
    file. Each implementation receives the result of the previous one.
    """


@pytest.hookspec
def pytest_tfgrpo_checks(config: pytest.Config) -> Mapping[str, CheckKind] | None:
    """Return additional check kinds by name. A built-in name is a usage error."""


@pytest.hookspec
def pytest_tfgrpo_gate_rules(config: pytest.Config) -> Sequence[GateRule] | None:
    """Return additional gate rules. Built-in rules cannot be removed. A rule that raises fails the gate."""


@pytest.hookspec
def pytest_tfgrpo_rollout(config: pytest.Config, rollout: Rollout) -> None:
    """Called after a rollout is checked, before it is scored."""


@pytest.hookspec
def pytest_tfgrpo_epoch(config: pytest.Config, result: PhaseResult) -> None:
    """Called after an epoch or sweep finishes."""


@pytest.hookspec
def pytest_tfgrpo_experience(config: pytest.Config, experience: Experience) -> None:
    """Called after an experience enters the library."""


@pytest.hookspec
def pytest_tfgrpo_run(config: pytest.Config, run: Run) -> None:
    """Called once after the run ends, complete or not."""


@pytest.hookspec
def pytest_tfgrpo_report_section(config: pytest.Config, run: Run) -> Sequence[str] | None:
    """Return additional lines for the end of the terminal section and of the reports."""
