"""How ``tfgrpo loop demo`` goes on: a training job, a version; then the same on shuffled rewards."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.cli.demo.demo_service import fixtures
from pytest_tfgrpo.cli.loop.demo_traffic import agent_of
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.evidence import EvidenceGroup, evidence_lines
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.serving import FIRST
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob
from pytest_tfgrpo.production.training.jobs.work import EVIDENCE_FILE
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.suite.evidence_file import EvidenceFile

SUITE, JOBS = "suite", "loop-jobs"
THRESHOLD = 300
"""New trajectories that fire the trigger; 5,000 where you set none."""
EPOCHS = "--tfgrpo-epochs=2"
"""One epoch learns from the evidence, and runs no agent; then the sweep."""


def training_config() -> str:
    """Return the section of ``loop.toml`` that makes a service run jobs in the demo's suite."""
    domains = {agent_of(path.name): path.name for path in (fixtures() / "prompt-packs").iterdir()}
    lines = [
        "[training]",
        f'project = "../{SUITE}"',
        f"args = [{json.dumps(EPOCHS)}]",
        'triggers = ["threshold"]',
        f"threshold = {THRESHOLD}",
        "safety = []",
        "[training.domains]",
        *(f"{json.dumps(agent)} = {json.dumps(domain)}" for agent, domain in sorted(domains.items())),
    ]
    return "\n".join(lines) + "\n"


def make_suite(folder: Path) -> Path:
    """Copy the shipped fixtures into a suite of the application's team."""
    suite = folder / SUITE
    for name in ("fixtures", "prompt-packs"):
        shutil.copytree(fixtures() / name, suite / name)
    write_text(suite / "pytest.ini", "[pytest]\ntfgrpo_actor = offline\ntestpaths = fixtures\n")
    return suite


def learned_lines(bus: Bus, folder: Path, job: TrainingJob) -> Iterator[str]:
    """Yield what a job of the loop in `folder` came to, and what shuffled rewards come to.

    Raises StoreError where the job failed.
    """
    if job.state != "completed":
        raise StoreError(f"the training job is {job.state}: {json.dumps(job.status)[:2000]}")
    evidence = folder / JOBS / job.id / EVIDENCE_FILE
    header = EvidenceFile(evidence).header
    why = job.request.payload["trigger_reason"]
    yield f"trigger    {why}: {header.counts['trajectories']} new trajectories"
    yield (
        f"evidence   {header.counts['attempts']} attempts at {header.counts['groups']} tasks with different "
        "rewards"
    )
    yield from _version(job, Policies(bus, FolderArtifacts(folder / JOBS)))
    yield _control(folder.parent, evidence)


def _version(job: TrainingJob, policies: Policies) -> Iterator[str]:
    name = str(job.status["metadata"]["policy_version"])
    version, row = policies.read(name), policies.row(name)
    found = version.validation
    assert found is not None, "a version that a job made is validated"
    gain = _gain(found.holdout_reward, found.improvement_over_baseline)
    yield f"version    {name} with {plural(version.lessons, 'lesson')}: eval split {gain}"
    yield f"           {row.state.replace('_', ' ')}: {'; '.join(found.reasons)}"
    yield f"           {FIRST} stays live until you say:"
    yield f"next: tfgrpo loop versions verdict {name} --safety passed --by NAME --reason TEXT"
    yield f"      tfgrpo loop approve {name} --by NAME --reason TEXT"


def _control(folder: Path, evidence: Path) -> str:
    """Return what the same job learns from the same attempts with rewards shuffled within each task."""
    shuffled = folder / "shuffled.jsonl"
    file = EvidenceFile(evidence)
    write_text(shuffled, "".join(evidence_lines(file.header, _shuffled(file))))
    out = folder / "shuffled"
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tfgrpo", EPOCHS)
    named = (f"--tfgrpo-evidence={shuffled}", "--tfgrpo-untested=hold", f"--tfgrpo-out={out}")
    found = subprocess.run(
        [*command, *named], cwd=folder / SUITE, capture_output=True, text=True, check=False
    )
    reports = sorted(out.glob("*/runs/*/report.json"))
    if not reports:
        raise StoreError(
            f"the run on shuffled rewards did not end: {found.stdout[-2000:]}{found.stderr[-500:]}"
        )
    report = load_json(reports[-1].read_bytes())
    gain = report["gain"]
    score = _gain(gain["after"], gain["difference"])
    return f"control    the same attempts, rewards shuffled within each task: {score}"


def _shuffled(file: EvidenceFile) -> Iterator[EvidenceGroup]:
    draw = random.Random("shuffled")
    for key, group in file.groups.items():
        attempts = file.attempts(key)
        rewards = [one.total_reward for one in attempts]
        draw.shuffle(rewards)
        yield EvidenceGroup(
            id=key,
            domain=group.domain,
            prompt=group.prompt,
            attempts=tuple(
                replace(one, total_reward=reward) for one, reward in zip(attempts, rewards, strict=True)
            ),
        )


def _gain(after: float | None, difference: float | None) -> str:
    assert after is not None, "the suite has an eval split"
    assert difference is not None, "and a baseline sweep"
    return f"{after - difference:.2f} to {after:.2f}"
