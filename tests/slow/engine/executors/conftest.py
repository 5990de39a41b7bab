"""What tests of executors share: one Ray cluster, whose start takes seconds."""

from collections.abc import Iterator

import pytest
from support.ray_nodes import Nodes, open_cluster


@pytest.fixture(scope="session")
def one_cluster() -> Iterator[Nodes]:
    """The cluster of all tests."""
    with open_cluster() as nodes:
        yield nodes


@pytest.fixture
def cluster(one_cluster: Nodes) -> Nodes:
    """A Ray cluster of one node, which others may join."""
    one_cluster.settle()
    return one_cluster
