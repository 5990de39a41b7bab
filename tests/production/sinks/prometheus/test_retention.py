"""Counters and the retention of streams, on a bus whose clock the test moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.buses import Clock
from support.feedback.metrics import CountedLoop, values
from support.loop_events import publish, rewarded, trajectory

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import DAY_S


@pytest.fixture
def loop(local: Bus, tmp_path: Path, clock: Clock) -> Iterator[CountedLoop]:
    found = CountedLoop(local, tmp_path, clock)
    yield found
    found.view.close()


def test_counters_stay_when_retention_takes_the_events(loop: CountedLoop) -> None:
    publish(loop.bus, [trajectory("a"), trajectory("b")], [rewarded("a", 0.5)])
    before = loop.scrape()
    loop.clock.now += 31 * DAY_S
    publish(loop.bus, [trajectory("c")])
    assert [event.sequence for event in loop.bus.replay("RL_TRAJECTORIES")] == [3]
    after = values(loop.scrape())
    for name, value in values(before).items():
        if "model" not in name:
            assert after[name] >= value, name
    assert sum(values(loop.scrape(), "agent_rl_trajectories_collected_total").values()) == 3.0
    assert after["agent_rl_missed_events_total"] == 0.0


def test_what_retention_took_before_it_was_counted_is_a_count(loop: CountedLoop) -> None:
    publish(loop.bus, [trajectory("a"), trajectory("b")])
    loop.clock.now += 31 * DAY_S
    publish(loop.bus, [trajectory("c")])
    found = values(loop.scrape())
    assert (found["agent_rl_missed_events_total"], found["agent_rl_trajectory_length_count"]) == (2.0, 1.0)
