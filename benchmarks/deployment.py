"""Simulate ramps: equal versions rolled back, drops and errors found; and what assignment and monitor cost.

Run it with ``python benchmarks/deployment.py [ramps]``. Each ramp is a canary at 10 %, whose sessions settle
in random order; the rules look after every 25 of them.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.deployment.assignment import SessionVersions, assigned
from pytest_tfgrpo.production.deployment.plan import CANARY
from pytest_tfgrpo.production.deployment.rules import alarm_of
from pytest_tfgrpo.production.deployment.serving import Ramp, Serving
from pytest_tfgrpo.production.deployment.sessions import SettledSession, SettledSessions
from pytest_tfgrpo.production.deployment.tallies import RampTally
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import BusEvent

SEED = 2024
SHARE = 0.1
MEAN, STD = 0.7, 0.25
EVERY = 25
"""Sessions between two looks."""
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
SESSIONS = 20_000


def time_of(seconds: float) -> str:
    """Return a time so long after the ramp began."""
    return utc_time((START + timedelta(seconds=seconds)).isoformat()) or ""


class DrawnRamp:
    """Sessions of one ramp in the order in which they settle."""

    def __init__(
        self, rng: np.random.Generator, canaries: int, drop: float, errors: tuple[float, float], late: int
    ) -> None:
        """`errors` are the rates of canary and control; a session with an error has half the reward.

        A reward above the mean is known so many sessions late.
        """
        n = int(canaries / SHARE * 1.2)
        self.canary = rng.random(n) < SHARE
        means = np.where(self.canary, MEAN - drop, MEAN)
        spread = means * (1 - means) / STD**2 - 1
        self.rewards = rng.beta(means * spread, (1 - means) * spread)
        self.failed = rng.random(n) < np.where(self.canary, *errors)
        self.rewards[self.failed] *= 0.5
        self.known = np.arange(1, n + 1) + np.where(self.rewards > MEAN, late, 0)
        self.last = canaries

    def rolled_back_after(self) -> int:
        """Return the canary sessions until the rules roll back; 0: they do not."""
        tally, seen, waiting = RampTally(), 0, dict[int, SettledSession]()
        rows = zip(*(x.tolist() for x in (self.canary, self.rewards, self.failed, self.known)), strict=True)
        for n, (canary, reward, failed, known) in enumerate(rows, 1):
            one = SettledSession(canary, SHARE, n, True, reward, failed, False, 1.0, "")
            tally.add(one if known == n else one._replace(reward=None))
            if known > n:
                waiting[known] = one._replace(was="waiting")
            if n in waiting:
                tally.add(waiting.pop(n))
            seen += canary
            if n % EVERY == 0 or seen == self.last:
                alarm = alarm_of(tally.figures(0, 0))
                if alarm is not None and alarm.action == "roll_back":
                    return seen
            if seen == self.last:
                break
        return 0


def report(ramps: int) -> None:
    """Print how many ramps are rolled back, and after how many sessions of the canary."""
    cases = (
        ("equal versions, errors .02", 350, 0.0, (0.02, 0.02), 0),
        ("equal versions, good rewards are late", 350, 0.0, (0.02, 0.02), 1000),
        ("equal versions, errors .02, to the end", 1500, 0.0, (0.02, 0.02), 0),
        ("equal versions, both err at .09", 350, 0.0, (0.09, 0.09), 0),
        ("equal versions, both err at .09, to the end", 1500, 0.0, (0.09, 0.09), 0),
        ("reward -.10", 350, 0.10, (0.02, 0.02), 0),
        ("reward -.10, good rewards are late", 350, 0.10, (0.02, 0.02), 1000),
        ("errors .20 against .02", 160, 0.0, (0.2, 0.02), 0),
    )
    print(f"{ramps} ramps each, share {SHARE:g}, reward {MEAN:g} (sd {STD:g}), a look every {EVERY} sessions")
    print(f"{'case':45} {'canaries':>8} {'rolled back':>12} {'median at':>10}")
    for name, canaries, drop, errors, late in cases:
        rng = np.random.default_rng(SEED)
        drawn = [DrawnRamp(rng, canaries, drop, errors, late) for _ in range(ramps)]
        found = [one.rolled_back_after() for one in drawn]
        back = [n for n in found if n]
        middle = f"{np.median(back):.0f}" if back else "-"
        print(f"{name:45} {canaries:8} {len(back) / ramps:12.3f} {middle:>10}")


def report_costs() -> None:
    """Print what an assignment costs, and what the monitor does for each session."""
    ramp = Ramp(
        deployment=derived_id("d"), version="v2", strategy=CANARY.strategy, shares=CANARY.shares,
        waits_min=CANARY.waits_min, began=(time_of(0),), since=time_of(0), by="",
        step_positions=(0,),
    )  # fmt: skip
    serving, met = Serving(ramp=ramp, states={"v1": "live", "v2": "canary"}), SessionVersions()
    names = [f"session-{n}" for n in range(SESSIONS)]
    started = time.process_time()
    for name in names:
        met.version(serving, name)
    cost = (time.process_time() - started) / SESSIONS * 1e6
    print(f"assignment: {cost:.1f} us a session")
    with tempfile.TemporaryDirectory() as folder, closing(open_bus(f"embedded:{folder}/bus.db")) as bus:
        publish(bus.publish, serving, names)
        with closing(LoopView(Path(folder) / "view.db")) as view:
            view.catch_up(bus)
            started = time.process_time()
            tally, sessions = RampTally(), SettledSessions(ramp, serving.live)
            for one in sessions.read(view, ramp, time_of(86400 * 2)):
                tally.add(one)
            alarm_of(tally.figures(ramp.since_position, 0))
            cost = (time.process_time() - started) / SESSIONS * 1e6
    print(f"monitor:    {cost:.1f} us a session of one run, from the view's rows to the rules")


def publish(send, serving: Serving, names: list[str]) -> None:  # type: ignore[no-untyped-def]
    """Publish a run and its reward for each session."""
    runs, rewards = [], []
    for n, name in enumerate(names):
        key, at = derived_id(name), time_of(n)
        run = {
            "trajectory_id": key, "session_id": name, "agent_id": "bot", "start_timestamp": time_of(n),
            "end_timestamp": at, "turns": [], "task_context": {"domain": "general"},
            "outcome": {"task_status": "completed_successfully"},
            "metadata": {"policy_version": assigned(serving, name), "user_ref": f"u-{n}"},
        }  # fmt: skip
        reward = {
            "reward_id": derived_id("reward", key, "1"), "trajectory_id": key, "session_id": name,
            "timestamp": at, "total_reward": 0.7, "reward_type": "dense",
            "reward_components": {"task_completion": {"score": 0.7, "weight": 0.4, "source": "automated"}},
            "normalization": {"normalized_total": 0.0, "components": {}},
            "metadata": {"evaluator": "tfgrpo", "revision": 1, "ordinal": n + 1},
        }  # fmt: skip
        runs.append(event("agent.rl.trajectory.v1", key, at, run))
        rewards.append(event("agent.rl.reward.v1", str(reward["reward_id"]), at, reward))
    send(runs)
    send(rewards)


def event(subject: str, key: str, at: str, payload: dict[str, object]) -> BusEvent:
    """Return an event."""
    return BusEvent(id=derived_id(subject, key), subject=subject, time=at, data=json.dumps(payload).encode())


if __name__ == "__main__":
    report_costs()
    report(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
