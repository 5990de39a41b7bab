"""The client of applications and the service, together."""

import copy
from pathlib import Path

from support.services import Running, real_intake

from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.production.bus.dead_letters import dead_letter_of
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.client import LoopClient

TOKEN = "correct-horse-battery"


def test_what_a_client_enqueues_is_in_the_bus_and_what_is_refused_is_a_dead_letter(tmp_path: Path) -> None:
    trajectory = copy.deepcopy(load_schema("agent-rl/trajectory")["examples"][0])
    address = f"embedded:{tmp_path / 'bus.db'}"
    bus = open_bus(address)
    with Running(real_intake(bus), bus=bus, token=TOKEN) as running:
        client = LoopClient(running.url, TOKEN)
        client.trajectory(trajectory)
        client.trajectory({**trajectory, "turns": "none"})
        for number in range(700):
            client.feedback(trajectory["trajectory_id"], "rating", rating=1 + number % 5)
        client.feedback(trajectory["trajectory_id"], "rating", rating=6)
        assert client.flush(100)
        counted = client.counts()
        client.close()
    bus = open_bus(address)
    counts = {name: len(list(bus.replay(name))) for name in ("RL_TRAJECTORIES", "RL_FEEDBACK", "RL_DEAD")}
    letters = [dead_letter_of(event).code for event in bus.replay("RL_DEAD")]
    bus.close()
    assert counts == {"RL_TRAJECTORIES": 1, "RL_FEEDBACK": 700, "RL_DEAD": 2}
    assert letters == ["schema", "schema"]
    assert (counted.sent, counted.refused, counted.waiting) == (701, 2, 0)
    assert running.reports == []
