"""The buses that the contract holds for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.buses import BusPlace, EmbeddedPlace

from pytest_tfgrpo.bus.protocol import Bus


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedPlace]:
    place = EmbeddedPlace(tmp_path)
    yield place
    place.close()


@pytest.fixture(params=["embedded"])
def place(request: pytest.FixtureRequest) -> BusPlace:
    """Return where a bus of each kind is."""
    found: BusPlace = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def bus(place: BusPlace) -> Bus:
    return place.open()
