"""Long runs on one machine: memory, processor time, resume and page of 2,000 and of 20,000 scenarios.

    python benchmarks/long_runs.py [--scenarios 2000 20000] [--epochs 3] [--dev] [--pytest] [--no-resume]
    python benchmarks/long_runs.py --scenarios 100000          # the whole bar, an hour or more

Each run is a process of its own: all scenarios train in each epoch, four rollouts of each, by an agent in the
process that answers at once; 100 eval scenarios frame it. With ``--dev`` a fifth of the scenarios is the dev
split, as by default, and decides after each epoch which lessons stay; else no lesson is tried. With
``--pytest`` pytest runs the suite, else `pytest_tfgrpo.run`. Measured at each tenth of the rollouts: resident
memory, its peak so far, and processor time of the process. Then the run is made once more, killed without a
word at 90 % of its rollouts, and resumed: the processor time of both over that of the whole run is what the
kill cost.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EACH, EVAL, TENTHS = 4, 100, 10
DEV, DEV_ROLLOUTS = 5, 2000
"""Of so many scenarios one is of the dev split; rollouts of a dev sweep of 250 scenarios or more."""
PLUGINS = ("-p", "no:cacheprovider", "-p", "tfgrpo")
"""Of those that are installed, only ours."""
SETTINGS = {"group_size": EACH, "dev_share": 0, "eval_mode": "separate", "task_id": "long", "out": "out"}


def rss_mb() -> tuple[float, float]:
    """Return resident memory of this process and its peak so far."""
    found = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines())
    now, peak = (int(found[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))
    return now, peak


def write_suite(folder: Path, scenarios: int, *, dev: bool = False) -> None:
    """Write so many scenarios to learn from and a few for eval."""
    learn = ["train"] * (DEV - 1) + ["dev" if dev else "train"]
    with (folder / "long.scenarios.jsonl").open("w") as file:
        for n in range(scenarios + EVAL):
            scenario = {
                "id": f"s{n}",
                "domain": f"d{n % 7}",
                "split": learn[n % DEV] if n < scenarios else "eval",
                "prompt": f"How many words has the letter number {n}, without its date and its signature?",
                "checks": [{"kind": "exact", "value": "3"}, {"kind": "regex", "pattern": r"^\d+$"}],
            }
            file.write(json.dumps(scenario) + "\n")


class Agent:
    """Answers at once, right on a share of the seeds; notes memory and processor time at each tenth."""

    name, identity, paid = "synthetic", {"name": "synthetic"}, False

    def __init__(self, frames: int, planned: int, kill_at: int = 0) -> None:
        """Each answer reports `frames` tool calls; the process ends without a word at call `kill_at`."""
        from pytest_tfgrpo.core.records import Frame

        self._frames = tuple(
            Frame(kind="tool", name=f"count_{n}", input={"text": "x" * 80}, output="y" * 80, tokens=20)
            for n in range(frames)
        )
        self._step, self._kill_at, self._calls = planned // TENTHS, kill_at, 0
        self.notes: list[tuple[float, float, float]] = []
        """At the first call, then at each tenth."""

    async def __call__(self, call: Any) -> Any:
        """Return the answer."""
        from pytest_tfgrpo.core.records import Trajectory

        self._calls += 1
        if self._calls == 1:
            self.notes.append((time.process_time(), *rss_mb()))
        if self._calls == self._kill_at:
            print(json.dumps({"killed_s": time.process_time()}), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if self._calls % self._step == 0:
            self.notes.append((time.process_time(), *rss_mb()))
        return Trajectory(answer="3" if call.seed % 5 else "no idea", frames=self._frames)

    def bound(self, _rollouts: int) -> None:
        """Say that nothing is known of what a call costs at most."""

    async def aclose(self) -> None:
        """Hold nothing."""


def planned(options: argparse.Namespace, scenarios: int) -> int:
    """Return how many rollouts train, and decide on what was learned."""
    if not options.dev:
        return EACH * scenarios * options.epochs
    return (EACH * (scenarios - scenarios // DEV) + DEV_ROLLOUTS) * options.epochs


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of a run."""
    return {**SETTINGS, "epochs": options.epochs, "sample_size": options.one}


def one_run(options: argparse.Namespace) -> None:
    """Carry out one run in this folder, and print what was measured."""
    rollouts = planned(options, options.one)
    agent = Agent(options.frames, rollouts, options.kill_at)
    if options.pytest:
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        import pytest

        class Plugin:
            def pytest_tfgrpo_actor(self) -> Agent:
                return agent

        named = {"actor": agent.name, **settings(options)}
        given = [f"--tfgrpo-{key.replace('_', '-')}={value}" for key, value in named.items()]
        resume = [f"--tfgrpo-resume={options.resume}"] if options.resume else []
        code = pytest.main(["-q", *PLUGINS, "--tfgrpo", *given, *resume], plugins=[Plugin()])
        assert code == pytest.ExitCode.OK, code
    else:
        import pytest_tfgrpo

        result = pytest_tfgrpo.run(".", actor=agent, resume=options.resume, **settings(options))
        assert result.run.status == "complete", result.run.reason
    ended = time.process_time()
    found = {"notes": agent.notes, "ended": (ended, *rss_mb()), "rollouts": rollouts}
    print("\n" + json.dumps(found))


def started(folder: Path, options: argparse.Namespace, scenarios: int, *more: str) -> dict[str, Any]:
    """Return what a run in a process of its own printed last."""
    words = [f"--one={scenarios}", f"--epochs={options.epochs}", f"--frames={options.frames}", *more]
    words += ["--pytest"] if options.pytest else []
    words += ["--dev"] if options.dev else []
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), *words],
        cwd=folder,
        env={**os.environ, "MALLOC_ARENA_MAX": "2"} if options.arenas else None,
        capture_output=True,
        text=True,
        check=False,
        timeout=options.limit_s,
    )
    if done.returncode not in (0, -signal.SIGKILL):
        raise SystemExit(f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(options: argparse.Namespace, scenarios: int) -> None:
    """Print what a run of so many scenarios takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder, scenarios, dev=options.dev)
        found = started(folder, options, scenarios)
        notes, ended, rollouts = found["notes"], found["ended"], found["rollouts"]
        took = [later[0] - earlier[0] for earlier, later in itertools.pairwise(notes)]
        print(
            f"\n{scenarios:,} scenarios x {EACH} rollouts x {options.epochs} epochs"
            f"{', every fifth on the dev split' * options.dev}: {rollouts:,} rollouts"
        )
        print("tenth           " + "".join(f"{n:>8}" for n in ["start", *range(1, TENTHS + 1), "end"]))
        for row, words in ((1, "memory, MB"), (2, "peak, MB  ")):
            print(f"{words:16}" + "".join(f"{note[row]:>8.0f}" for note in [*notes, ended]))
        after = ended[0] - notes[-1][0]
        print("ms a rollout    " + " " * 8 + "".join(f"{1000 * s / (rollouts / TENTHS):>8.3f}" for s in took))
        print(
            f"memory, the last tenth of the first: {notes[-1][1] / notes[1][1]:.2f}; peak {ended[2]:.0f} MB"
        )
        print(f"processor time, the last tenth of the first: {took[-1] / took[0]:.2f}")
        print(
            f"the whole process: {1000 * ended[0] / rollouts:.3f} ms a rollout; before the first call "
            f"{notes[0][0]:.1f} s, after the last {after:.1f} s"
        )
        run = next((folder / "out" / "long" / "runs").iterdir())
        sizes = {path.name: path.stat().st_size / 1e6 for path in sorted(run.iterdir())}
        print("files, MB: " + ", ".join(f"{name} {size:.1f}" for name, size in sizes.items()))
    if options.resume_too:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_suite(folder, scenarios, dev=options.dev)
            killed = started(folder, options, scenarios, f"--kill-at={rollouts * 9 // 10}")["killed_s"]
            resumed = started(folder, options, scenarios, "--resume=latest")
            cost = (killed + resumed["ended"][0]) / ended[0] - 1
            print(
                f"killed at 90 % and resumed: {cost:+.1%} of the run's processor time; the resumed process "
                f"{resumed['ended'][0]:.1f} s, peak {resumed['ended'][2]:.0f} MB"
            )


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenarios", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--frames", type=int, default=0, help="tool calls that each rollout reports")
    parser.add_argument("--pytest", action="store_true", help="under pytest, else pytest_tfgrpo.run")
    parser.add_argument("--no-resume", dest="resume_too", action="store_false")
    parser.add_argument(
        "--dev", action="store_true", help="with a dev split, on which lessons are accepted, as by default"
    )
    parser.add_argument("--arenas", action="store_true", help="with two arenas of malloc")
    parser.add_argument("--limit-s", type=float, default=3600.0, help="time limit of each process")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--kill-at", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--resume", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        one_run(options)
        return
    for scenarios in options.scenarios:
        measure(options, scenarios)


if __name__ == "__main__":
    main()
