"""``tfgrpo loop serve`` as processes over one suite, which tests kill, and what their job came to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.process import LOG
from pytest_tfgrpo.production.training.jobs.states import JOBS
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.runs.journal.journal import read
from pytest_tfgrpo.runs.journal.journal_contents import list_runs
from pytest_tfgrpo.storage.event_store import BusEvent
from support.cuts import Cutter
from support.loop_events import publish
from support.tools import tfgrpo

PATIENCE_S = 300.0
DOMAINS = {"fixtures/words.scenario.yaml": "words", "fixtures/figures.scenario.yaml": "figures"}
AGENT = """
import hashlib
import time
from pathlib import Path


def solve(context, name="solve"):
    asked = f"{name} {context.seed} {context.temperature} {context.prompt.system} {context.prompt.user}"
    with Path(__file__).with_name("calls.log").open("a") as log:
        log.write(hashlib.sha256(asked.encode()).hexdigest() + "\\n")
    time.sleep(0.05)
    return "3"


def trained(context):
    return solve(context, "trained")
"""
"""Writes down what it was asked; its calls take so long that a kill finds some in flight."""

_JOB = derived_id("job", "one")
MARKS = (
    _JOB,
    f"{_JOB}/evidence.jsonl",
    f"{_JOB}/process.lock",
    f"{_JOB}/out/*/runs/*/journal.jsonl",
    f"{_JOB}/out/*/runs/*/report.json",
    f"{_JOB}/learned.json",
    f"{_JOB}/safety/process.lock",
    f"{_JOB}/safety/*/*/runs/*/report.json",
    "rl-checkpoints/v2/library.json",
    f"rl-logs/{_JOB}",
)
"""What a job leaves below the folder of jobs, in order."""
TRAINED_MARKS = (
    f"{_JOB}/evidence.jsonl",
    f"{_JOB}/request.json",
    f"{_JOB}/evaluation/deployed/*/runs/*/journal.jsonl",
    f"{_JOB}/evaluation/deployed/*/runs/*/report.json",
    f"{_JOB}/evaluation/checkpoint/*/runs/*/journal.jsonl",
    f"{_JOB}/evaluation/checkpoint/*/runs/*/report.json",
    f"{_JOB}/learned.json",
    f"{_JOB}/safety/*/*/runs/*/report.json",
    "rl-checkpoints/v2/library.json",
    f"rl-logs/{_JOB}",
)
"""The same of a job whose weights another program trains."""
TRAINER = """
import json, sys
from pathlib import Path

request = json.loads(Path(sys.argv[1]).read_text())
folder = Path(sys.argv[1]).parent
rows = [len((folder / f"rollouts{part}.jsonl").read_text().splitlines()) for part in ("", "-holdout")]
print("loading", flush=True)
print(json.dumps({"status": "running", "metrics": {"current": {"rows": rows}}}), flush=True)
print(json.dumps({"status": "completed", "artifacts": {"final_checkpoint": "trained"}}))
"""


class Service:
    """A process ``tfgrpo loop serve`` in a folder with a suite."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-c", "from pytest_tfgrpo.cli import main; main()", "loop", "serve"]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with (self.folder / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, env=environ, start_new_session=True
            )

    def signal(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def end(self, number: int) -> None:
        self.signal(number)
        if self.process is not None:
            self.process.wait(100)
            self.process = None


def make_project(folder: Path) -> None:
    """Make a loop and a suite in the current folder, which is `folder`."""
    tfgrpo("loop", "init")
    tfgrpo("init", "suite")
    for name, domain in DOMAINS.items():
        file = folder / "suite" / name
        file.write_text(file.read_text().replace(f"domain: {domain}", "domain: general"))


def configure(folder: Path, bus: str) -> None:
    (folder / "loop.toml").write_text(
        f'[bus]\nurl = "{bus}"\n[service]\nport = 0\n[evaluator]\nlease_s = 3\n'
        '[training]\nproject = "suite"\ntriggers = []\nsafety = ["bias"]\n'
    )


def train_elsewhere(folder: Path, *checkpoint_args: str) -> None:
    """Have another program train weights: the agent's function ``trained``; call `configure` before."""
    (folder / "train.py").write_text(TRAINER)
    chosen = {"command": [sys.executable, str(folder / "train.py")], "checkpoint_args": checkpoint_args}
    with (folder / "loop.toml").open("a") as file:
        file.writelines(f"{name} = {json.dumps(value)}\n" for name, value in chosen.items() if value)


def count_calls(folder: Path) -> None:
    """Give the suite an agent that writes down its calls, one at a time."""
    suite = folder / "suite"
    (suite / "agent.py").write_text(AGENT)
    file = suite / "pyproject.toml"
    text = file.read_text().replace('"offline"', '"python:agent:solve"')
    file.write_text(f"{text}tfgrpo_concurrency = 1\n")


def bring(bus: Bus) -> None:
    """Bring attempts at tasks that are not in the suite: good ones, which used a tool, and bad ones."""
    for task in range(3):
        for n, total in enumerate((1.0, 0.0, 1.0)):
            prompt = f"How many letters are in the word number {task}?"
            run, *rewards = Cutter.attempt(f"{task}{n}", total, prompt=prompt, text=str(n))
            publish(bus, [_with_tool(run) if total else run, *rewards])


def _with_tool(run: BusEvent) -> BusEvent:
    payload = json.loads(run.data)
    call = {"type": "tool_call", "tool_name": "count_letters", "tool_args": {"word": "x"}}
    turn = {"turn_id": 1, "action": call, "result": {"success": True, "output": "1"}}
    return replace(run, data=json.dumps({**payload, "turns": [turn, *payload["turns"]]}).encode())


def wait(bus: Bus, folder: Path, job: str = _JOB) -> str:
    """Return the state in which a job ended."""
    jobs = TrainingJobs(bus, "test")
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        found = jobs.find(job)
        if found is not None and found.state in JOBS.final:
            return found.state
        time.sleep(0.1)
    raise AssertionError((folder / "serve.log").read_text())


def resumed(folder: Path) -> int:
    """Return how often runs of jobs were resumed."""
    journals = folder.glob("loop-jobs/**/runs/*/journal.jsonl")
    return sum(event.event == "resume" for journal in journals for event in read(journal))


def runs_once(folder: Path, name: str = "one") -> Path:
    """Return the one run of a job, of which no rollout was made twice."""
    job = folder / "loop-jobs" / derived_id("job", name)
    runs = list_runs(job / "out", "suite")
    assert len(runs) == 1, (job / LOG).read_text()
    for run in [*runs, *list_runs(job / "safety" / "bias", "suite")]:
        events = read(run / "journal.jsonl")
        made = Counter(event.data["rollout_id"] for event in events if event.event == "rollout")
        assert made
        assert set(made.values()) == {1}
    return runs[0]


def versions(bus: Bus, folder: Path) -> list[str]:
    """Return the names of the versions that there are; the files of each are whole."""
    policies = Policies(bus, FolderArtifacts(folder / "loop-jobs"))
    names = [row.name for row in policies.listed()]
    assert [policies.read(name).name for name in names] == names
    return names


def versions_at(folder: Path) -> list[str]:
    with closing(open_bus(f"embedded:{folder / 'bus.db'}")) as bus:
        return versions(bus, folder)


def kill_run(folder: Path) -> int:
    """Kill the process of a job or its suites, if it is there; returns how many were killed."""
    killed = 0
    for lock in folder.glob("loop-jobs/*/**/process.lock"):
        if pid := lock.read_text():
            with suppress(ProcessLookupError):
                os.killpg(int(pid), signal.SIGKILL)
                killed += 1
    return killed


def calls_of(folder: Path) -> Counter[str]:
    """Return what the agent of `count_calls` was asked, with how often."""
    log = folder / "suite" / "calls.log"
    return Counter(log.read_text().split() if log.exists() else ())


def has_reached(folder: Path, mark: str | int) -> bool:
    """Return whether a job has come to a mark of `MARKS`, or its agent was asked so often."""
    if isinstance(mark, int):
        return calls_of(folder).total() >= mark
    return any((folder / "loop-jobs").glob(mark))
