"""Buses by name."""

from pathlib import Path

import pytest
from support.buses import events

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.nats import bus as nats_bus
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.bus.streams import STREAMS


def test_the_embedded_bus_is_named_by_its_file(tmp_path: Path) -> None:
    bus = open_bus(f"embedded:{tmp_path / 'a:b.db'}")
    assert bus.atomic
    bus.publish(events(1))
    bus.close()
    assert (tmp_path / "a:b.db").is_file()


def test_a_bus_on_nats_is_named_by_its_url() -> None:
    pytest.importorskip("nats")
    with pytest.raises(BusError, match="has no host"):
        open_bus("nats:nats://")


@pytest.mark.parametrize("spec", ["", "embedded", "embedded:", "nats", "redis:here", "/a/file"])
def test_what_is_no_bus_is_an_error_that_says_what_is(spec: str) -> None:
    with pytest.raises(BusError, match="use embedded:<path> or nats:<url>"):
        open_bus(spec)


def test_the_embedded_bus_takes_no_options(tmp_path: Path) -> None:
    with pytest.raises(BusError, match="takes no options, and got password, user"):
        open_bus(f"embedded:{tmp_path / 'bus.db'}", options={"user": "me", "password": "x"})


def test_a_bus_has_the_streams_that_it_is_given(tmp_path: Path) -> None:
    bus = open_bus(f"embedded:{tmp_path / 'bus.db'}", STREAMS[:2])
    with pytest.raises(BusError, match=r"no stream .RL_REWARDS.; there are RL_SPANS, RL_TRAJECTORIES$"):
        bus.last("RL_REWARDS")
    bus.close()


def test_options_and_streams_go_to_the_bus_on_nats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_bus, "open_nats", lambda *given: given)
    options = {"user": "me"}
    assert open_bus("nats:nats://host:4222", STREAMS[:1], options) == (
        "nats://host:4222",
        STREAMS[:1],
        options,
    )
