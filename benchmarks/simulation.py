"""Measure what a run costs at a few calls at once; simulate 10,000 calls at once and 10 million rollouts.

    python benchmarks/simulation.py [--no-check] [--no-executors] [--memory-gb 16] [--large 20000]

Costs are measured at 32 and 64 calls at once, each run in a process of its own: processor time of a rollout
while the driver is never idle, what is added where it waits, commits, learning, report, resume, memory, and
what the journal and the disk take. The model in `driver_model.py` then forecasts a run of 1,000 and of 100
calls at once, which is carried out and compared, and the grid. Where other programs use the processors, the
driver waits for one: the comparison also has the forecast with the share of a processor that this run got.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from driver_model import Costs, RunCosts, forecast, limits, sweep
from driver_run import EACH, EPOCHS
from models import model_server

from pytest_tfgrpo.engine.run_writer import COMMIT_EVERY_S
from pytest_tfgrpo.runs.journal.journal import Journal

PROGRAM = Path(__file__).with_name("driver_run.py")
SMALL, LARGE = 2_000, 8_000
"""Scenarios of two runs, between which what a run takes is linear: groups beyond 2,000 leave memory."""
FEW, WIDE = 250, 512
"""Scenarios of the other runs, and calls at once of the one that shows what they take of memory."""
BUSY: dict[str, Any] = {"slots": 64, "latency_s": [0.001, 0.002]}
LIGHT: dict[str, Any] = {"slots": 32, "latency_s": [0.2, 0.4]}
WAITING: dict[str, Any] = {"slots": WIDE, "latency_s": [1.0, 2.0]}
TICK_S = 0.001
"""asyncio waits for timers, which the agents of the compared runs are, in whole milliseconds."""
AFTER = ("journal and files", "checks", "rewards")
COMPARED = ((1_000, 2_500, (0.5, 1.0)), (100, 500, (0.5, 1.0)))
"""Calls at once, scenarios, and latencies of the runs that forecasts are compared with."""
GRID = ((100, 10_000), (1_000, 100_000), (1_000, 1_000_000), (10_000, 1_000_000), (10_000, 10_000_000))
LATENCIES = {"model call, 0.5 to 1.5 s": (0.5, 1.5), "agent, 20 to 40 s": (20.0, 40.0)}
COLUMNS = (
    "calls at once",
    "rollouts",
    "wall time / ideal",
    "driver busy",
    "learning, report",
    "journal",
    "memory",
    "resume at the end",
    "bottleneck",
)
MOVES = {
    "agents": "more calls at once",
    "driver": "less processor time of a rollout, or suites in several runs; no executor: each costs it more",
    "disk": "a faster disk",
    "learning": "an optimizer that reads less",
    "report": "a report that reads less",
    "memory": "more memory, or suites in several runs",
}
EXECUTORS: Mapping[str, Mapping[str, str]] = {
    "local": {},
    "process:4": {"executor": "process:4"},
    "ray": {"executor": "ray"},
}


def carried_out(plan: dict[str, Any], folder: Path | None = None, **environ: str) -> dict[str, Any]:
    """Return what a run in a process of its own found; an empty dict if it was to be killed."""
    if folder is None:
        with tempfile.TemporaryDirectory() as name:
            return carried_out(plan, Path(name), **environ)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps(plan)],
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    if plan.get("kill_at") and done.returncode == -signal.SIGKILL:
        return {}
    if done.returncode:
        raise SystemExit(f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def between(earlier: Mapping[str, float], later: Mapping[str, float], key: str = "cpu_s") -> float:
    """Return the difference of two notes."""
    return later[key] - earlier[key]


def in_sweeps(found: Mapping[str, Any], key: str = "cpu_s") -> float:
    """Return the sum over the sweeps of a run."""
    return sum(between(a, b, key) for a, b in zip(found["starts"], found["ends"], strict=True))


def learning_s(found: Mapping[str, Any]) -> float:
    """Return processor time between the sweeps of a run."""
    return sum(between(a, b) for a, b in zip(found["ends"], found["starts"][1:], strict=False))


def line(small: float, large: float) -> tuple[float, float]:
    """Return value at no rollouts, and for each rollout, of the line through both sizes; never negative."""
    each = max(0.0, (large - small) / ((LARGE - SMALL) * EACH * EPOCHS))
    return max(0.0, small - each * SMALL * EACH * EPOCHS), each


def journal_costs(event_b: float) -> tuple[float, float]:
    """Return bytes a second that the journal makes durable, and commits' share of a processor."""
    event = {"answer": "x" * int(event_b)}

    async def measure(journal: Journal) -> tuple[float, float]:
        began = time.perf_counter()
        while time.perf_counter() - began < 2.0:
            for _ in range(100):
                journal.append("rollout", event)
            await journal.commit()
        rate = journal.path.stat().st_size / (time.perf_counter() - began)
        shares = []
        for _ in range(3):
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(100):
                journal.append("rollout", event)
                await asyncio.sleep(COMMIT_EVERY_S)
                await journal.commit()
            shares.append((time.process_time() - cpu) / (time.perf_counter() - wall))
        return rate, min(shares)

    with tempfile.TemporaryDirectory() as name:
        journal = Journal(Path(name) / "run" / "journal.jsonl")
        try:
            return asyncio.run(measure(journal))
        finally:
            journal.close()


def resume_s(start_s: float) -> float:
    """Return processor time for each rollout on file until a resumed run makes its next call."""
    on_file = SMALL * EACH * 3 // 2
    with tempfile.TemporaryDirectory() as name:
        plan = {**BUSY, "scenarios": SMALL}
        assert not carried_out({**plan, "kill_at": on_file}, Path(name)), "it was to be killed"
        found = carried_out({**plan, "resume": "latest"}, Path(name))
    return max(0.0, between(found["began"], found["first"]) - start_s) / on_file


def around(found: Mapping[str, Any]) -> dict[str, float]:
    """Return processor time of a run before its first call and after its last, and its memory."""
    return {
        "start": between(found["began"], found["first"]),
        "end": between(found["ends"][-1], found["over"]),
        "memory": found["over"]["peak_b"],
    }


def measured() -> tuple[RunCosts, dict[str, float], dict[str, float]]:
    """Return costs, the shares of the driver's work, and bytes a rollout in each file."""
    small, large = (carried_out({**BUSY, "scenarios": n}) for n in (SMALL, LARGE))
    light = carried_out({**LIGHT, "scenarios": FEW, "epochs": 1})
    narrow, wide = (carried_out({**waiting, "scenarios": FEW, "epochs": 1}) for waiting in (BUSY, WAITING))
    shares = carried_out({**BUSY, "scenarios": FEW, "profile": True})["shares"]
    sizes = {name: line(small["sizes"].get(name, 0), large["sizes"][name])[1] for name in large["sizes"]}
    disk_bps, busy_share = journal_costs(sizes["journal.jsonl"])
    rollout_s = in_sweeps(large) / (LARGE * EACH * EPOCHS)
    after_s = rollout_s * sum(shares.get(part, 0.0) for part in AFTER)
    waking_s = (in_sweeps(light) - busy_share * in_sweeps(light, "wall_s")) / (FEW * EACH) - rollout_s
    at_small, at_large = around(small), around(large)
    costs = RunCosts(
        sweep=Costs(
            turn_s=rollout_s - after_s,
            after_s=after_s,
            wake_s=max(0.0, waking_s),
            busy_share=busy_share,
            journal_b=sizes["journal.jsonl"],
            disk_bps=disk_bps,
        ),
        start_s=line(at_small["start"], at_large["start"]),
        learn_s=learning_s(large) / (LARGE * EACH * (EPOCHS - 1)),
        end_s=line(at_small["end"], at_large["end"]),
        resume_s=resume_s(at_small["start"]),
        memory_b=line(at_small["memory"], at_large["memory"]),
        slot_b=max(0.0, between(narrow["ends"][0], wide["ends"][0], "peak_b")) / (WIDE - 64),
    )
    return costs, shares, sizes


def print_costs(costs: RunCosts, shares: Mapping[str, float], sizes: Mapping[str, float]) -> None:
    """Print what was measured."""
    driver = costs.sweep
    print("processor time of the driver, 64 calls at once, its agent in this process")
    print(f"  a rollout while the driver is never idle  {driver.rollout_s * 1e3:.3f} ms, of which")
    for part, share in shares.items():
        print(f"    {part:20} {driver.rollout_s * share * 1e3:.3f} ms")
    print(f"  more where the driver waits for a call    {driver.wake_s * 1e3:.3f} ms")
    print(f"  commits                                   {driver.busy_share:.1%} of a processor")
    print(f"  start                                     {costs.start_s[1] * 1e3:.3f} ms a rollout")
    print(f"  learning                                  {costs.learn_s * 1e3:.3f} ms a rollout")
    print(f"  report and page                           {costs.end_s[1] * 1e3:.3f} ms a rollout")
    print(f"  resume, a rollout on file                 {costs.resume_s * 1e3:.3f} ms")
    print(f"memory: {costs.memory_b[0] / 1e6:.0f} MB, {costs.memory_b[1]:,.0f} B a rollout, ", end="")
    print(f"{costs.slot_b / 1e3:.1f} kB a call in flight")
    files = ", ".join(f"{name} {size:,.0f}" for name, size in sizes.items() if size >= 1)
    print(f"files, bytes a rollout: {files}")
    print(f"journal: {driver.disk_bps / 1e6:.0f} MB/s with an fsync for each 100 events", flush=True)


def check(costs: RunCosts, slots: int, scenarios: int, latency_s: tuple[float, float]) -> None:
    """Carry out a run and print it beside its forecast."""
    found = carried_out({"slots": slots, "scenarios": scenarios, "latency_s": latency_s})
    each = scenarios * EACH
    wall_s, cpu_s, waited_s = (in_sweeps(found, key) for key in ("wall_s", "cpu_s", "waited_s"))
    got = cpu_s / (cpu_s + waited_s)
    driver = replace(costs.sweep, tick_s=TICK_S)
    shared = replace(
        driver, turn_s=driver.turn_s / got, after_s=driver.after_s / got, wake_s=driver.wake_s / got
    )
    alone, beside = (sweep(one, slots, each, latency_s) for one in (driver, shared))
    whole = forecast(replace(costs, sweep=driver), slots, each * EPOCHS, latency_s)
    rows = (
        ("wall time of the sweeps, s", EPOCHS * alone.wall_s, wall_s),
        (f"  with {got:.0%} of a processor, s", EPOCHS * beside.wall_s, wall_s),
        ("processor time of the sweeps, s", EPOCHS * alone.driver_s, cpu_s),
        ("journal, MB", whole.journal_b / 1e6, found["sizes"]["journal.jsonl"] / 1e6),
        ("memory, MB", whole.memory_b / 1e6, found["over"]["peak_b"] / 1e6),
        ("learning, s of processor time", whole.parts_s["learning"] * (1 - 1 / EPOCHS), learning_s(found)),
        ("report and page, s of processor time", whole.parts_s["report"], around(found)["end"]),
    )
    print(
        f"\n{slots:,} calls at once, {each * EPOCHS:,} rollouts of {latency_s[0]:g} to {latency_s[1]:g} s, "
        f"ideal {whole.parts_s['agents']:.1f} s"
    )
    print(f"  {'':38}{'forecast':>10}{'measured':>10}{'error':>8}")
    for words, expected, real in rows:
        print(f"  {words:38}{expected:>10.1f}{real:>10.1f}{expected / real - 1:>+8.1%}")
    sys.stdout.flush()


def executors(scenarios: int) -> None:
    """Print what a rollout costs the driver that does not call the agent itself."""
    print("\nprocessor time of the driver for a rollout, by executor and agent")
    plan = {"slots": 32, "scenarios": scenarios, "epochs": 1}
    for name, settings in EXECUTORS.items():
        own = {**plan, "actor": "python:waiting_agent:solve", "settings": settings}
        print_executor(f"{name}, python:", carried_out(own, RAY_ADDRESS="local"))
    with model_server("3") as environ:
        print_executor(
            "local, openai:",
            carried_out(
                {**plan, "slots": 512, "scenarios": scenarios * 4, "actor": "openai:bench"}, **environ
            ),
        )


def print_executor(name: str, found: Mapping[str, Any]) -> None:
    """Print one of them."""
    first, last = found["notes"]
    rollouts = found["rollouts"] * 3 // 4
    used_s = between(first, last) / rollouts
    rate = rollouts / between(first, last, "wall_s")
    print(f"  {name:20} {used_s * 1e3:.3f} ms, at {rate:,.0f} rollouts/s here", flush=True)


def in_words(seconds: float) -> str:
    """Return a duration with two figures or so."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def grid(costs: RunCosts, memory_gb: float) -> None:
    """Print what runs of all sizes are going to take."""
    seen = set[str]()
    for words, latency_s in LATENCIES.items():
        allowed = limits(costs.sweep, 1, latency_s)
        print(f"\n{words}: a driver serves {allowed['driver'] / allowed['agents']:,.0f} calls at once;")
        print(f"limits, rollouts/s: driver {allowed['driver']:,.0f}, disk {allowed['disk']:,.0f}")
        print(f"| {' | '.join(COLUMNS)} |")
        print("| --- " * len(COLUMNS) + "|")
        for slots, rollouts in GRID:
            made = forecast(costs, slots, rollouts, latency_s, memory_b=memory_gb * 1e9)
            print(
                f"| {slots:,} | {rollouts:,} | {in_words(made.wall_s)} / {in_words(made.parts_s['agents'])} "
                f"| {made.driver_share:.0%} | {in_words(made.parts_s['learning'] + made.parts_s['report'])} "
                f"| {made.journal_b / 1e9:.2g} GB | {made.memory_b / 1e9:.2g} GB "
                f"| {in_words(made.resume_s)} | {made.bottleneck} |",
                flush=True,
            )
            seen.add(made.bottleneck)
    for part in sorted(seen):
        print(f"{part}: moved by {MOVES[part]}")


def main() -> None:
    """Measure, check, simulate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-check", dest="check", action="store_false")
    parser.add_argument("--no-executors", dest="executors", action="store_false")
    parser.add_argument("--memory-gb", type=float, default=16.0, help="memory of the machine of the grid")
    parser.add_argument("--large", type=int, help="scenarios of one more run to compare with, by 64 calls")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}", flush=True)
    costs, shares, sizes = measured()
    print_costs(costs, shares, sizes)
    if options.check:
        for slots, scenarios, latency_s in COMPARED:
            check(costs, slots, scenarios, latency_s)
    if options.large:
        check(costs, BUSY["slots"], options.large, tuple(BUSY["latency_s"]))
    if options.executors:
        executors(300)
    grid(costs, options.memory_gb)


if __name__ == "__main__":
    main()
