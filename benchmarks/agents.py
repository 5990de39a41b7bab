"""Measure what two agents side by side cost beside one: whole pytest processes, in pairs.

    python benchmarks/agents.py [SCENARIOS] [PAIRS]

Both suites have the same scenarios, a check each, files of results, and Python agents that answer at once:
one has one agent, the other a list of two, with their comparison. Processes alternate; medians of the ratios.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

AGENTS = """
def small(context):
    return f"heard {context.prompt.user}"


def large(context):
    return f"heard {context.prompt.user}"
"""


class Cost(NamedTuple):
    """What a process took."""

    wall_s: float
    processor_s: float


def suite(folder: Path, actors: str, count: int) -> Path:
    """Write a project; returns its folder."""
    folder.mkdir()
    (folder / "mine.py").write_text(AGENTS)
    (folder / "pytest.ini").write_text(f"[pytest]\ntfgrpo_actor =\n{actors}tfgrpo_out = out\n")
    texts = [f"question {n} of all" for n in range(count)]
    (folder / "all.scenarios.jsonl").write_text(
        "".join(
            json.dumps(
                {
                    "id": f"q{n}",
                    "split": "eval",
                    "prompt": text,
                    "checks": [{"kind": "exact", "value": f"heard {text}"}],
                }
            )
            + "\n"
            for n, text in enumerate(texts)
        )
    )
    return folder


def run(folder: Path) -> Cost:
    """Run pytest in a folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_tfgrpo.plugin"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    """Print medians, and the ratios of each pair."""
    count, pairs = (int(arg) for arg in (*sys.argv[1:3], *("1000", "5")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as root:
        small, large = "    small = python:mine:small\n", "    large = python:mine:large\n"
        folders = [
            suite(Path(root, "one"), small, count),
            suite(Path(root, "two"), small + large, count),
        ]
        for folder in folders:  # bytecode, and the files of the disk
            run(folder)
        found = []
        for pair in range(pairs):
            order = folders if pair % 2 else folders[::-1]
            took = {folder: run(folder) for folder in order}
            found.append([took[folder] for folder in folders])
    for place, name in enumerate(Cost._fields):
        one, two = ([pair[side][place] for pair in found] for side in (0, 1))
        ratios = sorted(more / less for more, less in zip(two, one, strict=True))
        print(
            f"{name:12}  one agent {statistics.median(one):.2f}  two {statistics.median(two):.2f}  "
            f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
