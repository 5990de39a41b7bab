"""The commands ``tfgrpo learn`` work, status, show, requeue, approve and prune."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.patterns.shelves import make_evidence, make_pattern, put
from support.repositories import Repository, git
from support.tools import tfgrpo

import pytest_tfgrpo
from pytest_tfgrpo.cli.learn import work
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.patterns.jobs.integrity import RECIPE
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, LearningStatus
from pytest_tfgrpo.patterns.jobs.queue import reviewers_of_tests
from pytest_tfgrpo.patterns.shelf.pattern import PatternStatus
from pytest_tfgrpo.patterns.synthesis.prove import JobProof, ProofTools

DEFERRED = JobProof(
    status=LearningStatus.NEEDS_MANUAL,
    root_cause=RootCause.SCENARIO_SYNTHESIS,
    reason="no runner",
    scenario="one",
)


def recipe(tests: str) -> str:
    return f'[folder."."]\nrunner = "pytest"\ntests = ["{tests}"]\n'


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with unfinished work, which is the current folder."""
    repository = Repository(tmp_path / "shop")
    repository.commit({"a.py": "x = 1\n", "harvest.toml": recipe("t.py")})
    git(repository.folder, "reset", "-q", "--hard", "main")
    (repository.folder / "a.py").write_text("x = 2\n")
    (repository.folder / "test_a.py").write_text("assert True\n")
    monkeypatch.chdir(repository.folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(work, "open_builder", lambda *_: SimpleNamespace(interpreters=()))
    monkeypatch.setattr(work, "open_tools", lambda *_: None)
    monkeypatch.setattr(work, "open_author", lambda *_: nullcontext(lambda *_: lambda: "two"))
    return repository.folder


@pytest.fixture
def job(shop: Path) -> str:
    return captured(shop)


def captured(shop: Path, **changes: str) -> str:
    job = pytest_tfgrpo.capture_work("ann", shop, **changes)  # type: ignore[arg-type]
    assert job is not None
    return job.job_id


Tell = Callable[[JobProof], list[ProofTools]]


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Have proofs end as told, and return with which tools."""
    used: list[ProofTools] = []

    def told(proof: JobProof) -> list[ProofTools]:
        def prove(_job: JobManifest, folder: Path, tools: ProofTools) -> JobProof:
            used.append(tools)
            write_text(folder / "one.manual.md", "Say how its tests run.")
            return proof

        monkeypatch.setattr(work, "prove", prove)
        return used

    return told


def work_none(*arguments: str) -> str:
    return tfgrpo("learn", "work", "--check-sandbox", "none", *arguments)


def learning(shop: Path) -> Path:
    return shop / "out" / "shop" / "learning"


def test_a_job_is_proven_by_the_recipe_before_the_change(shop: Path, tell: Tell) -> None:
    (shop / "harvest.toml").write_text(recipe("easier.py"))
    job = captured(shop)
    used = tell(JobProof(status=LearningStatus.VALIDATED, scenario="one"))
    said = work_none().splitlines()
    assert said[0].startswith("warning: the tests run without isolation")
    assert said[1].startswith(f"{job[:8]}  validated ")
    assert said[2:] == ["1 validated"]
    assert used[0].knowledge.reviewed[0].tests == ("t.py",)
    assert "no job waits for a worker" in work_none()
    assert tfgrpo("learn", "status") == f"{job[:8]}  validated              one, two\n"


def test_no_job_is_worked_where_rollouts_have_no_agent(shop: Path, job: str, tell: Tell) -> None:
    used = tell(JobProof(status=LearningStatus.VALIDATED, scenario="one"))
    said = tfgrpo("learn", "work", "--check-sandbox", "none", "--rollouts", "2", code=1)
    assert "no actor is configured" in said
    assert used == []
    assert "queued" in tfgrpo("learn", "status")


def test_a_job_that_needs_a_person_says_what_to_do(shop: Path, job: str, tell: Tell) -> None:
    used = tell(DEFERRED)
    work_none("--once")
    said = tfgrpo("learn", "status")
    assert f"{job[:8]}  needs_manual_scenario  scenario_synthesis: no runner\n" in said
    assert f"tfgrpo learn show {job[:8]}" in said
    assert f"what to do: {learning(shop) / job / 'one.manual.md'}" in tfgrpo("learn", "show", job[:8])
    (shop / "mine.toml").write_text(recipe("mine.py"))
    said = tfgrpo(
        "learn", "requeue", job[:8], "--approver", "ben", "--reason", "said", "--scenario", "mine.toml"
    )
    assert f"queued  {job} by ben\n  signed file, sha256 " in said
    work_none()
    assert (learning(shop) / job / RECIPE).read_text() == recipe("mine.py")
    assert len(used) == 2
    manifest = json.loads(tfgrpo("learn", "show", job, "--json"))
    assert [how["approver"] for how in manifest["requeues"]] == ["ben"]
    assert len(manifest["attempts"]) == 2


def test_a_stalled_job_is_rebuilt(shop: Path, job: str, tell: Tell) -> None:
    (learning(shop) / job / "snapshot.tar.gz").write_text("x")
    git(shop, "update-ref", "-d", f"refs/learning/{job}")
    assert "stalled_snapshot" in work_none()
    said = tfgrpo("learn", "show", job)
    assert "its reference is gone" in said
    assert "--- logs/1-git-status.txt\n## main" in said
    assert "?? test_a.py" in said
    rebuilt = tfgrpo("learn", "requeue", job, "--approver", "ben", "--reason", "gone", "--rebuild")
    manifest = json.loads(tfgrpo("learn", "show", job, "--json"))
    assert f"snapshot of commit {manifest['snapshot']['commit']}, tarball sha256 " in rebuilt
    tell(JobProof(status=LearningStatus.VALIDATED, scenario="one"))
    assert "1 validated" in work_none()


def test_a_snapshot_is_taken_again_where_there_is_none(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("pytest_tfgrpo.patterns.capture.capture.WAITS_S", ())

        @contextmanager
        def full(*_: object, **__: object) -> Iterator[None]:
            raise OSError(28, "No space left on device")
            yield

        patch.setattr("pytest_tfgrpo.patterns.capture.capture.take_snapshot", full)
        told = tfgrpo("learn", "capture", "--approver", "ann", code=1)
        assert "the capture failed three times: " in told
    said = tfgrpo("learn", "status")
    assert "snapshot_failed" in said
    job = said[:8]
    how = ("learn", "requeue", job, "--approver", "ben", "--reason", "made room")
    assert "has no snapshot: let --rebuild take one" in tfgrpo(*how, code=1)
    tfgrpo(*how, "--rebuild")
    manifest = json.loads(tfgrpo("learn", "show", job, "--json"))
    assert manifest["captured"]["files"] == ["a.py", "test_a.py"]
    assert git(shop, "rev-parse", manifest["snapshot"]["ref"]) == manifest["snapshot"]["commit"]


def test_an_agents_own_idea_waits_for_a_person(shop: Path, tell: Tell) -> None:
    job = captured(shop, trigger="self")
    tell(JobProof(status=LearningStatus.VALIDATED, scenario="one"))
    assert "no job waits for a worker" in work_none()
    assert f"`tfgrpo learn approve {job[:8]} --approver ID`" in tfgrpo("learn", "status")
    value = json.loads(tfgrpo("learn", "status", "--json"))
    assert [one["waits"] for one in value["jobs"]] == [True]
    assert "alerts" in value
    assert "'ann' proposed job" in tfgrpo("learn", "approve", job, "--approver", "ann", code=1)
    assert "'ann' proposed job" in tfgrpo("learn", "show", job, "--tests", "--reviewer", "ann", code=1)
    assert tfgrpo("learn", "approve", job, "--approver", "ben") == f"approved  {job} by ben\n"
    assert "1 validated" in work_none()


def test_who_has_seen_the_tests_is_kept(shop: Path, job: str) -> None:
    assert "diff of the tests seen by nobody" in tfgrpo("learn", "show", job)
    said = tfgrpo("learn", "show", job, "--tests", "--reviewer", "ben")
    assert "+assert True\n" in said
    assert "a.py b/a.py" not in said.replace("test_a.py", "")
    assert said.endswith("seen by ben\n")
    assert reviewers_of_tests(learning(shop), job) == ("ben",)
    assert "belong together" in tfgrpo("learn", "show", job, "--tests", code=2)


def test_a_changed_diff_is_shown_to_nobody(shop: Path, job: str) -> None:
    (learning(shop) / job / "diff.patch").write_text("x")
    said = tfgrpo("learn", "show", job, "--tests", "--reviewer", "ben", code=1)
    assert "is not what was captured" in said
    assert reviewers_of_tests(learning(shop), job) == ()


def test_old_jobs_go(shop: Path, job: str, tell: Tell) -> None:
    tell(JobProof(status=LearningStatus.VALIDATION_FAILED, reason="x"))
    work_none()
    assert tfgrpo("learn", "prune") == "no job ended more than 30 days ago\n"
    assert tfgrpo("learn", "prune", "--days", "0") == f"removed  {job[:8]}  validation_failed\n"
    assert not (learning(shop) / job).exists()
    assert git(shop, "for-each-ref", "refs/learning") == ""
    assert "no jobs in" in tfgrpo("learn", "status")


@pytest.mark.parametrize("status", [PatternStatus.CANDIDATE, PatternStatus.ACTIVE])
def test_a_job_that_a_pattern_rests_on_stays(status: PatternStatus, shop: Path, job: str, tell: Tell) -> None:
    tell(JobProof(status=LearningStatus.VALIDATION_FAILED, reason="x"))
    work_none()
    put(shop, make_pattern(evidence=make_evidence(job=job), status=status))
    kept = f"kept     {job[:8]}  validation_failed: a pattern rests on it\n"
    assert tfgrpo("learn", "prune", "--days", "0") == kept
    assert (learning(shop) / job).is_dir()


def test_a_broken_log_is_said_by_every_command(shop: Path, job: str) -> None:
    log = learning(shop) / "log.jsonl"
    log.write_text(log.read_text().replace("ann", "eve") * 2)
    for command in (["status"], ["show", job], ["prune"], ["work", "--check-sandbox", "none"]):
        assert "owed to the log: " in tfgrpo("learn", *command)
    assert json.loads(tfgrpo("learn", "status", "--json"))["warnings"] != []


def test_the_settings_are_read_from_the_root(shop: Path, job: str) -> None:
    (shop / "learn.toml").write_text("suit = 1\n")
    assert "learn.toml:1: suit: unknown key 'suit'" in tfgrpo("learn", "status", code=1)


@pytest.mark.parametrize("flags", [["--jobs", "65"], ["--once", "--jobs", "2"]])
def test_what_does_not_go_together_is_refused(shop: Path, flags: list[str]) -> None:
    assert "--jobs" in tfgrpo("learn", "work", *flags, code=2)
