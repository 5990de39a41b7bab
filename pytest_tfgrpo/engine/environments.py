"""The environments of a run's scenarios: found before anything is paid for, never built here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError, SettingError
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment, find_built


def find_environments(root: Path, scenarios: Iterable[Scenario]) -> Mapping[str, BuiltEnvironment]:
    """Return the environments that scenarios name, by stamp; raises SettingError naming the first that lacks.

    Each is described in ``environments/`` beside its scenario's file.
    """
    found: dict[str, BuiltEnvironment] = {}
    for scenario in scenarios:
        wanted = scenario.environment
        if wanted is None or wanted in found:
            continue
        try:
            found[wanted] = find_built(folder_of(scenario, root), wanted)
        except (SettingError, ScenarioError) as error:
            raise SettingError(f"scenario {scenario.id!r} ({scenario.source}): {error}") from error
    return found


def folder_of(scenario: Scenario, root: Path) -> Path:
    """Return the folder of a scenario's file."""
    return (root / scenario.source.rpartition(":")[0]).parent
