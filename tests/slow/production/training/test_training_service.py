"""The service as a process that runs jobs of pytest, and is killed while it does."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from support.cuts import Cutter
from support.feedback.training import payload, statuses
from support.loop_events import publish
from support.tools import tfgrpo

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.process import LOG
from pytest_tfgrpo.production.training.jobs.request import TrainingRequest
from pytest_tfgrpo.production.training.jobs.states import JOBS
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.runs.journal.journal import read

pytestmark = pytest.mark.timeout(400)

PATIENCE_S = 300.0
DOMAINS = {"fixtures/words.scenario.yaml": "words", "fixtures/figures.scenario.yaml": "figures"}


class Service:
    """``tfgrpo loop serve`` in a folder with a suite."""

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

    def end(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(100)
            self.process = None


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    tfgrpo("init", "suite")
    for name, domain in DOMAINS.items():
        file = tmp_path / "suite" / name
        file.write_text(file.read_text().replace(f"domain: {domain}", "domain: general"))
    found = Service(tmp_path)
    yield found
    found.end(signal.SIGKILL)


def configure(folder: Path, bus: str) -> None:
    (folder / "loop.toml").write_text(
        f'[bus]\nurl = "{bus}"\n[service]\nport = 0\n[evaluator]\nlease_s = 1\n'
        '[training]\nproject = "suite"\ntriggers = []\nsafety = ["bias"]\n'
    )


def bring(bus: Bus) -> None:
    """Bring attempts at tasks that are not in the suite, some good and some bad."""
    for task in range(3):
        for n, total in enumerate((1.0, 0.0, 1.0)):
            prompt = f"How many letters are in the word number {task}?"
            events = Cutter.attempt(f"{task}{n}", total, prompt=prompt, text=str(n))
            publish(bus, events)


def wait(bus: Bus, service: Service, name: str = "one") -> str:
    """Return the state in which the job ended."""
    jobs = TrainingJobs(bus, "test")
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        job = jobs.find(derived_id("job", name))
        if job is not None and job.state in JOBS.final:
            return job.state
        time.sleep(0.1)
    raise AssertionError((service.folder / "serve.log").read_text())


def runs_once(folder: Path, name: str = "one") -> Path:
    """Return the one run of a job, of which no rollout was made twice."""
    job = folder / "loop-jobs" / derived_id("job", name)
    runs = list(job.glob("out/*/runs/*"))
    assert len(runs) == 1, (job / LOG).read_text()
    made = Counter(
        event.data["rollout_id"] for event in read(runs[0] / "journal.jsonl") if event.event == "rollout"
    )
    assert made
    assert set(made.values()) == {1}
    return runs[0]


def versions(folder: Path) -> list[str]:
    """Return the names of the versions that there are; the files of each are whole."""
    with closing(open_bus(f"embedded:{folder / 'bus.db'}")) as bus:
        policies = Policies(bus, FolderArtifacts(folder / "loop-jobs"))
        names = [row.name for row in policies.listed()]
        assert [policies.read(name).name for name in names] == names
    return names


def test_a_job_learns_from_what_is_on_the_bus(service: Service) -> None:
    configure(service.folder, "embedded:bus.db")
    with closing(open_bus(f"embedded:{service.folder / 'bus.db'}")) as bus:
        bring(bus)
        TrainingJobs(bus, "test").submit(TrainingRequest(payload=payload()))
        service.start()
        assert wait(bus, service) == "completed", statuses(bus)[-1]
        last = statuses(bus)[-1]
    report = json.loads((runs_once(service.folder) / "report.json").read_text())
    assert last["evaluation_results"]["holdout_reward"] == report["epochs"][-1]["gt_score"]["mean"]
    assert last["metadata"]["gate"] == report["gate"]["outcome"]
    assert versions(service.folder)[-1] == last["metadata"]["policy_version"]
    assert last["progress"]["percent_complete"] == 100.0
    service.end(signal.SIGTERM)
    assert "stopped" in (service.folder / "serve.log").read_text()


@pytest.mark.parametrize("seed", range(3))
def test_a_service_that_is_killed_again_and_again_makes_one_run(service: Service, seed: int) -> None:
    draw = random.Random(seed)
    configure(service.folder, "embedded:bus.db")
    with closing(open_bus(f"embedded:{service.folder / 'bus.db'}")) as bus:
        bring(bus)
        TrainingJobs(bus, "test").submit(TrainingRequest(payload=payload()))
        for _ in range(4):
            service.start()
            time.sleep(draw.uniform(0.5, 6.0))
            service.end(signal.SIGKILL)
            if draw.random() < 0.5:
                kill_run(service.folder)
        service.start()
        assert wait(bus, service) == "completed", statuses(bus)[-1]
        found = [one["status"] for one in statuses(bus)]
    runs_once(service.folder)
    assert versions(service.folder) in (["v1"], ["v1", "v2"])
    assert not list((service.folder / "suite").glob(".tfgrpo-safety"))
    assert found[0] == "queued"
    assert set(found[1:-1]) <= {"running"}
    assert found[-1] == "completed"


def kill_run(folder: Path) -> None:
    """Kill the process of the job, if it is there."""
    for lock in folder.glob("loop-jobs/*/process.lock"):
        if pid := lock.read_text():
            with suppress(ProcessLookupError):
                os.killpg(int(pid), signal.SIGKILL)


def test_a_job_of_a_service_is_cancelled_by_another_process(service: Service) -> None:
    configure(service.folder, "embedded:bus.db")
    slow = "import time\n\n\ndef pytest_collection_modifyitems():\n    time.sleep(60)\n"
    (service.folder / "suite" / "conftest.py").write_text(slow)
    with closing(open_bus(f"embedded:{service.folder / 'bus.db'}")) as bus:
        bring(bus)
        jobs = TrainingJobs(bus, "test")
        jobs.submit(TrainingRequest(payload=payload()))
        service.start()
        until = time.monotonic() + PATIENCE_S
        while not list(service.folder.glob("loop-jobs/*/process.lock")) and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(2.0)
        assert jobs.cancel(derived_id("job", "one")) == "running"
        assert wait(bus, service) == "cancelled"


TRAINER = """
import json, sys
from pathlib import Path

request = json.loads(Path(sys.argv[1]).read_text())
folder = Path(sys.argv[1]).parent
rows = [len((folder / f"rollouts{part}.jsonl").read_text().splitlines()) for part in ("", "-holdout")]
print("loading", flush=True)
print(json.dumps({"status": "running", "metrics": {"current": {"rows": rows}}}), flush=True)
print(json.dumps({"status": "completed", "artifacts": {"final_checkpoint": request["training_job_id"]}}))
"""


def test_weights_are_trained_by_another_program_with_rows_of_the_evidence(service: Service) -> None:
    configure(service.folder, "embedded:bus.db")
    (service.folder / "train.py").write_text(TRAINER)
    command = json.dumps([sys.executable, str(service.folder / "train.py")])
    config = service.folder / "loop.toml"
    config.write_text(config.read_text().replace("triggers = []", f"triggers = []\ncommand = {command}"))
    with closing(open_bus(f"embedded:{service.folder / 'bus.db'}")) as bus:
        bring(bus)
        asked = payload(algorithm="ppo", evaluation={"holdout_size": 0.3})
        TrainingJobs(bus, "test").submit(TrainingRequest(payload=asked))
        service.start()
        assert wait(bus, service) == "completed", statuses(bus)[-1]
        last = statuses(bus)[-1]
    assert last["artifacts"]["final_checkpoint"] == asked["training_job_id"]
    assert last["metrics"]["current"]["rows"] == [6, 3]
    compared, written, *_ = last["metadata"]["rows"]
    assert "0 tasks overlapping the dev or eval split left out" in compared
    assert written.startswith("rollouts.jsonl: 6 rows from 2 groups")
