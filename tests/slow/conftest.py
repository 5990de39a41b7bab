"""What the tests that start programs share."""

import os
import secrets
from pathlib import Path

import pytest

# Ray keeps the token of a cluster that it starts in the home folder, which is another one in each test.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give simulations and campaigns the time that they take on a busy machine."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and not item.get_closest_marker("timeout"):
            campaign = config.option.faults and item.get_closest_marker("faults")
            item.add_marker(pytest.mark.timeout(3600 if campaign else 1200))
