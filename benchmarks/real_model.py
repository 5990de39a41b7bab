"""Measure on a real small language model what lessons gain: learned, written by hand, and misplaced.

    python benchmarks/real_model.py --suite convention

Makes an environment with llama.cpp and a model of 135 million weights at the first time, serves it on this
machine, runs the arms of the plan (real_model_plan.md) on a suite of own data, and prints one table with
pins. Killed and started again, it goes on where it was. `--base-url --model` takes any other server of the
protocol, with the key in OPENAI_API_KEY. A run to the end writes a recording; `--replay FILE` prints its
table again without a model.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import real_arms
from real_server import MODEL, Answers, Relay, environment, relaying, serving
from real_suites import SUITES, Suite, packs
from real_table import findings, table

HERE = Path(__file__).resolve().parent
PLAN = HERE / "real_model_plan.md"
RECORDING = "tfgrpo.benchmark.real-model/1"


class Work(NamedTuple):
    """What is run: a suite with its seeds, and where."""

    suite: Suite
    seeds: tuple[int, ...]
    folder: Path
    """Of this suite, for projects and their runs."""
    concurrency: int
    model: str
    bound: bool
    """See `Asked`."""


def run_all(work: Work, base_url: str, answers: Answers) -> real_arms.Sides:
    """Return what all arms came to with all seeds, asking at `base_url`."""
    endpoint = {"base_url": base_url, "free": True, "timeout_s": 600}
    projects = {place: work.folder / place for place in real_arms.PLACES}
    for place, project in projects.items():
        real_arms.write_project(project, work.suite, place, endpoint)
    model = real_arms.Asked(base_url, work.model, work.concurrency, work.bound)
    sides: real_arms.Sides = {}
    for seed in work.seeds:
        for arm in real_arms.ARMS:
            began, asked = time.monotonic(), answers.asked
            found = real_arms.run_arm(arm, projects[arm.place], work.suite, seed, model)
            real_arms.count(sides, arm, seed, found)
            told = f"seed {seed}, {arm.place}, {arm.name}: {answers.asked - asked} calls"
            print(f"{told}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return sides


def digest_of(suite: Suite) -> str:
    """Return the digest of all of a suite, with its prompt packs."""
    domains = {scenario["domain"] for scenario in suite.scenarios}
    own = {name: text for name, text in packs().items() if name.split("/")[0] in domains}
    text = json.dumps([asdict(suite), own], sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()


def show(work: Work, sides: real_arms.Sides, pins: Mapping[str, str]) -> str:
    """Return table, findings and pins as Markdown."""
    scenarios = [s for s in work.suite.scenarios if s["split"] == "eval"]
    families = len({(s["domain"], s["family"]) for s in scenarios})
    seeds = ", ".join(map(str, work.seeds))
    head = (
        f"Suite {work.suite.name}: {len(scenarios)} eval scenarios of {families} families, "
        f"{real_arms.EVAL_ROLLOUTS} rollouts each, seeds {seeds}; answers of at most "
        f"{work.suite.max_tokens} tokens"
    )
    pinned = [f"* {name}: {value}" for name, value in pins.items()]
    return "\n".join([head, "", *table(sides), "", *findings(sides), "", *pinned, ""])


def pins_of(suite: Suite, model: Mapping[str, str]) -> dict[str, str]:
    """Return what a table rests on: the model, the plan and the suite."""
    plan = hashlib.sha256(PLAN.read_bytes()).hexdigest()
    return {**model, "plan": f"sha256:{plan}", "suite": f"sha256:{digest_of(suite)}"}


@contextmanager
def upstreams(options: argparse.Namespace, folder: Path) -> Iterator[tuple[Mapping[str, str], list[str]]]:
    """Yield what a model is, and its servers: one URL for each call at a time."""
    if options.base_url:
        yield {"server": options.base_url, "model": options.model}, [options.base_url] * options.concurrency
        return
    own = environment(folder / "environment")
    with serving(own, os.cpu_count() or 1, folder / "server.log") as urls:
        yield own.pins, urls


def measure(options: argparse.Namespace) -> str:
    """Run all arms of a suite against a model, and return the table; writes a recording beside it."""
    suite, out = SUITES[options.suite](), options.out.resolve()
    folder = out / suite.name
    folder.mkdir(parents=True, exist_ok=True)
    with upstreams(options, out) as (model, urls):
        pins = pins_of(suite, model)
        answers = Answers(out / "answers.jsonl", model)
        name, bound = options.model or MODEL, not options.model
        work = Work(suite, options.seeds, folder, 2 * len(urls), name, bound)
        with relaying(Relay(answers, urls)) as base_url:
            sides = run_all(work, base_url, answers)
    text = show(work, sides, pins)
    (folder / "table.md").write_text(text)
    kept = {key: answers.replies[key].row() for key in sorted(answers.used)}
    recording = {
        "schema": RECORDING, "suite": suite.name, "seeds": options.seeds, "model": work.model,
        "bound": work.bound, "pins": pins, "answers": kept,
    }  # fmt: skip
    write_recording(folder / "recording.json.xz", recording)
    print(f"wrote {folder / 'table.md'} and recording.json.xz beside it", file=sys.stderr)
    return text


def write_recording(file: Path, recording: Mapping[str, object]) -> None:
    """Write a recording, packed."""
    file.write_bytes(lzma.compress(json.dumps(recording, separators=(",", ":")).encode(), preset=9))


def read_recording(file: Path) -> dict[str, Any]:
    """Return a recording; raises SystemExit where the file is none."""
    try:
        recording = json.loads(lzma.decompress(file.read_bytes()))
    except (OSError, ValueError, lzma.LZMAError) as error:
        raise SystemExit(f"{file} cannot be read as a recording: {error}") from None
    if recording.get("schema") != RECORDING:
        raise SystemExit(f"{file} is no recording of this benchmark, but {recording.get('schema')!r}")
    return recording


def replay(file: Path) -> str:
    """Return the table of a recording; raises SystemExit where it cannot answer what is asked now."""
    recording = read_recording(file)
    suite = SUITES[recording["suite"]]()
    again = f"record anew: python benchmarks/real_model.py --suite {suite.name}"
    then, now = recording["pins"]["suite"], f"sha256:{digest_of(suite)}"
    if then != now:
        raise SystemExit(f"{file}: the suite {suite.name!r} has changed since ({then}, now {now}); {again}")
    answers = Answers(None, {}, recording["answers"])
    with tempfile.TemporaryDirectory() as temporary, relaying(Relay(answers, ())) as base_url:
        seeds, model, bound = tuple(recording["seeds"]), recording["model"], recording["bound"]
        work = Work(suite, seeds, Path(temporary), 8, model, bound)
        try:
            sides = run_all(work, base_url, answers)
        finally:
            if missed := len(answers.used - answers.replies.keys()):
                raise SystemExit(f"{file} has no answer to {missed} of the requests of today; {again}")
    return show(work, sides, recording["pins"])


def main(arguments: Sequence[str]) -> None:
    """Print the table of a suite."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--suite", choices=sorted(SUITES), default="convention")
    parser.add_argument("--seeds", type=lambda text: tuple(map(int, text.split(","))), default=(0, 1, 2))
    parser.add_argument("--out", type=Path, default=Path("out/real-model"), help="answers, runs and tables")
    parser.add_argument("--base-url", help="of another server, up to the part before /chat/completions")
    parser.add_argument("--model", help="as that server calls it")
    parser.add_argument("--concurrency", type=int, default=4, help="calls at a time to that server")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="print the table of a recording")
    options = parser.parse_args(arguments)
    if bool(options.base_url) != bool(options.model):
        parser.error("--base-url and --model belong together")
    print(replay(options.replay) if options.replay else measure(options), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
