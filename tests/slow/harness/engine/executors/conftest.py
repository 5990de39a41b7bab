"""What tests of executors share: one Ray cluster, whose start takes seconds."""

from collections.abc import Iterator

import pytest
from support.ray_nodes import Nodes, open_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Nodes]:
    """A Ray cluster of one node, which others may join."""
    with open_cluster() as nodes:
        yield nodes
