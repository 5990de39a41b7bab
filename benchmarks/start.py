"""Time what this plugin adds to a bare pytest process, in pairs: one bare, one with it.

    python benchmarks/start.py [ROUNDS]

Run it where the package is installed with its bytecode, and no other plugin. The plugin is named by its
module, and the search for entry points is off, since that is pytest's own. The start that does not use the
plugin is a plain `pytest` which finds it, against one with `-p no:tfgrpo`. Prints medians and quartiles of
what is added, and how many modules of the package the process loads.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PACKAGE = "pytest_tfgrpo"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
PLUGIN = [*PYTEST, "-p", f"{PACKAGE}.plugin"]
HELP = f"import sys; from {PACKAGE}.cli import main; sys.exit(main())"
ONE = "suite/one.scenario.json"
SCENARIO = {
    "id": "one",
    "split": "eval",
    "prompt": "How many words has letter.txt?",
    "attachments": ["letter.txt"],
    "checks": [{"kind": "exact", "value": "3"}],
    "min_score": 0.0,
}


class Case(NamedTuple):
    """One process to time."""

    label: str
    command: list[str]
    bar: str
    unused: bool = False
    """Processor time of a start that does not use the plugin, as a share of a bare pytest's."""


class Times(NamedTuple):
    """What one process took, in seconds."""

    wall_s: float
    cpu_s: float


OFFLINE = ["--tfgrpo-actor", "offline", ONE]
OPENAI = ["--tfgrpo-actor", "openai:bench", "--tfgrpo-allow-paid", "true", ONE]
CASES = (
    Case("plain run, one scenario", [*PLUGIN, *OFFLINE], "<= +0.17 s"),
    Case("the same with `out`", [*PLUGIN, "--tfgrpo-out", "out", *OFFLINE], ""),
    Case("the same over HTTP", [*PLUGIN, *OPENAI], "<= +0.22 s"),
    Case("test beside a scenario file", [*PLUGIN, "suite/test_nothing.py"], "<= +0.05 s"),
    Case("tfgrpo --help, whole process", [sys.executable, "-c", HELP, "--help"], "<= 0.15 s"),
    Case("unused, processor time", [*PYTEST, "bare"], "<= 3 %", unused=True),
)
BARE = [*PYTEST, "bare"]
BLOCKED = [*BARE, "-p", "no:tfgrpo"]


def write_suite(root: Path) -> None:
    """Write a folder with one test, and one with a scenario file beside its test."""
    (root / "pytest.ini").write_text("[pytest]\n")
    for name in ("bare", "suite"):
        (root / name).mkdir()
        (root / name / "test_nothing.py").write_text("def test_nothing(): pass\n")
    (root / "suite" / "letter.txt").write_text("one two three\n")
    (root / "suite" / "one.scenario.json").write_text(json.dumps(SCENARIO))


@contextmanager
def model_server() -> Iterator[str]:
    """Run a model server on the loopback that answers at once; yields its address."""
    program = Path(__file__).with_name("model_server.py")
    with subprocess.Popen([sys.executable, str(program), "0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.kill()


def timed(command: list[str], root: Path, environ: Mapping[str, str]) -> Times:
    """Return what a command that must succeed took."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=root, env=environ, stdout=subprocess.DEVNULL, check=True)
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(root / "out", ignore_errors=True)
    return Times(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def modules_loaded(command: list[str], root: Path, environ: Mapping[str, str]) -> int:
    """Return how many modules of the package a command loads."""
    uncaptured = ["-s"] if command[: len(PYTEST)] == PYTEST else []
    command = [command[0], "-X", "importtime", *command[1:], *uncaptured]
    done = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=True)
    return sum(line.rpartition("|")[2].strip().startswith(PACKAGE) for line in done.stderr.splitlines())


def row(case: Case, pairs: list[tuple[Times, Times]]) -> str:
    """Return what a case added to a bare pytest, median and quartiles."""
    if case.unused:
        bare_s = statistics.median(bare.cpu_s for bare, _ in pairs)
        shares = [100 * (ours.cpu_s - bare.cpu_s) / bare_s for bare, ours in pairs]
        low, middle, high = statistics.quantiles(shares, n=4)
        return f"{middle:+8.1f} %   {low:+7.1f} to {high:+.1f}"
    whole = PYTEST[2] not in case.command
    added = [ours.wall_s - (0 if whole else bare.wall_s) for bare, ours in pairs]
    low, middle, high = statistics.quantiles(added, n=4)
    return f"{middle:+8.3f} s   {low:+7.3f} to {high:+.3f}"


def main(rounds: int) -> None:
    """Time every case against a bare pytest and print one line for each."""
    with tempfile.TemporaryDirectory() as name, model_server() as url:
        root = Path(name)
        write_suite(root)
        environ = {k: v for k, v in os.environ.items() if not k.startswith("TFGRPO_")}
        environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": ""}
        environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
        for command in (BARE, *(case.command for case in CASES)):
            timed(command, root, environ)
        bare_s = statistics.median(timed(BARE, root, environ).wall_s for _ in range(rounds))
        print(f"bare pytest {bare_s:.3f} s; {rounds} pairs, medians and quartiles")
        found = {k: v for k, v in environ.items() if k != "PYTEST_DISABLE_PLUGIN_AUTOLOAD"}
        for case in CASES:
            bare, used = (BLOCKED, found) if case.unused else (BARE, environ)
            pairs = [(timed(bare, root, used), timed(case.command, root, used)) for _ in range(rounds)]
            count = modules_loaded(case.command, root, used)
            print(f"{case.label:30}{row(case, pairs):36}{count:4} modules   {case.bar}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
