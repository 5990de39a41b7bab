"""Fixtures: the buses that the contract holds for; a file of tests imports those that it uses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_tfgrpo.production.bus.protocol import Bus
from support.buses import BusPlace, EmbeddedPlace, NatsPlace
from support.nats_server import NatsServer


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedPlace]:
    place = EmbeddedPlace(tmp_path)
    yield place
    place.close()


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.close()


@pytest.fixture
def on_nats(nats_server: NatsServer) -> Iterator[NatsPlace]:
    place = NatsPlace(nats_server)
    yield place
    place.close()


@pytest.fixture(params=["embedded", "on_nats"])
def place(request: pytest.FixtureRequest) -> BusPlace:
    """Return where a bus of each kind is."""
    found: BusPlace = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def bus(place: BusPlace) -> Bus:
    return place.open()
