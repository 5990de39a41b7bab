"""A proven job that the project's agent tries again: what it says, and the job that a smaller fix becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.captured import CapturedJob
from support.repositories import git
from support.text_tests import TextRunner, text_tools

from pytest_tfgrpo.cli.learn.optimise import optimise
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.settings import from_arguments
from pytest_tfgrpo.harvest.suite.scenario_text import scenario_text
from pytest_tfgrpo.launch.running import arun_launch
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, RanCommand
from pytest_tfgrpo.patterns.jobs.queue import JobQueue
from pytest_tfgrpo.patterns.optimise.rollouts import FixGroup, read_rollouts
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml

TEST = "tests/a.test.js"
BASE: dict[Any, Any] = {"a.js": "zero\n", "old.js": "x\n", "gone.js": "g\n", TEST: "old a.js zero\n"}
FIX: dict[Any, Any] = {
    **{"a.js": "zero\none\ntwo\n", "old.js": "y\n", "gone.js": None, "more.js": "z\n"},
    TEST: "old a.js zero\nhas_one a.js one\n",
}
AGENT = """
from itertools import count

TRIES = count()


def solve(context):
    for name, text in {tries}[next(TRIES)].items():
        (context.workspace / name).write_text(text)
        (context.workspace / name).chmod(0o755 if name.endswith(".sh") else 0o644)
    return {{"answer": "done"}}
"""
SMALL = {"a.js": "zero\none\n", "new.sh": "n\n", TEST: "easier a.js zero\n"}
Try = Callable[..., list[str]]


@pytest.fixture
def job(tmp_path: Path) -> CapturedJob:
    """A job with a proven scenario, of which a check stays that runs no program."""
    job = CapturedJob(tmp_path, BASE, FIX)
    job.scenario = job.prove(text_tools(TextRunner())).scenario  # type: ignore[attr-defined]
    path = job.folder / f"{job.scenario}.scenario.yaml"  # type: ignore[attr-defined]
    checks = [{"kind": "file", "path": "a.js", "contains": "one"}]
    path.write_text(scenario_text({**parse_yaml(path.read_text()).value, "checks": checks}, "simpler"))
    return job


@pytest.fixture
def queue(job: CapturedJob) -> Iterator[JobQueue]:
    with JobQueue(job.folder.parent) as queue:
        yield queue


def manifest_of(job: CapturedJob, **changes: Any) -> JobManifest:
    captured = replace(job.manifest.captured, **changes)
    return replace(job.manifest, captured=captured, scenario=job.scenario)  # type: ignore[attr-defined]


@pytest.fixture
def tried(tmp_path: Path, job: CapturedJob, queue: JobQueue) -> Try:
    """Have an agent try the job in some ways, and return what is said."""

    def tried(*tries: dict[str, str], settings: dict[str, Any] | None = None, **changes: Any) -> list[str]:
        (tmp_path / f"{tmp_path.name}.py").write_text(AGENT.format(tries=tries))
        actor = f"python:{tmp_path.name}:solve"
        known = from_arguments({"actor": actor, **(settings or {})}, learning=False)
        group = FixGroup(tmp_path, known, {}, len(tries), arun_launch)
        learning: Any = SimpleNamespace(queue=queue, settle=list)
        return list(optimise(learning, group, manifest_of(job, **changes)))

    return tried


def test_a_smaller_fix_is_a_job_with_the_approved_tests_that_waits_for_a_person(
    tmp_path: Path, job: CapturedJob, queue: JobQueue, tried: Try
) -> None:
    job.write("Mend it.\n", [RanCommand(command="npx jest", exit_code=0)])
    (said,) = tried({"a.js": "zero\n"}, SMALL)
    (found,) = queue.jobs()
    agent = f"python:{tmp_path.name}:solve"
    assert said == (
        f"1 of 2 rollouts of {agent} passed; the smallest changes 2 lines, the approved fix 6; "
        f"job {found.id[:8]} waits for `tfgrpo learn approve`"
    )
    assert (found.waits, found.status) == (True, "queued")
    captured, snapshot = found.manifest.captured, found.manifest.snapshot
    assert (captured.trigger, captured.approver, captured.improves) == ("self", agent, job.manifest.job_id)
    assert captured.files == ("a.js", "new.sh", TEST)
    assert snapshot is not None
    assert snapshot.base == job.first
    shop = job.repository.folder
    names = ("a.js", "old.js", "gone.js", "new.sh", TEST)
    held = {name: git(shop, "show", f"{snapshot.commit}:{name}") for name in names}
    assert held == {
        **{"a.js": "zero\none", "old.js": "x", "gone.js": "g", "new.sh": "n"},
        TEST: FIX[TEST].strip(),
    }
    assert git(shop, "ls-tree", snapshot.commit, "new.sh").startswith("100755")
    assert "more.js" not in git(shop, "ls-tree", "--name-only", snapshot.commit)
    folder = queue.folder_of(found.id)
    assert (folder / "prompt.md").read_text() == "Mend it.\n"
    assert '"npx jest"' in (folder / "history.jsonl").read_text()
    kept = read_rollouts(job.folder)
    assert kept is not None
    assert [(one.relative_rank, one.gt_score, one.lines) for one in kept.rollouts] == [
        *((1.0, 1.0, 2), (0.0, 0.0, None)),
    ]
    assert (kept.job, kept.status) == (found.id, "complete")
    assert tried(SMALL, improves=job.manifest.job_id) == []


@pytest.mark.parametrize("text", ["zero\n", "zero\none\nb\nc\nd\ne\nf\n"], ids=["fails", "as large"])
def test_a_fix_that_fails_or_is_as_large_is_no_job(queue: JobQueue, tried: Try, text: str) -> None:
    (said,) = tried({"a.js": text})
    assert "waits" not in said
    assert queue.jobs() == []


def test_a_group_that_cannot_be_run_says_why(job: CapturedJob, queue: JobQueue, tried: Try) -> None:
    (said,) = tried(SMALL, settings={"budget_s": 0.001})
    assert "0 of " in said
    assert "(the run is " in said
    (job.folder / "archives" / f"{job.scenario}.base.tar.gz").write_bytes(b"")  # type: ignore[attr-defined]
    (said,) = tried(SMALL)
    assert said.startswith("no better fix was looked for: ")
    assert queue.jobs() == []


def test_a_group_runs_at_the_temperature_of_training(tmp_path: Path, job: CapturedJob) -> None:
    (tmp_path / f"{tmp_path.name}.py").write_text(AGENT.format(tries=(SMALL, SMALL)))
    given = {"actor": f"python:{tmp_path.name}:solve", "temperature_train": 1.5, "gate_min_mean": 1.0}
    group = FixGroup(tmp_path, from_arguments(given, learning=False), {}, 2, arun_launch)
    (phase,) = group.run(job.folder, job.scenario).phases  # type: ignore[attr-defined]
    assert (phase.phase.temperature, phase.phase.rollouts, phase.phase.mode) == (1.5, 2, "eval")


def test_a_secret_in_a_smaller_fix_is_refused(queue: JobQueue, tried: Try) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (said,) = tried({"a.js": f"zero\none = '{token}'\n"})
    assert "; it became no job: secrets: a.js:2: " in said
    assert [job.status for job in queue.jobs()] == ["refused"]


def test_an_agent_is_needed_and_a_budget_where_it_costs_money(tmp_path: Path) -> None:
    def opened(**settings: Any) -> FixGroup:
        return FixGroup(tmp_path, from_arguments(settings, learning=False), {}, 2, arun_launch)

    with pytest.raises(SettingError, match="no actor is configured"):
        opened()
    (tmp_path / "models.yaml").write_text("endpoints: {default: {base_url: http://127.0.0.1:1/v1}}\n")
    paid = {"actor": "openai:m", "models": "models.yaml", "allow_paid": True}
    with pytest.raises(SettingError, match="set tfgrpo_budget_usd or tfgrpo_budget_tokens"):
        opened(**paid)
    assert opened(**paid, budget_tokens=9).agent == "openai:m"
