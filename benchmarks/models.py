"""Time runs against a model server on the loopback that answers each call in 100 ms, 64 in flight.

    python benchmarks/models.py [ROUNDS]

Three cases: a whole pytest process with 1,000 scenarios of one call each, and the same with a bare loop of
the peer; a learning loop of 50 scenarios x 4 rollouts, one epoch, with the optimizer `llm`; and the processor
time of one call with all its accounting. The peer is the `openai` SDK with a shared client, where it is
installed, else the bare HTTP client that this project uses.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CALLS, IN_FLIGHT, DELAY_S = 1000, 64, 0.1
GROUPS, GROUP_SIZE = 50, 4
IDEAL_S = math.ceil(CALLS / IN_FLIGHT) * DELAY_S
IDEAL_LOOP_S = (math.ceil(GROUPS * GROUP_SIZE / IN_FLIGHT) + 2) * DELAY_S
"""Rollouts, then one round of critiques and one consolidation."""

SDK = """
import asyncio, sys
from openai import AsyncOpenAI
async def main():
    slots, client = asyncio.Semaphore(64), AsyncOpenAI()
    async def one(n):
        async with slots:
            await client.chat.completions.create(
                model="bench", messages=[{"role": "user", "content": f"How many words has letter {n}?"}])
    await asyncio.gather(*(one(n) for n in range(1000)))
asyncio.run(main())
"""
BARE = """
import asyncio, json, os
from pyreqwest.client import ClientBuilder
async def main():
    slots, url = asyncio.Semaphore(64), os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    async with ClientBuilder().build() as client:
        async def one(n):
            message = {"role": "user", "content": f"How many words has letter {n}?"}
            body = {"model": "bench", "messages": [message]}
            async with slots:
                answer = await client.post(url).body_json(body).build().send()
                await answer.json()
        await asyncio.gather(*(one(n) for n in range(1000)))
    await asyncio.sleep(0.05)  # an interpreter that ends at once may abort
asyncio.run(main())
"""


@contextmanager
def model_server(*texts: str) -> Iterator[dict[str, str]]:
    """Run a server that answers `texts` in turn; yields the environment that points to it."""
    program = Path(__file__).with_name("model_server.py")
    server = subprocess.Popen(
        [sys.executable, str(program), str(DELAY_S), *texts], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        yield {
            **os.environ,
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "OPENAI_API_KEY": "none",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "",
        }
    finally:
        server.kill()
        server.wait()


def seen_by_server(url: str) -> tuple[int, float]:
    """Return how many calls the server answered since it was last asked, and their span in seconds."""
    with urllib.request.urlopen(f"{url}/span") as answer:
        calls, span_s = answer.read().split()
    return int(calls), float(span_s)


def write_suite(folder: Path, count: int, split: str) -> None:
    """Write `count` scenarios of one call each."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    with (folder / "many.scenarios.jsonl").open("w") as file:
        for n in range(count):
            scenario = {"id": f"s{n}", "split": split, "prompt": f"How many words has letter {n}?"}
            file.write(json.dumps(scenario | {"checks": [{"kind": "exact", "value": "3"}]}) + "\n")


def timed(command: list[str], folder: Path, environ: dict[str, str]) -> tuple[float, float]:
    """Return wall and processor seconds of a command that must succeed."""
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    wall_s, after = time.perf_counter() - began, os.times()
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    used_s = after.children_user + after.children_system - before.children_user - before.children_system
    return wall_s, used_s


def pytest_process(folder: Path, environ: dict[str, str], *arguments: str) -> tuple[float, float]:
    """Return the times of a whole pytest process."""
    command = [sys.executable, "-m", "pytest", "-p", "tfgrpo", "-q", "--tfgrpo-actor", "openai:bench"]
    return timed([*command, *arguments], folder, environ)


def peer_process(folder: Path, environ: dict[str, str]) -> tuple[float, float]:
    """Return the times of a bare loop of the peer."""
    program = SDK if importlib.util.find_spec("openai") else BARE
    return timed([sys.executable, "-c", program], folder, environ)


def main_job(folder: Path, environ: dict[str, str]) -> tuple[float, float]:
    """Return the times of 1,000 scenarios in plain mode."""
    write_suite(folder, CALLS, "eval")
    return pytest_process(folder, environ, "--tfgrpo-allow-paid", "true")


def learning(folder: Path, environ: dict[str, str]) -> tuple[float, float]:
    """Return the times of the learning loop as a whole process."""
    write_suite(folder, GROUPS, "train")
    options = {
        "optimizer": "llm",
        "epochs": "1",
        "eval-mode": "separate",
        "baseline-sweep": "off",
        "group-size": str(GROUP_SIZE),
    }
    flags = [word for name, value in options.items() for word in (f"--tfgrpo-{name}", value)]
    wall_s, used_s = pytest_process(folder, environ, "--tfgrpo", *flags)
    journal = next(folder.glob("out/*/runs/*/journal.jsonl")).read_text().splitlines()
    assert sum('"event":"rollout"' in line[:60] for line in journal) == GROUPS * GROUP_SIZE
    return wall_s, used_s


def start_up(folder: Path, environ: dict[str, str]) -> tuple[float, float]:
    """Return the times of the learning loop's process with everything but its calls."""
    write_suite(folder, GROUPS, "train")
    return pytest_process(folder, environ, "--tfgrpo", "--tfgrpo-dry-run")


def call_ms(environ: dict[str, str]) -> float:
    """Return the processor time of one call, in ms: client, retries, parsing, prices and budget."""
    from pytest_tfgrpo.llm.limits.budget import Budget
    from pytest_tfgrpo.llm.models import Models
    from pytest_tfgrpo.llm.protocol import Message, Request
    from pytest_tfgrpo.suite.models_file import load_models

    async def run() -> float:
        budget = Budget({"budget_tokens": 10**9})
        models = Models(load_models(None), environ=environ, spending=budget, max_tokens=4096)
        completer = models.open("openai:bench")

        async def ask(numbers: Iterator[int]) -> None:
            for n in numbers:
                question = Message(role="user", content=f"How many words has letter {n}?")
                await completer.complete(Request(messages=(question,), temperature=0.3, seed=n))

        await ask(iter([0]))  # imports and the first connection
        numbers, began = iter(range(CALLS)), time.process_time()
        await asyncio.gather(*(ask(numbers) for _ in range(IN_FLIGHT)))
        used_s = time.process_time() - began
        await models.aclose()
        return used_s * 1000 / CALLS

    return asyncio.run(run())


def main(rounds: int) -> None:
    """Print medians and ratios."""
    peer = "openai SDK" if importlib.util.find_spec("openai") else "bare HTTP client"
    cases = {
        "pytest process": main_job,
        peer: peer_process,
        "learning process": learning,
        "dry run": start_up,
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    calls: list[float] = []
    spans: dict[str, list[float]] = {name: [] for name in cases}
    with model_server("3") as right, model_server("3", "4") as mixed:
        for _ in range(rounds):
            for name, measure in cases.items():
                with tempfile.TemporaryDirectory() as folder:
                    environ = mixed if measure is learning else right
                    times[name].append(measure(Path(folder), environ))
                spans[name].append(seen_by_server(environ["OPENAI_BASE_URL"])[1])
            calls.append(call_ms(right))
    wall = {name: statistics.median(pair[0] for pair in pairs) for name, pairs in times.items()}
    used = {name: statistics.median(pair[1] for pair in pairs) for name, pairs in times.items()}
    print(f"{CALLS:,} calls of {DELAY_S * 1000:.0f} ms, {IN_FLIGHT} in flight: ideal {IDEAL_S:.2f} s")
    for name, bar in {"pytest process": "   bar: <= 2.5 s", peer: ""}.items():
        print(f"{name:18} {wall[name]:6.2f} s wall {used[name]:6.2f} s processor{bar}")
    for name in ("pytest process", peer):
        steady = IDEAL_S / statistics.median(spans[name])
        bar = "   bar: >= 0.90" if name != peer else ""
        print(f"{name:18} first request to last answer: {steady:.3f} of ideal{bar}")
    print(f"ratio to the {peer}: {wall['pytest process'] / wall[peer]:.2f}")
    loop_s = wall["learning process"] - wall["dry run"]
    print(f"learning, {GROUPS} scenarios x {GROUP_SIZE} rollouts, 1 epoch: ideal {IDEAL_LOOP_S:.2f} s")
    print(f"{'loop':18} {loop_s:6.2f} s                            bar: <= 1.2 s")
    print(f"{'whole process':18} {wall['learning process']:6.2f} s wall")
    print(f"processor time of one call: {statistics.median(calls):.3f} ms   bar: <= 0.3 ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
