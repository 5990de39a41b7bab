"""Measure what the live line takes of a run's processor time.

    python benchmarks/live_line.py

Runs pytest on a terminal of 80 columns over suites of a fast, a usual and a slow agent, and adds up the
thread time of counting in the engine, reading and drawing. The probe's own clock is in it.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PROBE = """
import atexit, json, time

spent = {"drawn": 0, "s": 0.0}


def watch(owner, name):
    real = getattr(owner, name)

    def timed(*args, **kwargs):
        began = time.thread_time()
        try:
            return real(*args, **kwargs)
        finally:
            spent["s"] += time.thread_time() - began

    setattr(owner, name, timed)


def pytest_collection_modifyitems():
    from pytest_tfgrpo.engine.gauge import Gauge
    from pytest_tfgrpo.plugin.progress.progress import Progress
    from pytest_tfgrpo.plugin.progress.screen import DrawnScreen

    for name in ("attempt", "end", "finish", "score", "pay"):
        watch(Gauge, name)
    watch(Progress, "tick")
    draw = DrawnScreen.show

    def show(*args):
        spent["drawn"] += 1
        return draw(*args)

    DrawnScreen.show = show
    atexit.register(report)


def report():
    with open("probe.json", "w") as file:
        json.dump({**spent, "process_s": time.process_time()}, file)
"""
AGENT = "import asyncio\nasync def solve(context):\n    await asyncio.sleep({})\n    return '3'\n"
CHECK = {"kind": "exact", "value": "3"}
CASES = ((1000, 0.1, 64), (200, 1.0, 16), (8, 30.0, 8))
"""Scenarios, seconds of a call, and calls in flight."""


def write(root: Path, scenarios: int, call_s: float, concurrency: int) -> None:
    """Write a suite and its agent."""
    suite = [
        {"id": f"s{n}", "split": "eval", "prompt": f"What is {n} - {n} + 3 (task {n})?", "checks": [CHECK]}
        for n in range(scenarios)
    ]
    (root / "suite.scenario.json").write_text(json.dumps(suite))
    (root / "agent.py").write_text(AGENT.format(call_s))
    (root / "probe.py").write_text(PROBE)
    settings = f"tfgrpo_actor = python:agent:solve\ntfgrpo_concurrency = {concurrency}\n"
    (root / "pytest.ini").write_text(f"[pytest]\n{settings}")


def run(root: Path) -> dict[str, float]:
    """Run the suite on a terminal; returns what the probe found."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pytest", "-p", "pytest_tfgrpo.plugin", "-p", "probe"]
    environ = os.environ | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "TERM": "xterm",
        "COLUMNS": "80",
    }
    process = subprocess.Popen(command, cwd=root, stdout=theirs, stderr=subprocess.DEVNULL, env=environ)
    os.close(theirs)
    reader = threading.Thread(target=drain, args=(ours,))
    reader.start()
    assert process.wait() == 0
    reader.join()
    found: dict[str, float] = json.loads((root / "probe.json").read_text())
    return found


def drain(source: int) -> None:
    """Read a terminal until nobody writes to it any more."""
    try:
        while os.read(source, 65536):
            pass
    except OSError:  # Linux's way to say so
        os.close(source)


def main() -> None:
    """Print a row for each case."""
    print("scenarios  call s  in flight  drawn  of processor time")
    for scenarios, call_s, concurrency in CASES:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), scenarios, call_s, concurrency)
            found = run(Path(folder))
        share = found["s"] / found["process_s"]
        print(f"{scenarios:9}  {call_s:6}  {concurrency:9}  {found['drawn']:5.0f}  {share:17.2%}")


if __name__ == "__main__":
    main()
