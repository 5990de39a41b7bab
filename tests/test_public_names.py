"""The public names of the package."""

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
    "RunResults",
    "Scenario",
    "TfgrpoWarning",
    "ToolContext",
    "Trajectory",
    "__version__",
    "arun",
    "capture_work",
    "open_live",
    "open_policy",
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
    with pytest.raises(AttributeError, match="'evaluate'; did you mean 'run'"):
        pytest_tfgrpo.evaluate  # noqa: B018


def test_the_version_is_that_of_the_distribution() -> None:
    assert pytest_tfgrpo.__version__ == version("pytest-tfgrpo")
