"""Measure what marked tests with fixtures cost beside plain tests with the same fixtures.

    python benchmarks/fixture_tests.py [pairs]

Each of 200 tests has a database of its own (SQLite in tmp_path), a mail server of the module, and an agent
made of both. The plain test calls the agent itself. Processes alternate; medians of the ratios of each pair.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TESTS = 200
FIXTURES = """
import sqlite3
from types import SimpleNamespace

import pytest


@pytest.fixture
def db(tmp_path):
    connection = sqlite3.connect(tmp_path / "rooms.db")
    connection.execute("CREATE TABLE bookings(room, day)")
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def mail():
    sent = []
    yield sent
    sent.clear()


@pytest.fixture
def tfgrpo_agent(db, mail):
    def solve(context):
        with db:
            db.execute("INSERT INTO bookings VALUES (?, 'monday')", (context.task.input["room"],))
        mail.append(context.task.input["room"])
        return "booked"

    return solve

"""
PLAIN = """
@pytest.mark.parametrize("n", range({n}))
def test_booking(tfgrpo_agent, db, mail, n):
    context = SimpleNamespace(task=SimpleNamespace(input={{"room": "red"}}))
    assert tfgrpo_agent(context) == "booked"
    assert db.execute("SELECT * FROM bookings").fetchall() == [("red", "monday")]
"""
MARKED = """
@pytest.mark.tfgrpo(split="eval", prompt="Book the red room, task {{n}}.", input={{"room": "red"}})
@pytest.mark.parametrize("n", range({n}))
def test_booking(rollout, tfgrpo_agent, db, mail, n):
    assert rollout.answer == "booked"
    assert db.execute("SELECT * FROM bookings").fetchall() == [("red", "monday")]
"""


class Cost(NamedTuple):
    """What a process took."""

    wall_s: float
    processor_s: float


def run(folder: Path) -> Cost:
    """Run pytest in a folder."""
    environ = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_tfgrpo.plugin"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environ, check=True, stdout=subprocess.DEVNULL)
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def suite(root: Path, name: str, tests: str) -> Path:
    """Write a suite; returns its folder."""
    folder = root / name
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_booking.py").write_text(FIXTURES + tests.format(n=TESTS))
    return folder


def main() -> None:
    """Print medians, and the ratios of each pair."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as root:
        folders = [suite(Path(root), name, tests) for name, tests in (("plain", PLAIN), ("marked", MARKED))]
        for folder in folders:  # bytecode, and the files of the disk
            run(folder)
        found = [[run(folder) for folder in folders] for _ in range(pairs)]
    for place, name in enumerate(Cost._fields):
        plain, marked = ([pair[side][place] for pair in found] for side in (0, 1))
        ratios = sorted(one / other for one, other in zip(marked, plain, strict=True))
        print(
            f"{name:12}  plain {statistics.median(plain):.2f}  marked {statistics.median(marked):.2f}  "
            f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
