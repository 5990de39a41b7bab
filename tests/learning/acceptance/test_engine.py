"""Acceptance in whole runs: what is asked, kept, counted and resumed, and what can never change it."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.acceptance.engine import DEV, WORDS, Teacher, acceptance, one, settle, suite, swayed
from support.jobs import ScriptedActor, make_job

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.files import EXPERIENCES, JOURNAL, LIBRARY
from pytest_tfgrpo.core.records import Phase, Run
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.engine.engine import Engine
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.metrics.epochs import per_epoch
from pytest_tfgrpo.protocols import ActorCall, LearningContext, Proposal, RewardBatch
from pytest_tfgrpo.report.terminal import terminal
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.journal.journal import decode
from pytest_tfgrpo.runs.journal.journal_contents import load_run, read_log, read_to_resume
from pytest_tfgrpo.runs.schedule import require_dev


def lessons(run: Run) -> list[str]:
    return [e.summary32 for e in run.library.experiences]


def dev_calls(actor: ScriptedActor) -> int:
    return sum(call.scenario.id.startswith("dev") for call in actor.calls)


def test_a_harmful_lesson_does_not_come_into_force(tmp_path: Path) -> None:
    run, _, actor = settle(tmp_path, "bad")
    assert run.status == "complete"
    assert lessons(run) == []
    assert [trial.fate for trial in acceptance(run).lessons] == ["refused"]
    assert [o.experience.summary32 for o in acceptance(run).rejected if o.experience] == [
        "How many words, alpha: bad."
    ]
    assert dev_calls(actor) == 2 * DEV * 4
    assert [learned.run_id for learned in run.library.effects] == [run.run_id]


def test_one_bad_lesson_among_good_ones_is_found(tmp_path: Path) -> None:
    run, _, _ = settle(tmp_path, "good", "good", "good", "bad", acceptance="strict")
    assert lessons(run)
    assert not any("bad" in text for text in lessons(run))


def test_without_acceptance_everything_comes_into_force_and_no_dev_scenario_is_asked(tmp_path: Path) -> None:
    run, _, actor = settle(tmp_path, "bad", acceptance="off")
    assert len(lessons(run)) == 1
    assert dev_calls(actor) == 0
    assert run.library.effects == ()
    assert run.phases[1].revision is not None
    assert run.phases[1].revision.acceptance is None


def test_too_few_dev_scenarios_decide_nothing_and_the_run_says_so(tmp_path: Path) -> None:
    run, _, actor = settle(tmp_path, "bad", scenarios=suite(dev=19))
    assert len(lessons(run)) == 1
    assert dev_calls(actor) == 0
    assert acceptance(run).note == "not tried: 19 dev scenarios, at least 20 are needed"


def test_each_dev_scenario_is_asked_as_often_with_a_lesson_as_without_at_the_eval_temperature(
    tmp_path: Path,
) -> None:
    run, _, _ = settle(tmp_path, "bad", "idle")
    groups = run.phases[1].dev
    assert len(groups) == DEV
    for group in groups:
        for lesson in acceptance(run).lessons:
            carried = [lesson.id in rollout.experiences for rollout in group.rollouts]
            assert carried == [lesson.id not in rollout.left_out for rollout in group.rollouts]
            assert sum(carried) == len(carried) / 2 == 4
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    assert {rollout.temperature for rollout in rollouts} == {0.3}
    assert len({rollout.seed for rollout in rollouts}) == len(rollouts)
    assert {rollout.tossed for rollout in rollouts} == {rollout.experiences for rollout in rollouts}
    patterns = {tuple(len(r.experiences) for r in group.rollouts) for group in groups}
    assert len(patterns) > 3  # the coins of two lessons are not thrown together


def test_what_is_settled_as_harm_is_not_asked_again_when_it_is_proposed_again(tmp_path: Path) -> None:
    optimizer = Teacher("bad", epochs=(1, 2))
    run, _, actor = settle(tmp_path, epochs=3, job_optimizer=optimizer)
    assert [acceptance(run, epoch).rollouts for epoch in (1, 2)] == [2 * DEV * 4, 0]
    assert [t.fate for epoch in (1, 2) for t in acceptance(run, epoch).lessons] == ["refused", "refused"]
    assert dev_calls(actor) == 2 * DEV * 4
    assert lessons(run) == []


def test_no_more_dev_rollouts_are_made_than_the_setting_allows(tmp_path: Path) -> None:
    run, _, actor = settle(tmp_path, "good", acceptance_rollouts=130)
    assert dev_calls(actor) == acceptance(run).rollouts == DEV * 5
    run, _, actor = settle(tmp_path, "good", acceptance_rollouts=21)
    assert dev_calls(actor) == acceptance(run).rollouts == 20
    assert len(run.phases[1].dev) == 10


def test_rejected_lessons_are_in_the_journal_and_not_in_store_or_library(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    settle(tmp_path, "good", "bad", folder=folder)
    assert "bad" not in (tmp_path / "demo" / EXPERIENCES).read_text()
    assert "bad" not in (tmp_path / "demo" / LIBRARY).read_text()
    log = read_log(folder)
    assert len(log.candidates[1].applied) == 2
    rejected = log.revisions[1].acceptance
    assert rejected is not None
    assert len(rejected.rejected) == 1


def test_a_run_read_back_is_the_run_that_was_made(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    run, _, _ = settle(tmp_path, "good", "bad", "idle", folder=folder)
    again = load_run(folder)
    assert again.phases[1].dev == run.phases[1].dev
    assert again.phases[1].revision == run.phases[1].revision
    assert build(again, None)["acceptance"] == build(run, None)["acceptance"]


def events(folder: Path) -> list[str]:
    return [
        event.event
        for line in (folder / JOURNAL).read_bytes().splitlines()
        if (event := decode(line)) is not None
    ]


def cut(folder: Path, lines: int) -> None:
    """Leave what a run would have on file that was killed after so many events."""
    kept = (folder / JOURNAL).read_bytes().splitlines(keepends=True)[:lines]
    (folder / JOURNAL).write_bytes(b"".join(kept))


@pytest.mark.parametrize("share", [0.0, 0.2, 0.55, 1.0])
def test_a_run_killed_between_or_within_trials_resumes_to_the_same_and_pays_nothing_twice(
    tmp_path: Path, share: float
) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    kinds = ("good", "bad", "idle", "idle", "idle")
    whole, _, first = settle(tmp_path, *kinds, folder=folder)
    names = events(folder)
    start, end = names.index("candidate") + 1, names.index("revision")
    cut(folder, start + round(share * (end - start)))
    log = read_log(folder)
    optimizer = Teacher(*kinds)
    again, _, second = settle(
        tmp_path, folder=folder, job_optimizer=optimizer, job_resumed=read_to_resume(folder)
    )
    assert optimizer.contexts == []
    assert len(second.calls) == len(first.calls) - len(log.rollouts)
    assert again.library == whole.library
    assert build(again, None)["acceptance"] == build(whole, None)["acceptance"]
    assert load_run(folder).phases[1].dev == again.phases[1].dev


def test_a_finished_epoch_is_resumed_with_its_dev_groups(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    whole, _, _ = settle(tmp_path, "good", "bad", folder=folder)
    cut(folder, events(folder).index("revision") + 2)
    again, _, second = settle(tmp_path, folder=folder, job_resumed=read_to_resume(folder))
    assert dev_calls(second) == 0
    assert {g.group_id for g in again.phases[1].dev} == {g.group_id for g in whole.phases[1].dev}
    assert events(folder).count("candidate") == events(folder).count("revision") == 1


def test_a_budget_that_runs_out_in_a_trial_leaves_the_run_incomplete_and_it_goes_on_where_it_was(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "demo" / "runs" / "run1"
    whole, _, first = settle(tmp_path / "whole", "good", "bad")
    price = {"usd": 0.01}
    run, _, _ = settle(
        tmp_path, "good", "bad", folder=folder, actor=ScriptedActor(swayed, price), budget_usd=1.2
    )
    assert (run.status, run.phases[-1].phase.epoch) == ("incomplete", 1)
    assert run.phases[-1].revision is None
    assert "budget_usd" in run.reason
    paid = len(read_log(folder).rollouts)
    again, _, rest = settle(tmp_path, "good", "bad", folder=folder, job_resumed=read_to_resume(folder))
    assert paid + len(rest.calls) == len(first.calls)
    assert again.library.hash == whole.library.hash


class SlowOnDev:
    """A rewarder that never comes back from a dev scenario."""

    name = "slow"
    weight = 1.0

    def __call__(self, batch: RewardBatch) -> Any:
        if any(id_.startswith("dev") for id_ in batch.scenarios):
            time.sleep(1000)
        return [1.0] * len(batch.rollouts)


def test_a_rewarder_over_its_time_limit_in_a_trial_aborts_the_run(tmp_path: Path) -> None:
    run, _, _ = settle(tmp_path, "good", rewarder_timeout_s=0.5, job_rewarders=(SlowOnDev(),))
    assert run.status == "aborted"
    assert "rewarder_timeout_s" in run.reason
    assert (run.library.experiences, run.phases[-1].revision) == ((), None)


def test_an_actor_that_errors_on_all_dev_rollouts_brings_nothing_into_force(tmp_path: Path) -> None:
    def answer(call: ActorCall) -> str:
        if call.scenario.id.startswith("dev"):
            raise ProviderError("503 from the provider")
        return swayed(call)

    run, _, _ = settle(tmp_path, "good", "idle", actor=ScriptedActor(answer))
    assert run.status == "complete"
    assert lessons(run) == []
    assert acceptance(run).note == "not measured: too many rollouts are errors"
    assert acceptance(run).errors == 2 * DEV * 4
    assert build(run, None)["faults"]["errors"] == {"provider": 2 * DEV * 4}


@pytest.mark.parametrize(("answered", "measured"), [(23, False), (24, True)])
def test_nothing_new_is_kept_where_less_than_half_of_the_dev_scenarios_have_a_score(
    tmp_path: Path, answered: int, measured: bool
) -> None:
    """More than enough have one for a decision on fewer scenarios."""

    def answer(call: ActorCall) -> str:
        split, _, n = call.scenario.id.partition("-")
        if split == "dev" and int(n) >= answered:
            raise ProviderError("503 from the provider")
        return swayed(call)

    actor = ScriptedActor(answer)
    fields = {"scenarios": suite(2, 48, 1), "acceptance_rollouts": 100}
    run, _, _ = settle(tmp_path, "good", actor=actor, **fields)
    assert acceptance(run).errors > 0
    assert (acceptance(run).note == "not measured: too many rollouts are errors") != measured
    assert bool(lessons(run)) == measured


def test_strict_keeps_what_is_shown_to_help_up_to_the_doubt_that_the_record_names(tmp_path: Path) -> None:
    def weakly(call: ActorCall) -> str:
        """Be a little more often right with each lesson of a higher number."""
        helped = sum(n for n, word in enumerate(WORDS) if f", {word}:" in call.prompt.system)
        return "3" if call.seed % 40 < 18 + helped else "4"

    kinds = ["idle"] * 6
    fates: dict[str, set[str]] = {}
    for rule in ("strict", "safe"):
        fields = {"scenarios": suite(1, DEV, 1), "acceptance": rule}
        run, _, _ = settle(tmp_path / rule, *kinds, actor=ScriptedActor(weakly), **fields)
        record = acceptance(run)
        assert (record.rule, record.alpha) == (rule, 0.2)
        least = 1 - record.alpha if rule == "strict" else 0.5
        assert {trial.fate for trial in record.lessons if trial.helps >= least} == {"accepted"}
        assert {trial.fate for trial in record.lessons if trial.helps < least} <= {"refused"}
        fates[rule] = {trial.key for trial in record.lessons if trial.fate == "accepted"}
    assert fates["strict"] < fates["safe"]  # some lesson probably helps, and is not shown to


def test_an_interrupt_in_a_trial_ends_the_run_with_what_it_has(tmp_path: Path) -> None:
    async def stalled(call: ActorCall) -> str:
        if call.scenario.id == "dev-3":
            await asyncio.sleep(60)
        return swayed(call)

    async def play() -> Run:
        actor = ScriptedActor(stalled)
        teacher = Teacher("good")
        fields: dict[str, Any] = {"scenarios": suite(), "epochs": 2, "job_optimizer": teacher}
        engine = Engine(make_job(actor, tmp_path, **fields), folder=None, observe=lambda _: None)
        task = asyncio.create_task(engine.run())
        while not any(call.scenario.id == "dev-3" for call in actor.calls):
            await asyncio.sleep(0.01)
        task.cancel()
        return await task

    run = asyncio.run(play())
    assert (run.status, run.reason, run.phases[-1].phase.epoch) == ("cancelled", "interrupted", 1)
    assert (run.library.experiences, run.phases[-1].revision) == ((), None)


def test_costs_and_rows_count_the_dev_split_apart(tmp_path: Path) -> None:
    run, _, actor = settle(tmp_path, "bad")
    report = build(run, None)
    assert violations("report", report) == []
    assert violations("per-epoch", per_epoch(run)) == []
    row = per_epoch(run)["epochs"][1]
    assert (row["rollouts"], row["dev"]["rollouts"]) == (16, 2 * DEV * 4)
    assert report["cost"]["usd"] == pytest.approx(0.01 * len(actor.calls))
    places = next(s for s in report["scenarios"] if s["id"] == "dev-0")["epochs"]
    assert [(place["epoch"], place["mode"], place["mean"]) for place in places] == [(1, "dev", 0.125)]


def test_the_report_tells_what_was_tried_and_why(tmp_path: Path) -> None:
    run, _, _ = settle(tmp_path, "good", "bad", "idle", "idle")
    told = [text for text in terminal(build(run, None)) if text.startswith("dev split  ")]
    assert len(told) == 1
    assert told[0].startswith("dev split  epoch1 takes in 1 lesson, leaves out 3 lessons; lessons change the")
    every = "\n".join(terminal(build(run, None), verbosity=1))
    assert "refused: -0." in every
    assert "bravo: bad." in every


def test_families_that_training_does_not_see_are_measured_apart_with_lessons_that_others_chose(
    tmp_path: Path,
) -> None:
    families = [one("train", n, family="near") for n in range(4)]
    families += [one("dev", n, family="far" if n < 8 else "near") for n in range(DEV)]

    def reached(call: ActorCall) -> str:
        far = call.scenario.id in {f"dev-{n}" for n in range(8)}
        return str(call.seed % 2 + 3) if far else swayed(call)

    run, _, _ = settle(tmp_path, "good", scenarios=[*families, one("eval", 0)], actor=ScriptedActor(reached))
    found = acceptance(run)
    assert found.unseen == 8
    assert found.gain is not None
    assert found.unseen_gain is not None
    assert found.unseen_gain + 0.1 < found.gain
    (row,) = [row for row in (build(run, None)["acceptance"] or {"epochs": []})["epochs"] if row["gain"]]
    assert (row["unseen"], row["unseen_gain"]) == (8, found.unseen_gain)
    assert not violations("report", build(run, None))
    told = "\n".join(terminal(build(run, None)))
    assert "on the 8 of families that training does not use" in " ".join(told.split())
    bare, _, _ = settle(tmp_path, "good")
    assert acceptance(bare).unseen_gain is None


def test_the_optimizer_never_sees_the_dev_split_and_its_answers_may_not_leak(tmp_path: Path) -> None:
    optimizer = Teacher("idle")
    scenarios = [*suite(), one("dev", 99, prompt="What is the word for the dev letter?")]
    scenarios[-1] = replace(scenarios[-1], checks=(Check(kind="exact", params={"value": "alpha"}),))
    run, _, _ = settle(tmp_path, scenarios=scenarios, job_optimizer=optimizer)
    context = optimizer.contexts[0]
    assert {s.split for s in context.scenarios.values()} == {"train"}
    assert {g.scenario_id for g in context.groups} <= context.scenarios.keys()
    assert run.phases[1].revision is not None
    assert [refusal.code for refusal in run.phases[1].revision.refused] == ["leak"]


TEMPTING = [one("eval", n, prompt="How many words, alpha: bad. Answer 4.") for n in range(9)]
MANY = [one("eval", n) for n in range(40)]


@pytest.mark.parametrize("evals", [[], TEMPTING, MANY[::-1]], ids=["none", "others", "more"])
def test_no_eval_scenario_can_change_the_library(tmp_path: Path, evals: list[Scenario]) -> None:
    """Other prompts, other order, more or fewer of them, placed before and between the others."""
    kinds = ("good", "bad", "idle")
    plain, _, _ = settle(tmp_path, *kinds, group_size=2)
    others = [s for s in suite() if s.split != "eval"]
    mixed = [*evals[::2], *others[:9], *evals[1::2], *others[9:]]
    run, _, _ = settle(tmp_path, *kinds, group_size=2, scenarios=mixed)
    assert run.library.hash == plain.library.hash != empty().hash
    assert build(run, None)["acceptance"] == build(plain, None)["acceptance"]


def test_neither_learning_nor_acceptance_is_handed_an_eval_scenario(tmp_path: Path) -> None:
    optimizer = Teacher("good", "bad", epochs=(1, 2))
    run, seen, _ = settle(tmp_path, epochs=3, job_optimizer=optimizer)
    held = {s.id for s in run.scenarios if s.split == "eval"}
    for context in optimizer.contexts:
        assert not held & ({*context.scenarios} | {g.scenario_id for g in context.groups})
    sweeps = [phase for phase in seen if isinstance(phase, Phase)]
    assert sweeps
    assert not held & {id_ for phase in sweeps for id_ in phase.scenarios}
    assert not held & {g.scenario_id for result in run.phases for g in result.dev}


def test_an_eval_scenario_among_those_that_decide_is_refused() -> None:
    phase = Phase(epoch=1, mode="train", temperature=1.0, rollouts=2, scenarios=("train-1",), dev=("eval-1",))
    with pytest.raises(ValueError, match="'eval-1' of split 'eval' must not decide on a library"):
        require_dev([one("eval", 1)], phase)


def test_what_was_refused_is_tried_again_and_its_teacher_is_told_of_it(tmp_path: Path) -> None:
    optimizer = Teacher("good", "idle", "bad", epochs=(1,))
    run, _, _ = settle(tmp_path, epochs=3, job_optimizer=optimizer)
    first = {trial.key: trial for trial in acceptance(run, 1).lessons}
    refused = {key for key, trial in first.items() if trial.fate == "refused"}
    told = {trial.key: (lesson.summary32, trial) for lesson, trial in optimizer.contexts[1].refused}
    assert told.keys() == refused
    assert optimizer.contexts[0].refused == ()
    assert all(trial == first[key] for key, (_, trial) in told.items())
    carried = {id_ for group in run.phases[2].dev for r in group.rollouts for id_ in r.tossed or ()}
    doubtful = {trial.id for key, trial in first.items() if key in refused and trial.helps > 0.05}
    assert doubtful <= carried
    settled = {trial.id for key, trial in first.items() if key in refused and trial.helps <= 0.05}
    assert settled
    assert not settled & carried


class Late:
    """Is right with a lesson only from some call on, as when a provider changes."""

    def __init__(self) -> None:
        self.helps = False

    def __call__(self, call: ActorCall) -> str:
        told = ": idle." in call.prompt.system
        return "3" if (told and self.helps) or call.seed % 4 == 0 else "4"


def test_a_refused_lesson_returns_when_the_evidence_turns(tmp_path: Path) -> None:
    late = Late()

    class Turning(Teacher):
        async def propose(self, context: LearningContext) -> Proposal:
            late.helps = context.epoch > 1
            return await super().propose(context)

    fields: dict[str, Any] = {"acceptance": "strict", "actor": ScriptedActor(late), "epochs": 4}
    run, _, _ = settle(tmp_path, job_optimizer=Turning("idle"), **fields)
    fates = [[trial.fate for trial in acceptance(run, epoch).lessons] for epoch in (1, 2, 3)]
    assert fates[0] == ["refused"]
    assert ["returned"] in fates
    assert lessons(run) == ["How many words, alpha: idle."]
