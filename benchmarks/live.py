"""Measure live RL: what an event costs the agent, how fast spans become durable, and what an update reads.

    python benchmarks/live.py [--quick]

Each figure stands beside its peer in the same run: a bare ``queue.put_nowait``, a bare ``executemany`` of
equal rows in equal batches, the same question to a hundredth of the store. Then ``live_selection.py``
measures selection and guard.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import queue
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest_tfgrpo
from pytest_tfgrpo.production.live.records import (
    GateState,
    LiveEvent,
    LiveRollout,
    LiveRules,
    LiveUpdate,
    RewardBreakdown,
    RunTrace,
)
from pytest_tfgrpo.production.live.session import Live, LiveRun
from pytest_tfgrpo.production.live.store.store import LiveStore, open_live_store

RATE = 10_000
"""Events in a second on the agent's thread."""
SPANS = 20
"""Of a run, its decision included."""
LONG = 100
"""Of a long run, such as a coding agent's."""
BATCHES = (200, 1000)
"""Events of a commit: what such an agent reports in 20 ms, and the most that the collector puts into one."""
CONFIG = """
[points.config]
default = "bare"
[points.config.arms.bare]
[points.config.arms.learned]
temperature = 0.7
[points.config.arms.misled]
temperature = 0.1
"""
CHOICE = {
    "point": "config",
    "place": 0,
    "arm": "learned",
    "arms": {"bare": "a" * 64, "learned": "b" * 64, "misled": "c" * 64},
    "probabilities": {"bare": 0.25, "learned": 0.5, "misled": 0.25},
    "selector": 0,
    "control": False,
}


def infer(trace: RunTrace) -> RewardBreakdown:
    """Return a reward like those of `trace_v2`, which are measured elsewhere."""
    components = {"completion": 0.5, "reliability": -0.25 * min(trace.tool_errors, 2), "efficiency": 0.25}
    return RewardBreakdown(
        strategy="trace", composite=0.5, components=components, confidence=1.0, hard_gate=False
    )


def use_all(rollouts: Sequence[LiveRollout], number: int, document: object) -> tuple[LiveUpdate, object]:
    """Return an update that uses what it is given, and learns nothing."""
    used = tuple(rollout.id for rollout in rollouts)
    report = LiveUpdate(
        number=0,
        at=0.0,
        executed=True,
        reason="",
        algorithm="ppo",
        strategy="trace",
        selector_before=number,
        selector_after=number,
        trajectories=len(used),
        samples=len(used),
        metrics={},
        probabilities_before={},
        probabilities_after={},
        left_out={},
        used=used,
    )
    return report, document


RULES = LiveRules(
    infer=infer,
    ended=lambda state, _: replace(state, blocked=(*state.blocked, False)[-32:]),
    rewarded=lambda state, _: state,
    failed=lambda _state, error, _now: GateState(state="hold", last_error=error),
    succeeded=lambda state: state,
    update=use_all,
)


def events_of(run: int, spans: int) -> Iterator[LiveEvent]:
    """Yield the events of a run: one choice, then turns with a call of a tool each, of which one fails."""
    key, owner = f"ticket-{run}", f"{run:016x}"
    at = 1.7e9 + run
    start = {"category": f"domain-{run % 8}", "prompt": "Where is my order?", "selector": 0, "control": False}
    yield LiveEvent("start", key, owner, 1, 0, at, start)
    yield LiveEvent("choice", key, owner, 1, 1, at, CHOICE)
    for seq in range(2, spans):
        if seq % 2:
            error = "TimeoutError" if seq == 5 else None
            yield LiveEvent("tool", key, owner, 1, seq, at + seq, {"name": "search", "error": error})
        else:
            yield LiveEvent("turn", key, owner, 1, seq, at + seq, {})
    end = {
        "status": "succeeded",
        "reason": "",
        "reply": "It comes today",
        "prompt_chars": 18,
        "reply_chars": 14,
    }
    yield LiveEvent("end", key, owner, 1, spans, at + spans, {**end, "completed": True, "latency_ms": 812.5})


def batches(runs: int, size: int, first: int = 0, spans: int = SPANS) -> Iterator[list[LiveEvent]]:
    """Yield the events of runs, of which 16 are open at a time, in batches."""
    batch: list[LiveEvent] = []
    for start in range(first, first + runs, 16):
        open_runs = [list(events_of(run, spans)) for run in range(start, min(start + 16, first + runs))]
        for together in zip(*open_runs, strict=True):
            batch += together
            while len(batch) >= size:
                yield batch[:size]
                batch = batch[size:]
    if batch:
        yield batch


def paced(calls: Iterator[Callable[[], object]], seconds: float) -> list[float]:
    """Return the microseconds of each call, made at the rate of the agent."""
    taken = []
    start = time.perf_counter()
    for n in range(int(RATE * seconds)):
        while time.perf_counter() < start + n / RATE:
            time.sleep(0)
        call = next(calls)
        before = time.perf_counter_ns()
        call()
        taken.append((time.perf_counter_ns() - before) / 1000)
    return taken


def reports(live: Live) -> Iterator[Callable[[], object]]:
    """Yield the calls of an application that serves runs one after the other, each of 20 spans."""
    for n in itertools.count():
        opened: list[LiveRun] = []

        def start(name: str = f"ticket-{n}", into: list[LiveRun] = opened) -> None:
            into.append(live.run(name, category="billing", prompt="Where is my order?"))

        yield start
        run = opened[0]
        yield partial(run.choose, "config")
        for call in range(SPANS // 2 - 1):
            yield run.turn
            yield partial(run.tool, "search", TimeoutError("no answer") if call == 5 else None)
        yield partial(run.end, "It comes today", 0.5 + n % 2 / 2)


def agent_side(seconds: float, folder: Path) -> None:
    """Print what an event costs the thread that reports it, while the writer writes and learns."""
    bare: queue.Queue[object] = queue.Queue(RATE)

    def drain() -> None:
        while bare.get() is not None:
            pass

    thread = threading.Thread(target=drain)
    thread.start()
    peer = paced(itertools.repeat(partial(bare.put_nowait, CHOICE)), seconds)
    bare.put(None)
    thread.join()
    (folder / "live.toml").write_text(CONFIG)
    live = pytest_tfgrpo.open_live(folder / "live.toml", enabled=True, inference="outcome_v1")
    ours = paced(reports(live), seconds)
    assert live.flush(60)
    status = live.status()
    assert not status["refused"], status
    live.close()
    print(f"an event on the agent's thread, {RATE:,}/s{'median us':>14}{'p99 us':>10}")
    for name, taken in (("bare queue.put_nowait", peer), ("a call of the run", ours)):
        median, p99 = statistics.median(taken), statistics.quantiles(taken, n=100)[98]
        print(f"  {name:<38}{median:>14.2f}{p99:>10.1f}")
    print(f"  {'ratio of medians (bar 5)':<38}{statistics.median(ours) / statistics.median(peer):>14.2f}")
    ended, learned = status["rollouts"]["succeeded"], status["updates"]["executed"]
    print(f"  meanwhile {ended:,} runs became durable, none lost, and {learned:,} updates learned")


def bare_store(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(
        "CREATE TABLE spans (rollout INTEGER, seq INTEGER, attempt INTEGER, name TEXT, at REAL, flag INTEGER,"
        " data TEXT, PRIMARY KEY (rollout, seq)) WITHOUT ROWID"
    )
    return db


def insert_all(db: sqlite3.Connection, parts: Sequence[Sequence[tuple[Any, ...]]]) -> None:
    for rows in parts:
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO spans VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        db.execute("COMMIT")


def durable(runs: int, spans: int, rounds: int, folder: Path) -> None:
    """Print how many spans a second become durable; the two take turns, as the speed of a disk varies.

    The bare table gets equal rows in equal batches; the store also writes rollouts, attempts and rewards.
    """
    print(f"durable spans, {runs:,} runs of {spans:<3}{'ours/s':>17}{'bare/s':>12}{'ratio':>8}  (bar 0.5)")
    for size in BATCHES:
        made = list(batches(runs, size, spans=spans))
        ours, bare = [], []
        for n in range(rounds):
            path = folder / f"ours-{spans}-{size}-{n}.db"
            store = open_live_store(path, "bench")
            seconds = timed(partial(write_all, store, made))
            assert store.counts()["succeeded"] == runs
            store.close()
            with closing(sqlite3.connect(path)) as db:
                rows = db.execute("SELECT * FROM spans ORDER BY at, rollout").fetchall()
            parts = [rows[at : at + size] for at in range(0, len(rows), size)]
            with closing(bare_store(folder / f"bare-{spans}-{size}-{n}.db")) as peer:
                bare.append(len(rows) / timed(partial(insert_all, peer, parts)))
            ours.append(len(rows) / seconds)
        ratio = statistics.median(a / b for a, b in zip(ours, bare, strict=True))
        middle = [statistics.median(speeds) for speeds in (ours, bare)]
        print(f"  batches of {size:<21,}{middle[0]:>16,.0f}{middle[1]:>12,.0f}{ratio:>8.2f}")


def write_all(store: LiveStore, made: Sequence[Sequence[LiveEvent]]) -> None:
    for batch in made:
        store.write(batch, rules=RULES, now=1.7e9)


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    gc.collect()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def growth(sizes: Sequence[int], folder: Path) -> None:
    """Print how long the next update's rollouts take at each size; all but the last 64 runs are used."""
    print(f"the next update's 64 rollouts{'median ms':>20}")
    medians = []
    for spans in sizes:
        store = open_live_store(folder / f"grown-{spans}.db", "bench")
        runs = spans // SPANS
        for batch in batches(runs - 64, 20_000):
            store.write(batch, rules=RULES, now=1.7e9)
        while store.update(use_all, limit=1000, outcome_wait_s=0.0, now=1.7e9, due=1) is not None:
            pass
        for batch in batches(64, 20_000, first=runs):
            store.write(batch, rules=RULES, now=1.7e9)
        read = partial(store.next_rollouts, limit=64)
        assert len(read()) == 64
        medians.append(statistics.median(timed(read) for _ in range(31)) * 1000)
        store.close()
        print(f"  at {spans:>9,} spans{medians[-1]:>33.2f}")
    print(f"  ratio (bar 5){medians[-1] / medians[0]:>35.2f}")


def main() -> None:
    """Run all parts, and those of live_selection.py."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    options = parser.parse_args()
    part = 10 if options.quick else 1
    with tempfile.TemporaryDirectory() as folder:
        agent_side(10 / part, Path(folder))
        for spans in (SPANS, LONG):
            durable(20_000 // spans, spans, 3 if options.quick else 9, Path(folder))
        growth((10_000, 1_000_000 // part), Path(folder))
    few = ["--seeds", "2", "--streams", "100"] if options.quick else []
    script = Path(__file__).with_name("live_selection.py")
    raise SystemExit(subprocess.run([sys.executable, script, *few], check=False).returncode)


if __name__ == "__main__":
    main()
