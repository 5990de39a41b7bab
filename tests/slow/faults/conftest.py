"""What the fault campaigns share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.forks import Forks


@pytest.fixture
def forks() -> Iterator[Forks]:
    """Return what starts pytest at once."""
    with Forks() as forks:
        yield forks
