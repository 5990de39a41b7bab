"""Language models in a run: their calls, their budget, and a judge."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.completers import ScriptedCompleter
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not

from pytest_tfgrpo.core.errors import BudgetError, ProviderError
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.records import Frame, JudgeResult, Rollout, Run, Trajectory
from pytest_tfgrpo.core.scenarios import Criterion, Scenario
from pytest_tfgrpo.llm.calls import Calls
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.llm.protocol import Message, Request
from pytest_tfgrpo.protocols import ActorCall, LearningContext, Proposal
from pytest_tfgrpo.runs.journal.journal_contents import load_run, read_log, read_to_resume

PRICE = 0.01


class Asking:
    """Asks the teacher once for each group, and learns nothing."""

    name = "asking"

    def __init__(self, teacher: ScriptedCompleter) -> None:
        self.teacher = teacher

    async def propose(self, context: LearningContext) -> Proposal:
        for group in context.groups:
            await context.calls.complete(
                self.teacher,
                Request(messages=(Message(role="user", content=group.scenario_id),), temperature=0.0),
                key=f"e{context.epoch}.learn.{group.scenario_id}",
                purpose="learn",
                epoch=context.epoch,
                subject=group.scenario_id,
            )
        return Proposal(failures={"malformed": 2})


class MeteredActor(ScriptedActor):
    """Makes two model calls a rollout, each of which asks the budget."""

    metered, concurrency = True, None

    def __init__(self, budget: Budget) -> None:
        super().__init__(self._solve)
        self._budget = budget
        self.paid_usd = 0.0

    async def _solve(self, call: ActorCall) -> Trajectory:
        frames: tuple[Frame, ...] = ()
        for step in range(2):
            try:
                await self._budget.reserve({"usd": 2 * PRICE})
            except BudgetError as error:
                raise ProviderError(str(error), "budget", frames=frames) from error
            await asyncio.sleep(0)
            self.paid_usd += PRICE
            self._budget.settle({"usd": 2 * PRICE}, usd=PRICE, tokens=1)
            frames += (Frame(kind="model", name="m", output=str(step), cost_usd=PRICE, tokens=1),)
        return Trajectory(answer=three_or_not(call), frames=frames)


class YesOrNo:
    """Judges by the seed, and asks a model for each opinion."""

    name, identity = "openai:judge", {}

    def __init__(self, model: ScriptedCompleter, score: float | None = 0.75) -> None:
        self.model = model
        self.score = score

    async def ask_judge(self, scenario: Scenario, rollout: Rollout, calls: Calls) -> JudgeResult:
        await calls.complete(
            self.model,
            Request(messages=(Message(role="user", content=rollout.answer),), temperature=0.0),
            key=f"e{rollout.epoch}.judge.{scenario.id}.r{rollout.index}",
            purpose="judge",
            epoch=rollout.epoch,
            subject=scenario.id,
        )
        return JudgeResult(score=self.score, votes=(), reason="said so")


def rollouts(run: Run) -> list[Rollout]:
    return [r for p in run.phases for g in p.groups for r in g.rollouts]


def with_rubric(truth: str = "checks") -> list[Scenario]:
    return [replace(s, rubric=(Criterion(text="is right"),), truth=truth) for s in suite(2, 2)]  # type: ignore[arg-type]


def test_learning_calls_are_in_the_journal_and_in_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    teacher = ScriptedCompleter(lambda _: "fine")
    run, _ = run_job(make_job(ScriptedActor(three_or_not), tmp_path, job_optimizer=Asking(teacher)), folder)
    assert [len(p.calls) for p in run.phases] == [0, 4, 4, 0]
    assert run.phases[1].revision is not None
    assert run.phases[1].revision.failures == {"malformed": 2}
    assert [p.calls for p in load_run(folder).phases] == [p.calls for p in run.phases]


@pytest.mark.parametrize("keep", [0.3, 0.45, 0.6, 0.7, 0.8])
def test_a_run_cut_anywhere_asks_the_teacher_nothing_twice(tmp_path: Path, keep: float) -> None:
    whole = tmp_path / "a" / "demo" / "runs" / "run1"
    run_job(
        make_job(
            ScriptedActor(three_or_not), tmp_path, job_optimizer=Asking(ScriptedCompleter(lambda _: "fine"))
        ),
        whole,
    )
    folder = tmp_path / "b" / "demo" / "runs" / "run1"
    folder.mkdir(parents=True)
    journal = (whole / JOURNAL).read_bytes()
    (folder / JOURNAL).write_bytes(journal[: int(len(journal) * keep)])
    log = read_log(folder)
    teacher = ScriptedCompleter(lambda _: "fine")
    run, _ = run_job(
        make_job(
            ScriptedActor(three_or_not),
            tmp_path,
            job_optimizer=Asking(teacher),
            job_resumed=read_to_resume(folder),
        ),
        folder,
    )
    learned = set(log.revisions)
    known = [call for call in log.calls.values() if call.epoch not in learned]
    assert len(teacher.requests) == 4 * (2 - len(learned)) - len(known)
    for found in (run, load_run(folder)):
        assert {c.key for p in found.phases for c in p.calls} == {
            f"e{epoch}.learn.train-{n}" for epoch in (1, 2) for n in range(4)
        }
    assert run.status == "complete"


def test_a_teacher_whose_calls_the_budget_refuses_leaves_an_incomplete_run(tmp_path: Path) -> None:
    class Refused(Asking):
        async def propose(self, context: LearningContext) -> Proposal:
            raise BudgetError("budget_usd of 1 is used up")

    job = make_job(
        ScriptedActor(three_or_not), tmp_path, job_optimizer=Refused(ScriptedCompleter(lambda _: ""))
    )
    run, _ = run_job(job)
    assert (run.status, run.reason) == ("incomplete", "budget_usd of 1 is used up")
    assert run.phases[-1].revision is None


def test_a_metered_actor_never_spends_more_than_the_budget_and_what_it_spent_is_not_lost(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    budget = Budget({"budget_usd": 0.255})
    actor = MeteredActor(budget)
    run, _ = run_job(make_job(actor, tmp_path, job_budget=budget, concurrency=3, budget_usd=0.255), folder)
    assert run.status == "incomplete"
    assert "budget_usd of 0.255 is used up" in run.reason
    assert 0.2 < actor.paid_usd <= 0.255
    log = read_log(folder)
    kept = sum(r.cost_usd or 0.0 for r in [*log.rollouts.values(), *log.abandoned])
    assert kept == pytest.approx(actor.paid_usd)


def test_the_last_of_a_budget_finishes_what_is_under_way_and_begins_nothing_new(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    budget = Budget({"budget_usd": 0.105})
    actor = MeteredActor(budget)
    run_job(make_job(actor, tmp_path, job_budget=budget, concurrency=20, budget_usd=0.105), folder)
    log = read_log(folder)
    assert actor.paid_usd == pytest.approx(0.09), "another call might cost 0.02"
    assert len(log.rollouts) == 4
    assert [r.cost_usd for r in log.abandoned] == [pytest.approx(0.01)], "who asked nothing has no bill"


def test_an_attempt_that_the_budget_ended_is_made_again_with_a_larger_one(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    budget = Budget({"budget_usd": 0.25})
    first = MeteredActor(budget)
    run_job(make_job(first, tmp_path, job_budget=budget, concurrency=3, budget_usd=0.25), folder)
    log = read_log(folder)
    assert len(first.calls) > len(log.rollouts)
    larger = Budget({"budget_usd": 10.0})
    second = MeteredActor(larger)
    job = make_job(second, tmp_path, job_budget=larger, budget_usd=10.0, job_resumed=read_to_resume(folder))
    run, _ = run_job(job, folder)
    assert run.status == "complete"
    assert {r.status for r in rollouts(run)} == {"ok"}
    assert len(second.calls) == len(rollouts(run)) - len(log.rollouts)


def test_the_judge_is_asked_once_for_each_answer_and_its_opinion_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    model = ScriptedCompleter(lambda _: "yes")
    job = make_job(ScriptedActor(three_or_not), tmp_path, scenarios=with_rubric(), job_judge=YesOrNo(model))
    run, _ = run_job(job, folder)
    assert {r.opinion.score for r in rollouts(run) if r.opinion} == {0.75}
    assert len(model.requests) == len(rollouts(run))
    again = load_run(folder)
    assert [r.opinion for r in rollouts(again)] == [r.opinion for r in rollouts(run)]


def test_a_scenario_without_rubric_is_not_judged(tmp_path: Path) -> None:
    model = ScriptedCompleter(lambda _: "yes")
    run, _ = run_job(make_job(ScriptedActor(three_or_not), tmp_path, job_judge=YesOrNo(model)))
    assert model.requests == []
    assert all(r.opinion is None for r in rollouts(run))


def test_without_a_verdict_a_judged_scenario_is_an_error_in_the_run_and_in_its_journal(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    judge = YesOrNo(ScriptedCompleter(lambda _: "?"), score=None)
    job = make_job(ScriptedActor(three_or_not), tmp_path, scenarios=with_rubric("judge"), job_judge=judge)
    run, _ = run_job(job, folder)
    for found in (run, load_run(folder)):
        assert {(r.status, r.failure.code if r.failure else "") for r in rollouts(found)} == {
            ("error", "judge")
        }


def test_a_resumed_run_asks_the_judge_for_nothing_that_is_on_file(tmp_path: Path) -> None:
    whole = tmp_path / "a" / "demo" / "runs" / "run1"
    scenarios = with_rubric()

    def job(model: ScriptedCompleter, **more: Any) -> Any:
        return make_job(
            ScriptedActor(three_or_not), tmp_path, scenarios=scenarios, job_judge=YesOrNo(model), **more
        )

    first = ScriptedCompleter(lambda _: "yes")
    run_job(job(first), whole)
    folder = tmp_path / "b" / "demo" / "runs" / "run1"
    folder.mkdir(parents=True)
    journal = (whole / JOURNAL).read_bytes()
    (folder / JOURNAL).write_bytes(journal[: len(journal) // 2])
    log = read_log(folder)
    assert log.calls
    second = ScriptedCompleter(lambda _: "yes")
    run, _ = run_job(job(second, job_resumed=read_to_resume(folder)), folder)
    assert run.status == "complete"
    assert len(second.requests) == len(first.requests) - len(log.calls)
