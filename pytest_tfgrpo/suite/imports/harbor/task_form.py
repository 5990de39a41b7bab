"""The form of a Harbor task: which file holds what, and where our own values stand in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.hidden.tests_kind import TIMEOUT_S

INSTRUCTION, CONFIG = "instruction.md", "task.toml"
ENVIRONMENT, TESTS, SOLUTION = "environment", "tests", "solution"
"""Folders of a task: what its container is built of, what checks it, and what solves it."""
DOCKERFILE = f"{ENVIRONMENT}/Dockerfile"
TEST_SCRIPT, SOLVE_SCRIPT = f"{TESTS}/test.sh", f"{SOLUTION}/solve.sh"
WORKDIR, REWARD = "/app", "/logs/verifier/reward.txt"
"""In a container of ours, where the agent works; in any, where the reward of an attempt is written."""

WORKSPACE, HIDDEN = f"{ENVIRONMENT}/workspace.tar.gz", f"{TESTS}/hidden.tar.gz"
REFERENCE, PROVENANCE = f"{SOLUTION}/reference.tar.gz", f"{SOLUTION}/provenance.json"
LOCKED = f"{ENVIRONMENT}/environment.json"
"""Files of a suite as they are, in a task of ours."""
OURS, FORM = "tfgrpo", 1
"""Table of our own values in ``[metadata]``, and the number of its form."""
KEPT = ("domain", "split", "family", "tags", "min_score", "tools", "agents", "rubric", "truth")
"""Keys of a scenario that are kept there for the way back; Harbor does nothing with them."""
SLACK_S = 60.0
WITHOUT_EFFECT = ("allow", "changes", "weight")
"""Parameters of the check that are kept there too, and that a container does not follow."""


def runs_pytest(check: Mapping[str, Json]) -> bool:
    """Return whether a check, as a scenario has it, is of the one kind that a task can hold."""
    runner = check.get("runner")
    name = runner.get("name") if isinstance(runner, Mapping) else runner
    return check.get("kind") == "tests" and name == "pytest"


def verifier_limit(check: Mapping[str, Json]) -> float:
    """Return the seconds that a container gives the whole check: its tests, and the copy they run on."""
    limit = check.get("timeout_s", TIMEOUT_S)
    return limit + SLACK_S if isinstance(limit, int | float) else 0.0


def settings_of(config: Mapping[str, Json], at: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the values of a ``task.toml`` by dotted key, those of tables each."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from settings_of(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value
