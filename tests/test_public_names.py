"""The public names of the package."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import pytest_tfgrpo

NAMES = [
    "Actor",
    "ActorCall",
    "AgentContext",
    "AgentFailure",
    "CheckKind",
    "Frame",
    "GateRule",
    "Optimizer",
    "ProviderError",
    "Record",
    "RewardBatch",
    "Rewarder",
    "Rollout",
    "RuleResult",
    "RunResult",
    "Scenario",
    "ToolContext",
    "Trajectory",
    "__version__",
    "arun",
    "open_live",
    "run",
    "scenario",
    "score",
]


def test_the_list_of_names_is_exact_and_sorted() -> None:
    assert pytest_tfgrpo.__all__ == NAMES == sorted(NAMES)
    assert dir(pytest_tfgrpo) == NAMES
    assert all(getattr(pytest_tfgrpo, name) is not None for name in NAMES)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'pytest_tfgrpo' has no attribute 'Scenarios'"):
        pytest_tfgrpo.Scenarios  # noqa: B018


def test_the_version_is_that_of_the_distribution() -> None:
    assert pytest_tfgrpo.__version__ == version("pytest-tfgrpo")


def test_importing_the_package_imports_nothing_else() -> None:
    program = "import sys; before = set(sys.modules); import pytest_tfgrpo; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    foreign = {name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert foreign == {"pytest_tfgrpo"}


@pytest.mark.parametrize("module", ["pytest_tfgrpo", "pytest_tfgrpo.cli"])
def test_neither_the_package_nor_the_command_line_start_with_a_heavy_import(module: str) -> None:
    heavy = "{'numpy', 'jsonschema', 'yaml', 'asyncio', 'pytest', 'jinja2', 'regex'}"
    program = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
