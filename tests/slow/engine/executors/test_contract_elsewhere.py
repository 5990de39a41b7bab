"""What every executor keeps to, for those that call agents in other processes."""

import pytest
from support.twins import same_tests

globals().update(same_tests("engine.executors.test_contract", "executor"))


@pytest.fixture(params=["process:2", "ray"])
def executor(request: pytest.FixtureRequest) -> str:
    """Return the setting of an executor with two places."""
    if request.param == "ray":
        return str(request.getfixturevalue("cluster").executor)
    return str(request.param)
