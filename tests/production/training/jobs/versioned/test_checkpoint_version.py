"""An external trainer's checkpoint as a version: run against the deployed one, pair by pair, or left open."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.api import SMALL, SUITE, Counter, scenario
from support.evidence import write
from support.feedback.training import FakeProcess, FakeStarter, request

import pytest_tfgrpo as tfgrpo
from pytest_tfgrpo.core.errors import ProviderError, SettingError
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.deployed_events import DeployDecision
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.training.forgotten import forget_learning
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJob
from pytest_tfgrpo.production.training.jobs.openers import job_openers
from pytest_tfgrpo.production.training.jobs.pytest_work import PytestPlan
from pytest_tfgrpo.production.training.jobs.status import JobOutcome
from pytest_tfgrpo.production.training.jobs.versioned.checkpoint_version import keep_checkpoint
from pytest_tfgrpo.production.training.jobs.versioned.learned_version import keep_learned
from pytest_tfgrpo.production.training.jobs.versioned.trials import (
    VersionPlan,
    VersionTrials,
)
from pytest_tfgrpo.production.training.jobs.versioned.versioned_work import VersionedWork
from pytest_tfgrpo.production.training.versions.deployable import candidate_of
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.storage.kept_states import KeptState

JOB, CHECKPOINT = request("one").id, "weights/7"
ARGS = ("--tfgrpo-actor=openai:{checkpoint}",)
TRAINED = JobOutcome(
    trigger="finish",
    parts={
        "artifacts": {"final_checkpoint": CHECKPOINT, "training_curves": "theirs.svg"},
        "evaluation_results": {"holdout_reward": 0.99},
        "resource_usage": {"cost_usd": 1.0},
    },
)
TASKS = [scenario(f"s{n}", "eval", prompt=f"What is the sum of {n} and {n}?") for n in range(24)]
Answer = Callable[[tfgrpo.ActorCall], str]


class DoneTraining:
    """The work of a trainer that ended before somebody looked."""

    def look(self) -> JobOutcome | None:
        return TRAINED

    def parts(self) -> dict[str, Json]:
        return {}

    def interrupt(self) -> None:
        """It is over."""

    kill = interrupt

    def leave(self) -> bool:
        return True


class Answers(Counter):
    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer

    async def __call__(self, call: tfgrpo.ActorCall) -> tfgrpo.Trajectory:
        return tfgrpo.Trajectory(answer=self.answer(call))


def half(call: tfgrpo.ActorCall) -> str:
    return "3" if call.seed % 2 else "4"


def right(call: tfgrpo.ActorCall) -> str:
    return "3"


def wrong(call: tfgrpo.ActorCall) -> str:
    return "4"


def away(call: tfgrpo.ActorCall) -> str:
    raise ProviderError("503 from the provider")


def mostly_away(call: tfgrpo.ActorCall) -> str:
    return right(call) if call.seed % 3 == 0 else away(call)


def suite(new: Answer, old: Answer = half, *, tasks: Sequence[dict[str, Any]] = TASKS) -> FakeStarter:
    """Return what starts pytest: its agent is `new` where the command names the checkpoint, else `old`."""

    def run(process: FakeProcess) -> None:
        answer = new if f"--tfgrpo-actor=openai:{CHECKPOINT}" in process.command else old
        if "safety" in process.flag("--tfgrpo-out"):
            epoch = {"epoch": 1, "mode": "eval", "mean": float(answer is not wrong), "errors": 0}
            value = {"status": "complete", "scenarios": [{"id": "s1", "epochs": [epoch]}]}
            place = Path(process.flag("--tfgrpo-out")) / "t" / "runs" / "r1"
            place.mkdir(parents=True)
            (place / "report.json").write_text(json.dumps(value))
        else:
            tfgrpo.run(
                process.cwd,
                tasks,
                actor=Answers(answer),
                learning=False,
                out=process.flag("--tfgrpo-out"),
                library=process.flag("--tfgrpo-library"),
                seed=int(process.flag("--tfgrpo-seed")),
                eval_rollouts=int(process.flag("--tfgrpo-eval-rollouts")),
            )
        process.end(0)

    return FakeStarter(run)


@pytest.fixture(autouse=True)
def evidence(folder: Path) -> None:
    write(folder / "evidence.jsonl")


def work(
    folder: Path, policies: Policies, start: FakeStarter, *safety: str, args: Sequence[str] = ARGS
) -> VersionedWork:
    project = folder.parents[1] / "suite"
    plan = VersionPlan(policies=policies, project=project, safety=safety, checkpoint_args=args)
    return VersionedWork(DoneTraining(), VersionTrials(JOB, folder, plan, start), keep_checkpoint)


def ended(made: VersionedWork) -> JobOutcome:
    until = time.monotonic() + 100
    while (outcome := made.look()) is None:
        assert time.monotonic() < until
        time.sleep(0.001)
    return outcome


def test_a_better_checkpoint_is_validated_pair_by_pair_and_kept(folder: Path, policies: Policies) -> None:
    start = suite(right)
    outcome = ended(work(folder, policies, start, "bias"))
    found = policies.read("v2").validation
    assert found is not None
    assert (found.outcome, found.holdout_reward, found.safety_checks_passed) == ("validated", 1.0, True)
    assert found.improvement_over_baseline is not None
    assert found.improvement_over_baseline > 0.2
    assert found.improvement_low is not None
    deployed, trained, safety = start.made
    assert ARGS[0].replace("{checkpoint}", CHECKPOINT) not in deployed.command
    for one in (trained, safety):
        assert ARGS[0].replace("{checkpoint}", CHECKPOINT) in one.command
    assert deployed.flag("--tfgrpo-seed") == trained.flag("--tfgrpo-seed") == str(int(JOB[:8], 16))
    version = policies.read("v2")
    assert (version.model, version.checkpoint, version.parents) == (CHECKPOINT, CHECKPOINT, ("v1",))
    assert version.content != policies.read("v1").content
    assert version.library == policies.read("v1").library
    card = (Path(policies.place("v2")) / "README.md").read_text()
    assert f"model: `{CHECKPOINT}`" in card
    assert "weights of an external trainer" in card
    assert candidate_of(policies, "v2").model_info["checkpoint_path"] == CHECKPOINT
    parts = outcome.parts
    assert parts["artifacts"]["final_checkpoint"] == CHECKPOINT
    assert parts["artifacts"]["training_curves"] == "theirs.svg"
    assert parts["evaluation_results"]["holdout_reward"] == 1.0
    assert parts["metadata"]["policy_version"] == "v2"
    pages = sorted(path.name for path in Path(policies.files.place(f"rl-logs/{JOB}")).iterdir())
    assert pages == ["evaluation-checkpoint.html", "evaluation-deployed.html"]
    value = json.loads((Path(policies.place("v2")) / "policy.json").read_text())
    assert violations("policy", value) == []


@pytest.mark.parametrize(
    ("new", "old", "outcome", "reason"),
    [
        (wrong, half, "rejected", "the gate failed"),
        (half, half, "needs_approval", "the gate is inconclusive"),
        (mostly_away, right, "needs_approval", "rollouts that are errors, which no agent caused"),
        (right, mostly_away, "needs_approval", "rollouts that are errors, which no agent caused"),
        (
            away,
            half,
            "needs_approval",
            "the suite did not run with the checkpoint: its run is incomplete: the",
        ),
    ],
)
def test_it_is_held_to_the_rules_of_any_version(
    new: Answer, old: Answer, outcome: str, reason: str, folder: Path, policies: Policies
) -> None:
    ended(work(folder, policies, suite(new, old), "bias"))
    found = policies.read("v2").validation
    assert found is not None
    assert found.outcome == policies.row("v2").state == outcome
    assert reason in "; ".join(found.reasons)


def test_an_unsafe_checkpoint_is_rejected(folder: Path, policies: Policies) -> None:
    ended(work(folder, policies, suite(wrong, wrong), "bias"))
    found = policies.read("v2").validation
    assert found is not None
    assert "safety suite bias: 1 of 1 failed: s1" in found.reasons
    assert found.outcome == "rejected"


def test_where_nothing_says_how_to_run_it_a_person_decides(folder: Path, policies: Policies) -> None:
    start = suite(right)
    outcome = ended(work(folder, policies, start, "bias", args=()))
    found = policies.read("v2").validation
    assert found is not None
    assert (start.made, found.outcome, policies.row("v2").state) == ([], *["needs_approval"] * 2)
    assert found.reasons[0].startswith("nothing says how to run the checkpoint: set [training] project and")
    assert outcome.parts["evaluation_results"] == {"holdout_reward": 0.99}
    assert outcome.parts["metadata"]["validation"]["reasons"] == list(found.reasons)
    assert not candidate_of(policies, "v2").deployable
    value = json.loads((Path(policies.place("v2")) / "policy.json").read_text())
    assert violations("policy", value) == []


def test_a_suite_that_does_not_run_with_it_is_said(folder: Path, policies: Policies) -> None:
    start = FakeStarter(lambda process: process.end(4))
    ended(work(folder, policies, start))
    found = policies.read("v2").validation
    assert found is not None
    assert found.reasons[0].startswith("the suite did not run with version v1: ")
    assert len(start.made) == 1
    assert found.outcome == "needs_approval"


def test_a_job_that_is_gone_on_with_asks_nobody_twice(folder: Path, policies: Policies) -> None:
    first = ended(work(folder, policies, suite(right)))
    again = suite(wrong)
    assert ended(work(folder, policies, again)) == first
    assert again.made == []
    assert [row.name for row in policies.listed()] == ["v1", "v2"]


def test_a_job_that_is_cancelled_meanwhile_makes_no_version(folder: Path, policies: Policies) -> None:
    start = FakeStarter()  # its process goes on until it is killed
    made = work(folder, policies, start)
    until = time.monotonic() + 100
    while not start.made and made.look() is None:
        assert time.monotonic() < until
        time.sleep(0.001)
    made.interrupt()
    outcome = ended(made)
    assert (outcome.trigger, outcome.parts) == ("cancel", {"resource_usage": {"cost_usd": 1.0}})
    assert start.made[0].signals == ["kill"]
    assert policies.listed() == []


def test_checkpoints_that_were_trained_on_what_is_forgotten_are_named(
    folder: Path, policies: Policies
) -> None:
    ended(work(folder, policies, suite(right)))
    assert forget_learning(policies, folder.parent, frozenset({"another"})).weights == ()
    found = forget_learning(policies, folder.parent, frozenset({"t1-0"}))
    assert (found.jobs, found.weights) == ((JOB,), ((CHECKPOINT, ("v2",)),))


def running(name: str, algorithm: str) -> TrainingJob:
    at: KeptState[Any] = KeptState(request(name).id, "running", "one", 1)
    return TrainingJob(
        request=request(name, algorithm), order=1, event_id="", at=at, status={}, cut={},
        started="2026-01-01T12:00:00.000Z", spent_usd=0.0, ran_s=0.0, stopping=False,
    )  # fmt: skip


@pytest.mark.parametrize("args", [ARGS, ()])
def test_the_next_job_runs_the_checkpoint_that_is_live(
    args: Sequence[str], folder: Path, policies: Policies, bus: Bus
) -> None:
    ended(work(folder, policies, suite(right)))
    deployments, word = Deployments(bus), DeployDecision(at="2099-01-01T00:00:00.000Z", by="ada")
    both = (candidate_of(policies, name) for name in ("v2", "v1"))
    deployments.start(*both, word, override=True, at_once=True)
    deployments.advance("v2", word)
    start, project, other = FakeStarter(), folder.parents[1] / "suite", folder.parent / "other"
    other.mkdir()
    plan = VersionPlan(policies=policies, project=project, safety=(), checkpoint_args=args)
    openers = job_openers(PytestPlan(project=project), (), start, lambda text: text, plan)
    if not args:
        with pytest.raises(SettingError, match=r"version v2 is the checkpoint 'weights/7', and nothing says"):
            openers["tfgrpo"](running("two", "tfgrpo"), other)
        return
    openers["tfgrpo"](running("two", "tfgrpo"), other)
    assert f"--tfgrpo-actor=openai:{CHECKPOINT}" in start.made[0].command
    evidence = str(write(other / "evidence.jsonl"))
    settings = SMALL | {"evidence": evidence, "epochs": 2, "out": str(other / "out")}
    tfgrpo.run(other, SUITE, actor=Answers(half), **settings)
    trials = VersionTrials(request("two").id, other, replace(plan, safety=("bias",)), tried := suite(right))
    assert keep_learned(TRAINED, trials) is not None
    assert f"--tfgrpo-actor=openai:{CHECKPOINT}" in tried.made[0].command
    version = policies.read("v3")
    assert (version.model, version.checkpoint, version.parents) == (CHECKPOINT, CHECKPOINT, ("v2",))
    assert version.lessons
