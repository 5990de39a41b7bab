"""A run that becomes a version: from the deployed library to its files, over kills and cancels."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.api import SMALL, SUITE, Counter
from support.evidence import GROUPS, group, write
from support.feedback.training import FakeProcess, FakeStarter, request

import pytest_tfgrpo as tfgrpo
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.evidence import EvidenceGroup
from pytest_tfgrpo.core.files import REPORT_HTML
from pytest_tfgrpo.learning.library.library import load_library
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.training.jobs.process import KEEPER, LOG
from pytest_tfgrpo.production.training.jobs.status import JobOutcome
from pytest_tfgrpo.production.training.jobs.versioned.learned_version import keep_learned
from pytest_tfgrpo.production.training.jobs.versioned.trials import (
    EVALUATION,
    IN_PROJECT,
    SAFETY,
    VersionPlan,
    VersionTrials,
    starting_library,
)
from pytest_tfgrpo.production.training.jobs.versioned.versioned_work import VersionedWork
from pytest_tfgrpo.production.training.versions.deployable import candidate_of
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.runs.journal.journal import encode

ALIKE = replace(group(1), attempts=tuple(replace(one, answer="same", steps=()) for one in group(1).attempts))
"""Attempts between which nothing differs but their rewards."""
JOB = request("one").id
FINISHED = JobOutcome(
    trigger="finish", parts={"artifacts": {"final_checkpoint": "x"}, "metadata": {"gate": "pass"}}
)


class DoneRun:
    """The work of a run that ended before somebody looked."""

    def __init__(self, outcome: JobOutcome = FINISHED) -> None:
        self.outcome, self.signals = outcome, list[str]()

    def look(self) -> JobOutcome | None:
        return self.outcome

    def parts(self) -> dict[str, Any]:
        return {"progress": {}}

    def interrupt(self) -> None:
        self.signals.append("interrupt")

    def kill(self) -> None:
        self.signals.append("kill")

    def leave(self) -> bool:
        return True


def learn(folder: Path, *groups: EvidenceGroup) -> None:
    """Make the run of a job that learns from evidence, in its folder."""
    evidence = write(folder / "evidence.jsonl", groups or GROUPS)
    tfgrpo.run(
        folder,
        SUITE,
        actor=Counter(),
        **SMALL | {"evidence": str(evidence), "epochs": 2, "out": str(folder / "out"), "seed": 1},
    )


def safe_or_not(score: float) -> Callable[[FakeProcess], None]:
    """Return what ends a process of pytest with the report of a safety suite."""

    def end(process: FakeProcess) -> None:
        place = Path(process.flag("--tfgrpo-out")) / "t" / "runs" / "r1"
        place.mkdir(parents=True)
        epoch = {"epoch": 1, "mode": "eval", "mean": score, "errors": 0}
        value = {"status": "complete", "scenarios": [{"id": "s1", "epochs": [epoch]}]}
        (place / "report.json").write_text(json.dumps(value))
        made = {"epoch": 1, "mode": "eval", "rollout_id": "r", "cost_usd": 0.25}
        (place / "journal.jsonl").write_bytes(encode(1, "rollout", made))
        process.end(0)

    return end


def work(
    folder: Path, policies: Policies, start: FakeStarter, *safety: str, run: Any = None
) -> VersionedWork:
    suite = folder.parents[1] / "suite"
    plan = VersionPlan(policies=policies, project=suite, safety=safety, args=("--tfgrpo-seed=1",))
    return VersionedWork(run or DoneRun(), VersionTrials(JOB, folder, plan, start), keep_learned)


def ended(made: VersionedWork) -> JobOutcome:
    until = time.monotonic() + 100
    while (outcome := made.look()) is None:
        assert time.monotonic() < until
        time.sleep(0.001)
    return outcome


def test_what_a_run_learned_is_tried_validated_and_kept(folder: Path, policies: Policies) -> None:
    learn(folder)
    start = FakeStarter(safe_or_not(1.0))
    outcome = ended(work(folder, policies, start, "bias"))
    place = policies.place("v2")
    assert outcome.trigger == "finish"
    assert outcome.parts["artifacts"] == {
        "final_checkpoint": place,
        "model_card": f"{place}/README.md",
        "tensorboard_logs": policies.files.place(f"rl-logs/{JOB}"),
        "training_curves": policies.files.place(f"rl-viz/{JOB}/curve.svg"),
    }
    metadata = outcome.parts["metadata"]
    assert (metadata["gate"], metadata["policy_version"]) == ("pass", "v2")
    assert metadata["validation"]["safety_checks_passed"] is True
    version = policies.read("v2")
    assert (version.job, version.parents) == (JOB, ("v1",))
    assert {id_ for one in policies.sources("v2") for id_ in one.trajectories} >= {"t1-0", "t1-1"}
    logs = sorted(path.name for path in Path(policies.files.place(f"rl-logs/{JOB}")).iterdir())
    assert logs == ["journal.jsonl", "report.html", "report.json"]
    assert Path(policies.files.place(f"rl-viz/{JOB}/curve.svg")).read_text().startswith("<svg")
    (called,) = start.made
    suite = folder.parents[1] / "suite"
    assert called.cwd == suite
    assert "--tfgrpo-seed=1" in called.command
    assert load_library(Path(called.flag("--tfgrpo-library"))).hash == version.library
    assert not (suite / IN_PROJECT).exists()


def test_a_version_rests_on_the_journal_where_the_evidence_is_gone(folder: Path, policies: Policies) -> None:
    learn(folder)
    (folder / "evidence.jsonl").unlink()
    assert ended(work(folder, policies, FakeStarter())).trigger == "finish"
    assert {id_ for one in policies.sources("v2") for id_ in one.trajectories} >= {"t1-0", "t1-1"}
    assert policies.read("v2").dataset == {}


def test_the_suites_are_found_from_the_project_where_the_service_names_folders_by_its_own(
    folder: Path, policies: Policies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(folder)
    monkeypatch.chdir(tmp_path)
    start = FakeStarter(safe_or_not(1.0))
    own = folder.relative_to(tmp_path)
    made = work(own, policies, start, "bias", "fixtures/safe")
    assert ended(made).parts["metadata"]["validation"]["safety_checks_passed"] is True
    for called in start.made:
        paths = [called.flag("--tfgrpo-library"), called.flag("--tfgrpo-out"), called.command[6]]
        assert [path for path in paths if not Path(path).is_absolute()] == []
        assert Path(called.command[6]).is_relative_to(tmp_path / "suite")


def test_an_unsafe_version_is_kept_and_rejected(folder: Path, policies: Policies) -> None:
    learn(folder)
    outcome = ended(work(folder, policies, FakeStarter(safe_or_not(0.0)), "bias"))
    said = "safety suite bias: 1 of 1 failed: s1"
    assert said in outcome.parts["metadata"]["validation"]["reasons"]
    assert policies.row("v2").state == "rejected"


def test_a_job_that_is_gone_on_with_makes_no_second_version(folder: Path, policies: Policies) -> None:
    learn(folder)
    first = ended(work(folder, policies, FakeStarter(safe_or_not(1.0)), "bias"))
    again = FakeStarter(safe_or_not(0.0))
    assert ended(work(folder, policies, again, "bias")) == first
    assert again.made == []
    assert [row.name for row in policies.listed()] == ["v1", "v2"]


def test_where_nothing_is_learned_the_job_ends_with_the_version_that_it_started_from(
    folder: Path, policies: Policies
) -> None:
    learn(folder, ALIKE)
    outcome = ended(work(folder, policies, FakeStarter(), "bias"))
    assert outcome.parts["artifacts"] == {"final_checkpoint": policies.place("v1")}
    assert outcome.parts["metadata"]["policy_version"] == "v1"
    assert [row.name for row in policies.listed()] == ["v1"]


@pytest.mark.parametrize("stop", ["interrupt", "kill"])
def test_a_job_that_is_cancelled_while_suites_are_tried_makes_no_version(
    stop: str, folder: Path, policies: Policies
) -> None:
    learn(folder)
    start = FakeStarter()  # its process goes on until it is killed
    run = DoneRun()
    made = work(folder, policies, start, "bias", run=run)
    assert made.look() is None
    until(lambda: start.made or made.look() is not None)
    getattr(made, stop)()
    assert ended(made).trigger == "cancel"
    assert start.made[0].signals == ["kill"]
    assert run.signals == [stop]
    assert policies.deployed() == "v1"
    assert [row.name for row in policies.listed()] == ["v1"]


def until(done: Callable[[], object]) -> None:
    end = time.monotonic() + 100
    while not done():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("taken", [True, False])
def test_suites_under_trial_are_left_to_the_service_that_finds_them(
    taken: bool, folder: Path, policies: Policies
) -> None:
    learn(folder)
    start = FakeStarter()  # its process goes on until it is killed
    made = work(folder, policies, start, "bias")
    assert made.look() is None
    until(lambda: start.made or made.look() is not None)
    if taken:
        (folder / SAFETY / KEEPER).write_text("another")
        until(made.leave)
    else:
        assert not made.leave()
        made.kill()
    assert made.leave()
    assert start.made[0].signals == ([] if taken else ["kill"])
    assert list((folder.parents[1] / "suite" / IN_PROJECT / JOB).iterdir()), "the other one needs its files"
    assert [row.name for row in policies.listed()] == ["v1"]


def test_how_a_run_ends_that_is_not_finished_is_passed_on(folder: Path, policies: Policies) -> None:
    outcome = JobOutcome(trigger="fail", parts={"error": {"code": "DATA"}})
    made = work(folder, policies, FakeStarter(), run=DoneRun(outcome))
    assert made.look() is outcome
    assert made.parts() == {"progress": {}}


def test_a_run_that_is_gone_is_said(folder: Path, policies: Policies) -> None:
    with pytest.raises(StoreError, match="has no complete run; ask for another job"):
        ended(work(folder, policies, FakeStarter()))


def test_a_job_starts_from_what_was_live_when_it_began(folder: Path, policies: Policies, bus: Bus) -> None:
    learn(folder)
    ended(work(folder, policies, FakeStarter()))
    deployments, word = Deployments(bus), DeployDecision(at="2099-01-01T00:00:00.000Z", by="ada")
    both = (candidate_of(policies, name) for name in ("v2", "v1"))
    deployments.start(*both, word, override=True, at_once=True)
    deployments.advance("v2", word)
    assert load_library(starting_library(policies, folder)).experiences == ()  # of v1, also when it goes on
    other = folder.parent / "other"
    other.mkdir()
    assert load_library(starting_library(policies, other)).hash == policies.read("v2").library


def test_safety_suites_spend_what_the_run_left_and_are_on_the_bill(folder: Path, policies: Policies) -> None:
    learn(folder)
    start = FakeStarter(safe_or_not(1.0))
    made = work(folder, policies, start, "bias", "secret_leak", "injection")
    made._trials.plan = replace(made._trials.plan, budget_usd=1.5)
    made._work = DoneRun(replace(FINISHED, parts={**FINISHED.parts, "resource_usage": {"cost_usd": 1.0}}))
    outcome = ended(made)
    assert [one.flag("--tfgrpo-budget-usd") for one in start.made] == ["0.5", "0.25", "0"]
    assert outcome.parts["resource_usage"] == {"cost_usd": 1.75}
    assert made.parts()["resource_usage"] == {"cost_usd": 0.75}


@pytest.mark.parametrize(
    ("code", "stops", "says"),
    [
        (0, False, "the end"),
        (1, False, "the end"),
        (-9, False, None),
        (None, False, None),
        (-9, True, "the end"),
    ],
)
def test_what_a_signal_ended_says_nothing_unless_the_job_was_stopped(
    code: int | None, stops: bool, says: str | None, folder: Path, policies: Policies
) -> None:
    def end(process: FakeProcess) -> None:
        (folder / SAFETY / LOG).write_text("the end")
        process.end(code)
        if stops:
            trials.stop()

    plan = VersionPlan(policies=policies, project=folder, safety=(), budget_usd=2.0)
    trials = VersionTrials(JOB, folder, plan, FakeStarter(end))
    assert trials._call(["pytest"]) == says
    assert trials._process is not None
    trials.stop()
    assert trials._call(["pytest"]) == "", "nothing begins any more"


def test_of_several_runs_of_one_suite_the_page_of_the_newest_is_kept(
    folder: Path, policies: Policies
) -> None:
    trials = VersionTrials(
        JOB, folder, VersionPlan(policies=policies, project=folder, safety=()), FakeStarter()
    )
    for run in ("r1", "r3", "r2"):
        place = folder / EVALUATION / "before" / "task" / "runs" / run
        place.mkdir(parents=True)
        (place / REPORT_HTML).write_text(run)
    kept = Path(trials.log({"gone.txt": folder / "gone.txt"}))
    assert (kept / "evaluation-before.html").read_text() == "r3"
    assert not (kept / "gone.txt").exists()
