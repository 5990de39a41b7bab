"""Cutting a dataset against a bare read of the stream, in one run.

    python benchmarks/loop_dataset.py [--trajectories N]

An embedded bus with so many trajectories of about 2 KB at a tenth as many tasks, of 1,000 users, each with a
reward; the view has read them, as that of a service has. The bare read replays the stream and looks at the
length of each event. Seconds of processor time of the fastest of some. The memory of a cut is the peak of a
process of its own, beside what it had before.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.loop_events import rewarded, trajectory

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.training.dataset.cut import cut
from pytest_tfgrpo.production.training.dataset.request import DatasetRequest
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import BusEvent

PART = 100
"""A sample has one of so many."""
AT_ONCE = 5000
BAR = 3.0


def spent(work: Callable[[], object], times: int = 3) -> float:
    """Return the seconds of processor time of the fastest of some calls."""
    found = []
    for _ in range(times):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def peak_mb() -> float:
    """Return the largest resident memory of this process, without that of whoever started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM"))


def drawn(count: int) -> Iterator[tuple[BusEvent, BusEvent]]:
    """Yield trajectories and their rewards."""
    chance = random.Random(1)
    for n in range(count):
        name, task = f"t{n}", chance.randrange(max(1, count // 10))
        run = trajectory(
            name,
            turns=chance.randint(1, 6),
            session=f"chat-{n // 4}",
            user=f"u-{chance.randrange(1000)}",
            text="The order was sent on Monday. " * 8,
            task={"domain": "general", "instructions": f"Where is order {task}? " + "I waited for it. " * 20},
            metadata={"model": "small-model"},
        )
        yield run, rewarded(name, round(chance.random(), 3))


def fill(bus: Bus, view: LoopView, count: int) -> None:
    events = drawn(count)
    while some := list(islice(events, AT_ONCE)):
        bus.publish([run for run, _ in some])
        bus.publish([reward for _, reward in some])
        view.catch_up(bus)


def bare_read(bus: Bus) -> int:
    return sum(len(event.data) for event in bus.replay("RL_TRAJECTORIES"))


def decoded_read(bus: Bus) -> int:
    return sum(len(json.loads(event.data)) for event in bus.replay("RL_TRAJECTORIES"))


def cut_alone(folder: Path, size: int | None) -> tuple[float, float, float]:
    """Return the seconds that a cut takes, and the peak memory of this process before and after."""
    bus, view = open_bus(f"embedded:{folder / 'bus.db'}"), LoopView(folder / "view.db")
    asked, before = DatasetRequest(sample_size=size), peak_mb()
    took = spent(lambda: cut(bus, view, asked, folder / "evidence.jsonl", domains={}), 2)
    view.close()
    bus.close()
    return took, before, peak_mb()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trajectories", type=int, default=100_000)
    count = parser.parse_args().trajectories
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bus, view = open_bus(f"embedded:{folder / 'bus.db'}"), LoopView(folder / "view.db")
        fill(bus, view, count)
        read, decoded = spent(lambda: bare_read(bus)), spent(lambda: decoded_read(bus))
        print(f"{count:,} trajectories: bare read {read:.2f} s, with the JSON decoded {decoded:.2f} s")
        for what, size in ((f"a sample of {count // PART:,}", count // PART), ("all that fits", None)):
            with get_context("spawn").Pool(1) as pool:
                took, before, peak = pool.apply(cut_alone, (folder, size))
            print(f"  {what}: {took:.2f} s, {took / read:.2f} times a bare read (bar {BAR:g} for a sample), "
                  f"{took / decoded:.2f} times one with JSON; {peak - before:.0f} MB above {before:.0f}",
                  flush=True)  # fmt: skip
        view.close()
        bus.close()


if __name__ == "__main__":
    main()
