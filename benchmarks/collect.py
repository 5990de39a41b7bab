"""Collect 10,000 scenarios from one JSONL file in plain mode, against an empty suite and 10,000 plain tests.

python benchmarks/collect.py [ROUNDS]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCENARIOS = 10_000
PYTEST = [sys.executable, "-m", "pytest", "-p", "tfgrpo", "-p", "no:cacheprovider", "--collect-only", "-qq"]


def write_suites(folder: Path) -> dict[str, Path]:
    """Write the suites; returns their folders by name."""
    suites = {name: folder / name for name in ("empty", "scenarios", "tests")}
    for place in suites.values():
        place.mkdir()
        (place / "pytest.ini").write_text("[pytest]\ntfgrpo_actor = offline\n")
    with (suites["scenarios"] / "many.scenarios.jsonl").open("w") as file:
        for n in range(SCENARIOS):
            checks = [{"kind": "number", "value": n}, {"kind": "regex", "pattern": r"^\d+$", "weight": 0.5}]
            scenario = {
                "id": f"s{n}",
                "domain": f"d{n % 7}",
                "split": "eval",
                "prompt": f"Say {n}.",
                "checks": checks,
            }
            file.write(json.dumps(scenario) + "\n")
    (suites["tests"] / "test_many.py").write_text(
        f"import pytest\n@pytest.mark.parametrize('n', range({SCENARIOS}))\ndef test_many(n): pass\n"
    )
    return suites


def collect_s(folder: Path, expected: int) -> float:
    """Return the seconds that collecting the suite in `folder` takes; exit code `expected` is right."""
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": ""}
    began = time.perf_counter()
    done = subprocess.run(PYTEST, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - began
    assert done.returncode == expected, done.stdout[-2000:]
    return wall_s


def main(rounds: int) -> None:
    """Print medians and what is above an empty suite."""
    with tempfile.TemporaryDirectory() as name:
        suites = write_suites(Path(name))
        expected = {"empty": 5, "scenarios": 0, "tests": 0}
        times: dict[str, list[float]] = {suite: [] for suite in suites}
        for _ in range(rounds):
            for suite, folder in suites.items():
                times[suite].append(collect_s(folder, expected[suite]))
    median = {suite: statistics.median(values) for suite, values in times.items()}
    extra, peer = median["scenarios"] - median["empty"], median["tests"] - median["empty"]
    print(f"empty suite            {median['empty']:6.2f} s")
    print(f"{SCENARIOS:,} scenarios       {extra:+6.2f} s   bar: <= 2 s")
    print(f"{SCENARIOS:,} plain tests     {peer:+6.2f} s   {extra / peer:.1f}x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
