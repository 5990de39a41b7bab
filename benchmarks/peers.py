"""Run one job in this project and in its peers, side by side, against the same model server on the loopback.

    python benchmarks/peers.py [ROUNDS] [PEER ...]

The job: 1,000 scenarios of one model call of 100 ms, 64 in flight, each answer compared with the right one.
Each peer has an environment of its own, made on the first use below the temporary folder and kept there; one
that cannot be installed is printed as such. What a peer reports to its makers is switched off, by variables
that it documents. Prints medians of whole processes: wall and processor time, the memory at its peak of the
largest process; and the span from the first request to the last answer, as the server saw it.

The last two rows are what no program with our client can go below: a loop that makes the calls and looks at
no answer, by itself and as the only test of a bare pytest.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from models import BARE, CALLS, IDEAL_S, IN_FLIGHT, model_server, seen_by_server, write_suite

ENVIRONMENTS = Path(tempfile.gettempdir()) / "tfgrpo-peers"
JOBS = Path(__file__).with_name("peer_jobs")
NODE = "node@22"
"""promptfoo needs one that is newer than those of many systems."""


class Peer(NamedTuple):
    """A program that can do the job."""

    package: str
    job: str
    """File of the job."""
    what: str
    environ: Mapping[str, str] = {}
    """What switches its reports to its makers off."""


PEERS = {
    "pydantic-evals": Peer(
        "pydantic-evals",
        "pydantic_evals_job.py",
        "`Dataset.evaluate` with its progress bar, `EqualsExpected`, the printed report",
        {"LOGFIRE_SEND_TO_LOGFIRE": "false", "LOGFIRE_IGNORE_NO_CONFIG": "1"},
    ),
    "DeepEval": Peer(
        "deepeval",
        "deepeval_job.py",
        "answers asked for in a loop of the client, then `evaluate` with `ExactMatchMetric`, nothing shown",
        {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "ERROR_REPORTING": "NO"},
    ),
    "LangSmith": Peer(
        "langsmith",
        "langsmith_job.py",
        "`evaluate` on 64 threads with `upload_results=False`, a function that compares",
        {"LANGSMITH_TRACING": "false", "LANGSMITH_ENDPOINT": "http://127.0.0.1:9"},
    ),
    "Inspect AI": Peer(
        "inspect-ai",
        "inspect_job.py",
        "`eval` of a task of samples with `generate()` and `exact()`, plain display, its log file",
    ),
    "promptfoo": Peer(
        "promptfoo",
        "promptfooconfig.yaml",
        "`promptfoo eval -j 64` with `equals`, no table, results kept in its database",
        {
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
            "PROMPTFOO_DISABLE_REMOTE_GENERATION": "true",
            "PROMPTFOO_CACHE_ENABLED": "false",
        },
    ),
}
OURS = "pytest-tfgrpo"
FLOORS = {
    "bare loop": "the calls with our HTTP client, and nothing else",
    "bare loop in pytest": "the same in the only test of a `pytest -q` without plugins",
}
WHAT_OURS = "`pytest -q` in plain mode with the actor `openai:bench`, one item for each scenario"


class Missing(Exception):
    """A peer that cannot be installed here."""


class Figures(NamedTuple):
    """What one process took."""

    wall_s: float
    used_s: float
    """Processor time, of child processes too."""
    peak_mb: float
    span_s: float
    """From the first request to the last answer."""


def install(name: str) -> list[str]:
    """Return the command of a peer, in an environment that is made if it is not there; raises Missing."""
    peer = PEERS[name]
    folder = ENVIRONMENTS / peer.package
    if peer.job.endswith(".yaml"):
        binaries = folder / "node_modules" / ".bin"
        if not (binaries / peer.package).exists():
            folder.mkdir(parents=True, exist_ok=True)
            _run(["npm", "install", "--no-audit", "--no-fund", NODE, peer.package], folder)
        arguments = ["eval", "-c", peer.job, "-j", str(IN_FLIGHT), "--no-table", "--no-progress-bar"]
        return [str(binaries / "node"), str(binaries / peer.package), *arguments, "--no-share"]
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", peer.package, "openai"])
        (folder / "installed").touch()
    return [str(python), str(JOBS / peer.job)]


def _run(command: Sequence[str], folder: Path | None = None) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Missing(f"there is no {command[0]}") from error
    except subprocess.CalledProcessError as error:
        raise Missing((error.stderr.strip().splitlines() or ["it says nothing"])[-1][:200]) from error


def version_of(name: str) -> str:
    """Return the version of an installed peer."""
    folder, package = ENVIRONMENTS / PEERS[name].package, PEERS[name].package
    if PEERS[name].job.endswith(".yaml"):
        found: str = json.loads((folder / "node_modules" / package / "package.json").read_text())["version"]
        return found
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run(
        [folder / "bin" / "python", "-c", code], capture_output=True, text=True
    ).stdout.strip()


def write_job(name: str, folder: Path) -> None:
    """Write what the job reads from files."""
    if name == OURS:
        write_suite(folder, CALLS, "eval")
    elif name in FLOORS:
        (folder / "loop.py").write_text(BARE)
        (folder / "test_loop.py").write_text("def test_loop():\n    import loop\n")
        (folder / "pytest.ini").write_text("[pytest]\n")
    elif (job := PEERS[name].job).endswith(".yaml"):
        shutil.copy(JOBS / job, folder)
        right = [{"type": "equals", "value": "3"}]
        tests = [
            {"vars": {"prompt": f"How many words has letter {n}?"}, "assert": right} for n in range(CALLS)
        ]
        (folder / "tests.json").write_text(json.dumps(tests))


def measure(name: str, command: Sequence[str], environ: Mapping[str, str]) -> Figures:
    """Return what one process of the job took; it must succeed, and make each call once."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_job(name, folder)
        own = PEERS[name].environ if name in PEERS else {}
        own = {**environ, **own, "HOME": place, "PROMPTFOO_CONFIG_DIR": place}
        began = time.perf_counter()
        with (folder / "out.txt").open("w") as out:
            process = subprocess.Popen(command, cwd=folder, env=own, stdout=out, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(process.pid, 0)
        wall_s, process.returncode = time.perf_counter() - began, status
        assert status == 0, f"{name}: {(folder / 'out.txt').read_text()[-2000:]}"
    calls, span_s = seen_by_server(environ["OPENAI_BASE_URL"])
    assert calls == CALLS, f"{name} made {calls} calls"
    return Figures(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, span_s)


def main(rounds: int, wanted: Sequence[str]) -> None:
    """Print a table of medians, and what each program ran."""
    commands = {
        OURS: [
            *(sys.executable, "-m", "pytest", "-p", "tfgrpo", "-q"),
            *("--tfgrpo-actor=openai:bench", "--tfgrpo-allow-paid=true"),
        ]
    }
    for name in wanted or PEERS:
        try:
            commands[name] = install(name)
        except Missing as error:
            print(f"{name} cannot be installed here: {error}", flush=True)
    commands["bare loop"] = [sys.executable, "loop.py"]
    commands["bare loop in pytest"] = [sys.executable, "-m", "pytest", "-q"]
    found: dict[str, list[Figures]] = {name: [] for name in commands}
    with model_server("3") as environ:
        for turn in range(rounds + 1):
            for name, command in commands.items():
                figures = measure(name, command, environ)
                if turn:  # the first one writes bytecode and fills caches
                    found[name].append(figures)
    print(f"{CALLS:,} calls of 100 ms, {IN_FLIGHT} in flight, ideal {IDEAL_S:.1f} s; medians of {rounds}")
    print("| program | wall s | ours / its | processor s | peak MB | requests s | what it runs |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, rows in found.items():
        wall, used, peak, span = (statistics.median(column) for column in zip(*rows, strict=True))
        ratio = statistics.median(a.wall_s / b.wall_s for a, b in zip(found[OURS], rows, strict=True))
        shown = f"{name} {version_of(name)}" if name in PEERS else name
        what = PEERS[name].what if name in PEERS else FLOORS.get(name, WHAT_OURS)
        print(f"| {shown} | {wall:.2f} | {ratio:.2f} | {used:.2f} | {peak:.0f} | {span:.2f} | {what} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:])
