"""What the tests that start programs share."""

import os
import secrets

import pytest

# Ray keeps the token of a cluster that it starts in the home folder, which is another one in each test.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each campaign the time for all its cases, on a busy machine too."""
    if config.option.faults:
        for item in items:
            if item.get_closest_marker("faults") and not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(3600))
