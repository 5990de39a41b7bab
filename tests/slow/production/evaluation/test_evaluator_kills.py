"""Evaluators that are killed, two at a time, while events come: the rewards are those of nobody killed."""

import heapq
import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support import ROOT
from support.buses import BusPlace, Clock, EmbeddedPlace, NatsPlace
from support.campaign import Campaign
from support.loop_events import feedback, judged, payloads, publish, trajectory

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.evaluation.evaluator import Evaluator, evaluator_lag
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import BusEvent

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]
STREAMS = ("RL_TRAJECTORIES", "RL_FEEDBACK", "RL_REWARDS")


def traffic(chance: random.Random) -> Iterator[BusEvent]:
    """Yield events for ever: half of the feedback comes later, some of it before its trajectory."""
    for number in itertools.count():
        name = f"t{number}"
        status = chance.choice(["completed_successfully", "failed", "unknown"])
        yield trajectory(name, turns=chance.randint(1, 6), task_status=status)
        about = f"t{max(0, number + chance.randint(-30, 2))}"
        if chance.random() < 0.5:
            yield feedback(name, chance.choice(["thumbs_up", "thumbs_down", "correction"]), about)
        if chance.random() < 0.2:
            yield judged(name, about, style=chance.random(), task_completion=chance.random())


def rewards(bus: Bus) -> list[Json]:
    own = [one for one in payloads(bus) if one["metadata"]["evaluator"] == "tfgrpo"]
    assert len({one["reward_id"] for one in own}) == len(own), "none is there twice"
    return sorted(own, key=lambda one: one["metadata"]["ordinal"])


def finish(bus: Bus, path: Path, owner: str) -> list[Json]:
    """Let one evaluator take the rest into account; return all rewards."""
    with closing(LoopView(path)) as view:
        evaluator = Evaluator(bus, view, owner, ttl_s=0.3)
        until = time.monotonic() + 600
        while (
            not view.position(STREAMS[0])
            or evaluator_lag(bus, view)
            or bus.last(STREAMS[0]) > view.position(STREAMS[0])
        ):
            assert time.monotonic() < until
            evaluator.step()
            time.sleep(0.01)
        evaluator.close()
    return rewards(bus)


def calm(bus: Bus, folder: Path) -> list[Json]:
    """Return the rewards of one evaluation without any disturbance of what is on a bus."""
    clock = Clock()
    place = EmbeddedPlace(folder)
    place.clock = clock
    copy = place.open()

    def stream(name: str) -> Iterator[tuple[float, int, int, BusEvent]]:
        at = 0.0
        for event in bus.replay(name):
            at = max(at, event.arrived)
            if b'"evaluator": "judge-1"' in event.data or name != "RL_REWARDS":
                yield at, STREAMS.index(name), event.sequence, event

    for at, events in itertools.groupby(heapq.merge(*map(stream, STREAMS)), key=lambda found: found[0]):
        clock.now = at
        copy.publish([event for _, _, _, event in events])
    found = finish(copy, folder / "view.db", "calm")
    place.close()
    return found


def start(spec: str, view: Path, number: int) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, "-m", "support.evaluating", spec, str(view), f"owner-{number}"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def test_rewards_are_equal_after_kills_at_random_moments(place: BusPlace, campaign: Campaign, tmp_path: Path):
    chance = campaign.random("evaluator", type(place).__name__)
    spec = (
        f"nats:{place.server.url}" if isinstance(place, NatsPlace) else f"embedded:{place.folder / 'bus.db'}"
    )
    bus = place.open()
    events = traffic(chance)
    numbers = itertools.count()
    views = [tmp_path / "shared.db", tmp_path / "shared.db", tmp_path / "own.db"]
    running = [start(spec, view, next(numbers)) for view in views[1:]]
    try:
        for _ in range(campaign.count(4, 100)):
            victim = chance.randrange(2)
            assert running[victim].stdout.readline() == b"ready\n"
            until = time.monotonic() + chance.uniform(0.0, 2.5)
            while time.monotonic() < until:
                publish(bus, itertools.islice(events, chance.randint(1, 20)))
                time.sleep(chance.uniform(0.0, 0.15))
            running[victim].kill()
            running[victim].wait()
            running[victim].stdout.close()
            if chance.random() < 0.3:
                for path in tmp_path.glob("own.db*"):
                    path.unlink()
            running[victim] = start(spec, views[chance.randrange(3)], next(numbers))
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stdout.close()
    found = finish(bus, tmp_path / "last.db", "last")
    (tmp_path / "calm").mkdir()
    expected = calm(bus, tmp_path / "calm")
    assert len(found) > 10
    assert found == expected
