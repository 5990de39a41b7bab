"""Run 20,000 rollouts under pytest with telemetry off and on, and compare the processor time.

    python benchmarks/telemetry.py [ROUNDS [ROLLOUTS]]

A rollout is one span with 2 scores as events; in the second part its agent reports a model call and a tool
call, which are spans too. The receiver is a process of its own on loopback. Processor time is that of the
pytest process with all its threads; on a busy machine the least of each is steadier than the median.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

GROUP_SIZE = 20
AGENTS = {
    "answers": "async def solve(context):\n    return '3'\n",
    "answers and reports two calls": """
async def solve(context):
    usage = {"prompt": 40, "completion": 2}
    return {"answer": "3", "frames": [
        {"kind": "model", "name": "m-1", "output": "3", "tokens": 42, "usage": usage, "latency_ms": 1.5},
        {"kind": "tool", "name": "count_words", "input": {"text": "a b c"}, "output": "3", "latency_ms": 0.5},
    ]}
""",
}


def receive(ready: Connection) -> None:
    """Answer every request, and say where."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ready.send(server.server_port)
    server.serve_forever()


def make_project(folder: Path, agent: str, rollouts: int) -> None:
    (folder / "agent2.py").write_text(f"{agent}\nsolve.paid = False\n")
    scenarios = [
        {
            "id": f"s{n}",
            "split": "eval",
            "domain": "text",
            "prompt": f"How many words has {n}?",
            "checks": [{"kind": "exact", "value": "3"}],
        }
        for n in range(rollouts // GROUP_SIZE)
    ]
    (folder / "suite.scenarios.jsonl").write_text("".join(json.dumps(s) + "\n" for s in scenarios))
    settings = {"actor": "python:agent2:solve", "eval_rollouts": GROUP_SIZE, "out": "out"}
    lines = [f"tfgrpo_{name} = {value}\n" for name, value in settings.items()]
    (folder / "pytest.ini").write_text("".join(["[pytest]\n", *lines]))


def processor_s(folder: Path, port: int, *, on: bool) -> tuple[float, float]:
    """Return the processor time of a run, and the most memory it had in MB so far."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ |= {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "TFGRPO_OTEL": str(int(on)),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tfgrpo", "-p", "no:cacheprovider"]
    with subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, output
    lost = re.search(r"telemetry: .*", output)
    assert lost is None, lost
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(rounds: int = 5, rollouts: int = 20_000) -> None:
    """Print medians, their ratio, and the memory."""
    here, there = multiprocessing.Pipe()
    receiver = multiprocessing.get_context("spawn").Process(target=receive, args=(there,), daemon=True)
    receiver.start()
    port = here.recv()
    for name, agent in AGENTS.items():
        with tempfile.TemporaryDirectory() as folder:
            make_project(Path(folder), agent, rollouts)
            compare(f"an agent that {name}", Path(folder), port, rounds)
    receiver.terminate()


def compare(name: str, folder: Path, port: int, rounds: int) -> None:
    """Measure runs in turn, and print what they took."""
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for turn in range(rounds + 1):
        for on in (False, True) if turn % 2 else (True, False):
            measured = processor_s(folder, port, on=on)
            if turn:  # the first one compiles modules
                found[on].append(measured)
    print(name)
    for on, values in found.items():
        times = [time for time, _ in values]
        memory = max(megabytes for _, megabytes in values)
        every = " ".join(f"{time:.2f}" for time in times)
        least = f"least {min(times):.2f} s, {memory:.0f} MB"
        print(f"  {'on ' if on else 'off'}  median {statistics.median(times):.2f} s, {least}  ({every})")
    off, on = ([time for time, _ in found[state]] for state in (False, True))
    median = statistics.median(on) / statistics.median(off)
    print(f"  ratio of medians {median:.3f}, of the least {min(on) / min(off):.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
