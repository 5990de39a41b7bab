"""A folder of scenario files, written and loaded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.scenario_files import load_scenarios

Load = Callable[..., tuple[Scenario, ...]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write a scenario file and load it."""

    def load(name: str, text: str | bytes, kinds: Any = KINDS) -> tuple[Scenario, ...]:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_scenarios(path, root=tmp_path, kinds=kinds)

    return load


@pytest.fixture
def refusal(load: Load) -> Callable[..., list[str]]:
    """Write a scenario file and return the lines of the error that it deserves."""

    def refusal(name: str, text: str | bytes) -> list[str]:
        with pytest.raises(ScenarioError) as error:
            load(name, text)
        return str(error.value).split("\n")

    return refusal
