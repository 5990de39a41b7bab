"""A run as a queue: calls of an agent in N slots, one driver that serves them, and a disk behind it.

The driver is one thread. A call that ends waits until the driver is free; the driver takes its answer, starts
the next call in that slot, then checks, scores and writes the answer. The disk takes what was written in
order. A sweep ends when both are done. `simulation.py` measures the costs.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a rollout costs the driver and the disk; times in seconds, sizes in bytes."""

    turn_s: float = 0.0
    """Processor time from the end of a call to the start of the next one in its slot."""
    after_s: float = 0.0
    """Processor time of checks, rewards and files of a rollout."""
    wake_s: float = 0.0
    """Processor time added where a call ends while the driver waits."""
    tick_s: float = 0.0
    """A driver that waits looks for calls that have ended at multiples of this; 0: at once."""
    busy_share: float = 0.0
    """Share of a processor that commits take however many rollouts there are."""
    journal_b: float = 0.0
    disk_bps: float = float("inf")

    @property
    def rollout_s(self) -> float:
        """Processor time of a rollout while the driver never waits."""
        return self.turn_s + self.after_s


class Sweep(NamedTuple):
    """How a sweep went."""

    wall_s: float
    driver_s: float
    """Processor time of the driver."""
    queued_s: float
    """Mean time from the end of a call until the driver takes its answer."""


def sweep(costs: Costs, slots: int, rollouts: int, latency_s: tuple[float, float], seed: int = 0) -> Sweep:
    """Simulate a sweep of `rollouts` calls, whose latencies are uniform between two values."""
    low, span, chance = latency_s[0], latency_s[1] - latency_s[0], random.Random(seed).random
    tick, stretch = costs.tick_s, 1 / (1 - costs.busy_share)
    turn, after, wake = (part * stretch for part in (costs.turn_s, costs.after_s, costs.wake_s))
    write, calls = costs.journal_b / costs.disk_bps, list[float]()
    free = written = queued = 0.0
    wakes = 0
    for _ in range(min(slots, rollouts)):
        free += turn
        calls.append(free + low + span * chance())
    heapq.heapify(calls)
    left = rollouts - len(calls)
    for _ in range(rollouts):
        end = calls[0]
        if end > free:
            free = (free + tick * ceil((end - free) / tick) if tick else end) + wake
            wakes += 1
        queued += free - end
        if left:
            left -= 1
            free += turn
            heapq.heapreplace(calls, free + low + span * chance())
        else:
            heapq.heappop(calls)
        free += after
        written = max(written, free) + write
    wall_s = max(free, written)
    busy = rollouts * costs.rollout_s + wakes * costs.wake_s + wall_s * costs.busy_share
    return Sweep(wall_s, min(busy, wall_s), queued / rollouts)


def limits(costs: Costs, slots: int, latency_s: tuple[float, float]) -> dict[str, float]:
    """Return how many rollouts a second the agents, the driver and the disk allow, each by itself."""
    mean_s = sum(latency_s) / 2
    return {
        "agents": slots / mean_s if mean_s else float("inf"),
        "driver": (1 - costs.busy_share) / costs.rollout_s if costs.rollout_s else float("inf"),
        "disk": costs.disk_bps / costs.journal_b if costs.journal_b else float("inf"),
    }


@dataclass(frozen=True, kw_only=True)
class RunCosts:
    """What a run costs around its sweeps, each linear in rollouts."""

    sweep: Costs
    start_s: tuple[float, float] = (0.0, 0.0)
    """Before the first call: at any size, and for each rollout."""
    learn_s: float = 0.0
    """Between two epochs, for each rollout of an epoch, while no call is made."""
    end_s: tuple[float, float] = (0.0, 0.0)
    """Report and page after the last answer: at any size, and for each rollout."""
    resume_s: float = 0.0
    """For each rollout on file, until a resumed run makes its first call."""
    memory_b: tuple[float, float] = (0.0, 0.0)
    """At the peak: at any size, and for each rollout."""
    slot_b: float = 0.0
    """Memory of a call in flight."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a run is going to take."""

    parts_s: dict[str, float]
    """Wall time by what it is spent on: agents (the ideal), driver or disk, learning, start, report."""
    driver_share: float
    """Share of the sweeps' wall time that the driver works."""
    journal_b: float
    memory_b: float
    resume_s: float
    """Of a run that is killed at its end."""
    bottleneck: str

    @property
    def wall_s(self) -> float:
        """Wall time of the run."""
        return sum(self.parts_s.values())


def forecast(
    costs: RunCosts,
    slots: int,
    rollouts: int,
    latency_s: tuple[float, float],
    *,
    epochs: int = 3,
    memory_b: float = float("inf"),
) -> Forecast:
    """Forecast a run of equal epochs on a machine with so much memory."""
    each = rollouts // epochs
    one = sweep(costs.sweep, slots, each, latency_s)
    ideal_s = each * sum(latency_s) / 2 / min(slots, each)
    allowed = limits(costs.sweep, slots, latency_s)
    slower = "disk" if allowed["disk"] < allowed["driver"] else "driver"
    parts_s = {
        "agents": epochs * ideal_s,
        slower: epochs * max(0.0, one.wall_s - ideal_s),
        "learning": costs.learn_s * rollouts,
        "start": costs.start_s[0] + costs.start_s[1] * rollouts,
        "report": costs.end_s[0] + costs.end_s[1] * rollouts,
    }
    peak_b = costs.memory_b[0] + costs.memory_b[1] * rollouts + costs.slot_b * slots
    return Forecast(
        parts_s=parts_s,
        driver_share=one.driver_s / one.wall_s if one.wall_s else 0.0,
        journal_b=costs.sweep.journal_b * rollouts,
        memory_b=peak_b,
        resume_s=costs.start_s[0] + costs.resume_s * rollouts,
        bottleneck="memory" if peak_b > memory_b else max(parts_s, key=lambda part: parts_s[part]),
    )
