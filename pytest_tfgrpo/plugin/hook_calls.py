"""Hook calls: what plugins supply, and errors that name the hook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.records import revised

if TYPE_CHECKING:
    from pytest_tfgrpo.gate.verdict import GateRule
    from pytest_tfgrpo.protocols import Rewarder
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind


def supply(config: pytest.Config, name: str, **given: object) -> Any:
    """Call a hook that supplies something; raises pytest.UsageError naming the hook when it breaks."""
    try:
        return getattr(config.hook, name)(config=config, **given)
    except pytest.UsageError:
        raise
    except Exception as error:
        raise pytest.UsageError(f"hook {name} raised {type(error).__name__}: {error}") from error


def supply_one(config: pytest.Config, name: str, spec: str, wanted: Sequence[str]) -> Any:
    """Return what a hook supplies for `spec`, or None; raises pytest.UsageError when it breaks.

    `wanted` names the required attributes.
    """
    one = supply(config, name, spec=spec)
    for attribute in () if one is None else wanted:
        if not hasattr(one, attribute):
            raise pytest.UsageError(f"hook {name}: {one!r} has no attribute {attribute!r}; add it")
    return one


def check_kinds(config: pytest.Config) -> dict[str, CheckKind]:
    """Return all check kinds, built-in and supplied; raises pytest.UsageError when a name is taken."""
    kinds = dict(KINDS)
    for extra in supply(config, "pytest_tfgrpo_checks"):
        for name, kind in (extra or {}).items():
            if name in kinds:
                raise pytest.UsageError(f"hook pytest_tfgrpo_checks: the check kind {name!r} is taken")
            kinds[name] = kind
    return kinds


def gate_rules(config: pytest.Config) -> list[GateRule]:
    """Return the gate rules that plugins supply."""
    return [rule for extra in supply(config, "pytest_tfgrpo_gate_rules") for rule in extra or ()]


def report_sections(config: pytest.Config, run: Run) -> tuple[list[str], list[str]]:
    """Return the lines that plugins add to the report, and complaints about those that broke."""
    try:
        supplied = config.hook.pytest_tfgrpo_report_section(config=config, run=run)
        return [str(line) for lines in supplied for line in lines or ()], []
    except Exception as error:  # noqa: BLE001 - an observer cannot break the pipe
        return [], [f"hook pytest_tfgrpo_report_section raised {type(error).__name__}: {error}"]


def revise_scenarios(
    config: pytest.Config, scenarios: Sequence[Scenario], kinds: Mapping[str, CheckKind]
) -> list[Scenario]:
    """Return the scenarios as plugins would have them, each plugin after the one before.

    What they add or change is checked and stamped as in a scenario file. Raises pytest.UsageError.
    """
    name, known = "pytest_tfgrpo_scenarios", list(scenarios)
    implementations = config.hook.pytest_tfgrpo_scenarios.get_hookimpls()
    if not implementations:
        return known
    for implementation in implementations:
        given = {"config": config, "scenarios": tuple(known)}
        try:
            answer: Any = implementation.function(*(given[key] for key in implementation.argnames))
            known = known if answer is None else list(answer)
        except Exception as error:
            raise pytest.UsageError(f"hook {name} raised {type(error).__name__}: {error}") from error
    try:
        return revised(scenarios, known, config.rootpath, kinds)
    except (ScenarioError, TypeError, AttributeError) as error:  # the latter of fields that hold anything
        raise pytest.UsageError(f"hook {name}: {error}") from error


def supply_rewarders(config: pytest.Config) -> tuple[Rewarder, ...]:
    """Return the rewarders that plugins supply."""
    supplied = supply(config, "pytest_tfgrpo_rewarders")
    return tuple(rewarder for extra in supplied for rewarder in extra or ())
