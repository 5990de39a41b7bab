"""Hooks: signature and docstring, nothing else.

An exception in a hook that supplies something (`actor`, `rewarders`, `optimizer`, `scenarios`, `checks`,
`gate_rules`) is a usage error before anything is paid for; in `checks`, an error of every scenario file. An
exception in a hook that is told something (`rollout`, `epoch`, `experience`, `run`) or adds lines
(`report_section`) becomes a warning: an observer cannot break the run. All hooks are called on pytest's main
thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_tfgrpo.core.lessons import Experience
    from pytest_tfgrpo.core.records import PhaseResult, Rollout, Run, Scenario
    from pytest_tfgrpo.harness.gate.verdict import GateRule
    from pytest_tfgrpo.harness.protocols import Actor, Optimizer, Rewarder
    from pytest_tfgrpo.harness.scoring.checks.protocol import CheckKind


@pytest.hookspec(firstresult=True)
def pytest_tfgrpo_actor(config: pytest.Config, spec: str) -> Actor | None:
    """Return the actor for the setting `actor`, or None to leave it to others; the first answer counts."""


@pytest.hookspec
def pytest_tfgrpo_rewarders(config: pytest.Config) -> Sequence[Rewarder] | None:
    """Return further rewarders; those with ``weight > 0`` take part in the reward that ranks a group."""


@pytest.hookspec(firstresult=True)
def pytest_tfgrpo_optimizer(config: pytest.Config, spec: str) -> Optimizer | None:
    """Return the optimizer for the setting `optimizer`, or None; the first answer counts."""


@pytest.hookspec
def pytest_tfgrpo_scenarios(
    config: pytest.Config, scenarios: Sequence[Scenario]
) -> Sequence[Scenario] | None:
    """Return the scenarios to run, or None for no change.

    `scenarios` are those selected; leave some out to drop them, append new ones to add them. Several
    implementations are called in turn, each with the answer of the one before.
    """


@pytest.hookspec
def pytest_tfgrpo_checks(config: pytest.Config) -> Mapping[str, CheckKind] | None:
    """Return further check kinds by name; a built-in name is a usage error."""


@pytest.hookspec
def pytest_tfgrpo_gate_rules(config: pytest.Config) -> Sequence[GateRule] | None:
    """Return further gate rules; built-in rules cannot be removed, and a rule that raises fails the gate."""


@pytest.hookspec
def pytest_tfgrpo_rollout(config: pytest.Config, rollout: Rollout) -> None:
    """Be told of a finished rollout, as checked and before it is scored; the return value is ignored."""


@pytest.hookspec
def pytest_tfgrpo_epoch(config: pytest.Config, result: PhaseResult) -> None:
    """Be told of a finished epoch or sweep; the return value is ignored."""


@pytest.hookspec
def pytest_tfgrpo_experience(config: pytest.Config, experience: Experience) -> None:
    """Be told of an experience that entered the library; the return value is ignored."""


@pytest.hookspec
def pytest_tfgrpo_run(config: pytest.Config, run: Run) -> None:
    """Be told of the run, once, when it has ended, complete or not; the return value is ignored."""


@pytest.hookspec
def pytest_tfgrpo_report_section(config: pytest.Config, run: Run) -> Sequence[str] | None:
    """Return extra lines for the end of the terminal section and the reports."""
