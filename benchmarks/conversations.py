"""Measure what conversations cost beside as many questions: processor time of whole pytest processes.

    python benchmarks/conversations.py [CONVERSATIONS] [PAIRS]

Each pair runs CONVERSATIONS scenarios of ten turns, and ten times as many of one question, in changing order,
with the same Python agent and a check of each answer. What one question takes is subtracted from both.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TURNS = 10
AGENT = """
def answer(context):
    return f"heard {context.session.message}"
"""


def check(text: str) -> list[dict[str, str]]:
    return [{"kind": "exact", "value": f"heard {text}"}]


def questions(count: int) -> list[dict[str, object]]:
    texts = [f"question {n} of all" for n in range(count)]
    return [
        {"id": f"q{n}", "split": "eval", "prompt": text, "checks": check(text)}
        for n, text in enumerate(texts)
    ]


def conversations(count: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for n in range(count):
        texts = [f"question {n * TURNS + turn} of all" for turn in range(TURNS)]
        turns = [{"user": text, "checks": check(text)} for text in texts]
        found.append({"id": f"c{n}", "split": "eval", "turns": turns})
    return found


def suite(folder: Path, scenarios: list[dict[str, object]]) -> Path:
    """Write a project; returns its folder."""
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    (folder / "pytest.ini").write_text("[pytest]\ntfgrpo_actor = python:agent:answer\ntfgrpo_out = out\n")
    lines = "".join(json.dumps(scenario) + "\n" for scenario in scenarios)
    (folder / "all.scenarios.jsonl").write_text(lines)
    return folder


def processor_s(folder: Path) -> float:
    """Return the processor time of one run of a project."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tfgrpo"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the ratio of each pair, and their median."""
    count, pairs = (int(arg) for arg in (*sys.argv[1:3], *("200", "5")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as root:
        one = suite(Path(root, "one"), questions(1))
        asked = suite(Path(root, "questions"), questions(count * TURNS))
        talked = suite(Path(root, "talks"), conversations(count))
        for folder in (one, asked, talked):
            processor_s(folder)
        ratios = []
        for pair in range(pairs):
            order = (asked, talked) if pair % 2 else (talked, asked)
            took = {folder: processor_s(folder) for folder in (one, *order)}
            ratios.append((took[talked] - took[one]) / (took[asked] - took[one]))
            print(
                f"{count * TURNS} questions {took[asked]:.2f} s, {count} conversations of {TURNS} turns "
                f"{took[talked]:.2f} s, one question {took[one]:.2f} s: {ratios[-1]:.2f}"
            )
    print(f"median {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
