"""What holds for every bus."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.buses import (
    STREAM,
)

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.protocol import Bus


def test_a_fetch_that_waits_ends_when_the_bus_is_closed(bus: Bus) -> None:
    consumer = bus.consumer(STREAM, "one")
    with ThreadPoolExecutor(1) as pool:
        fetch = pool.submit(consumer.fetch, 1, 1000)
        time.sleep(0.1)
        bus.close()
        with pytest.raises(BusError, match="is closed"):
            fetch.result(100)
