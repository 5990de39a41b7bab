"""What calls may use at most: each figure is worked out by hand from bytes, tokens and settings."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_experience, make_pack, make_scenario
from support.completers import ScriptedCompleter
from support.jobs import LessonPerGroup, ScriptedActor, make_job

from pytest_tfgrpo.core.records import Phase, Reference
from pytest_tfgrpo.core.scenarios import Attachment, Criterion, Scenario, SimulatedUser
from pytest_tfgrpo.estimate import assumptions
from pytest_tfgrpo.estimate.assumptions import Model, PromptSizes, render
from pytest_tfgrpo.estimate.ranges import NOTHING, Range
from pytest_tfgrpo.learning.library.library import of
from pytest_tfgrpo.runs.job import Job

A, B, ELSEWHERE = make_scenario("a"), make_scenario("b"), make_scenario("c", domain="other")
MODEL = Model(price=None, max_tokens=100)
SIZES = PromptSizes(2, {"a": 600, "b": 1200, "c": 9000})
TRAIN = Phase(epoch=1, mode="train", temperature=1.0, rollouts=4, scenarios=("a", "b"))
FIXED = {"max_tokens": 100, "max_steps": 5, "answer_max_bytes": 50_000, "library_cap": 50, "judge_votes": 3}
FILE = Attachment(name="a.txt", path=Path("a.txt"), sha256="0" * 64)
TALK = SimulatedUser(goal="a table", max_turns=4)


def job_of(tmp_path: Path, *scenarios: Scenario, tools: bool = False, **changes: Any) -> Job:
    actor = ScriptedActor(lambda _: "3")
    actor.name = "openai:m"
    actor.identity = {"tools": {"spec": "x"}} if tools else {}
    model = ScriptedCompleter(lambda _: "x", name="openai:m")
    packs = {"text": make_pack(experience_slots=0), "other": make_pack("other", experience_slots=0)}
    known = {"job_models": {"openai:m": model}, "job_packs": packs, **FIXED} | changes
    return make_job(actor, tmp_path, scenarios=scenarios or (A, B), **known)


def named(name: str) -> LessonPerGroup:
    optimizer = LessonPerGroup()
    optimizer.name = name
    return optimizer


def test_a_rollout_of_one_call_has_its_prompt_and_its_answer(tmp_path: Path) -> None:
    found = assumptions.rollouts(job_of(tmp_path), TRAIN, MODEL, SIZES)
    assert found.calls == Range(8, 8)
    assert found.tokens == Range(8 * (900 / 6 + 16), 8 * (900 / 2.5 + 40 + 100))


@pytest.mark.parametrize(
    ("one", "tools", "calls", "most"),
    [
        ({}, True, 5, (900 + 8000) / 2.5 + 40 * 5 + 20 * 300 + 200 + 100),
        ({"tools": ("x", "y")}, True, 5, (900 + 8000) / 2.5 + 40 * 5 + 2 * 300 + 200 + 100),
        ({"tools": ()}, True, 5, (900 + 8000) / 2.5 + 40 * 5 + 20 * 300 + 200 + 100),
        ({"attachments": (FILE,)}, False, 5, (900 + 8000) / 2.5 + 40 * 5 + 20 * 300 + 200 + 100),
        ({"turns": ("x", "12345678", "éééé")}, False, 2, (900 + 8) / 2.5 + 40 * 3 + 100 + 100),
    ],
    ids=["any-tools", "two-tools", "one-without-tools", "attachment", "three-turns"],
)
def test_calls_after_the_first_have_what_was_said_before(
    one: Mapping[str, Any], tools: bool, calls: int, most: float, tmp_path: Path
) -> None:
    found = assumptions.rollouts(job_of(tmp_path, replace(A, **one), B, tools=tools), TRAIN, MODEL, SIZES)
    assert found.calls == Range(16 if "turns" in one else 8, 8 * calls)
    assert found.tokens is not None
    assert found.tokens.high == pytest.approx(8 * calls * most)


def test_each_turn_may_take_all_its_steps(tmp_path: Path) -> None:
    job = job_of(tmp_path, replace(A, turns=("x", "")), B, tools=True)
    found = assumptions.rollouts(job, TRAIN, MODEL, SIZES)
    assert found.calls == Range(12, 12 * 5)
    assert found.tokens is not None
    most = (900 + 4_000 * 2 * 4 / 2) / 2.5 + 40 * 2 * 5 + 20 * 300 + 100 * 9 / 2 + 100
    assert found.tokens.high == pytest.approx(60 * most)


def test_no_scenario_with_tools_means_one_call_a_turn(tmp_path: Path) -> None:
    job = job_of(tmp_path, replace(A, tools=()), replace(B, tools=()), tools=True)
    assert assumptions.rollouts(job, TRAIN, MODEL, SIZES).calls == Range(8, 8)


@pytest.mark.parametrize(("mode", "lessons"), [("train", 8), ("eval", 8), ("baseline", 0)])
def test_the_prompts_of_all_but_the_baseline_may_carry_the_lessons_of_the_fullest_pack(
    mode: Any, lessons: int, tmp_path: Path
) -> None:
    packs = {"text": make_pack(), "other": make_pack("other", experience_slots=2)}
    job = job_of(tmp_path, job_packs=packs)
    found = assumptions.rollouts(job, replace(TRAIN, mode=mode), MODEL, SIZES)
    assert found.tokens is not None
    assert found.tokens.high == 8 * ((900 + 256 * lessons) / 2.5 + 40 + 100)


def test_a_model_that_plays_the_user_may_use_each_message_it_has(tmp_path: Path) -> None:
    guest = ScriptedCompleter(lambda _: "x", name="openai:guest")
    scripted = replace(B, turns=("x", "y"))
    job = job_of(tmp_path, replace(A, user=TALK), scripted, ELSEWHERE, job_user=guest)
    found = assumptions.rollouts(job, TRAIN, MODEL, SIZES)
    assert found.calls == Range(4 * (1 + 2), 4 * (4 + 2))
    assert found.tokens is not None
    assert found.tokens.high == 24 * ((900 + 600 * 3 / 2) / 2.5 + 40 * 4 + 100 * 3 / 2 + 100)
    alone = assumptions.rollouts(replace(job, user=None), TRAIN, MODEL, SIZES)
    assert alone.calls == Range(4 * 3, 4 * 3)
    assert alone.tokens is not None
    assert alone.tokens.high == 12 * ((900 + 1 / 2) / 2.5 + 40 * 2 + 100 * 1 / 2 + 100)


@pytest.mark.parametrize(
    ("wrote", "answers", "said"),
    [(100, 600 * 4 / 2, 600 * 2 / 2), (9_000, 24_000 * 4 / 2, 20_000 * 2 / 2)],
    ids=["short", "long"],
)
def test_a_user_is_shown_the_answers_before_its_reply(
    wrote: int, answers: float, said: float, tmp_path: Path
) -> None:
    job = job_of(tmp_path, replace(A, user=TALK), B, max_tokens=wrote, answer_max_bytes=50_000)
    found = assumptions.playing(job, TRAIN, Model(price=None, max_tokens=wrote), SIZES)
    assert found.calls == Range(4, 2 * 4 * 3)
    assert found.tokens is not None
    assert found.tokens.low == 4 * 16
    assert found.tokens.high == 24 * ((600 + 6_000 + answers + said) / 2.5 + 40 * 7 + wrote)
    assert assumptions.playing(job, replace(TRAIN, scenarios=("b",)), MODEL, SIZES).calls == NOTHING


@pytest.mark.parametrize(
    ("changes", "known", "rollouts", "calls", "most"),
    [
        ({}, 1, 4, 2 * 6 + 2, 256 * 7 + 2_400),
        ({"library_cap": 3}, 1, 4, 2 * 6 + 2, 256 * 3 + 2_400),
        ({}, 1, 40, 2 * 18 + 2, 256 * 7 + 16 * 600),
        ({"max_tokens": 1_000}, 0, 2, 2 * 4 + 2, 256 * 6 + 6_000),
        ({"max_tokens": 9_000}, 0, 1, 2 * 3 + 2, 256 * 6 + 24_000),
        ({"tools": True, "answer_max_bytes": 1_500}, 0, 4, 2 * 6 + 2, 256 * 6 + 4 * 1_500),
        ({"job_models": {}, "answer_max_bytes": 1_500}, 0, 4, 2 * 6 + 2, 256 * 6 + 4 * 1_500),
        ({"answer_max_bytes": 100}, 0, 4, 2 * 6 + 2, 256 * 6 + 4 * 100),
    ],
    ids=["plain", "full-library", "many-rollouts", "one-story", "cut-story", "tools", "own-agent", "short"],
)
def test_learning_summarises_attempts_and_shows_the_library(
    changes: Any, known: int, rollouts: int, calls: int, most: float, tmp_path: Path
) -> None:
    lessons = of(make_experience(n) for n in range(known))
    job = job_of(tmp_path, A, B, ELSEWHERE, job_library=lessons, **changes)
    found = assumptions.learning(job, replace(TRAIN, rollouts=rollouts), MODEL)
    assert found.calls == Range(0, calls)
    assert found.tokens is not None
    assert found.tokens.high == pytest.approx(calls * ((8_000 + 6_000 + most) / 2.5 + 40 + 100))


def test_learning_from_two_domains_may_repair_in_both(tmp_path: Path) -> None:
    job = job_of(tmp_path, A, B, ELSEWHERE)
    found = assumptions.learning(job, replace(TRAIN, scenarios=("a", "c")), MODEL)
    assert found.calls.high == 2 * 6 + 4


@pytest.mark.parametrize(
    ("size", "wrote", "most"),
    [
        (600, 100, 600 + 6_000 + 600),
        (30_000, 100, 24_000 + 6_000 + 600),
        (600, 9_000, 600 + 6_000 + 48_000),
        (90_000, 100, 90_000),
    ],
    ids=["short", "long-prompt", "long-answer", "very-long-prompt"],
)
def test_a_judge_reads_the_task_and_the_answer_once_or_twice_for_each_vote(
    size: int, wrote: int, most: int, tmp_path: Path
) -> None:
    rubric = (Criterion(name="clear", text="It is clear."),)
    job = job_of(tmp_path, replace(A, rubric=rubric), B, replace(ELSEWHERE, rubric=rubric), max_tokens=wrote)
    sizes = PromptSizes(3, {"a": size, "b": 7, "c": 7})
    found = assumptions.judging(job, TRAIN, MODEL, sizes)
    assert found.calls == Range(4 * 3, 2 * 4 * 3)
    assert found.tokens == Range(12 * (size / 6 + 16), 24 * (most / 2.5 + 40 + 100))


def test_a_short_limit_ends_the_shortest_answer_too(tmp_path: Path) -> None:
    found = Model(price=None, max_tokens=5).calls(Range(1, 1), Range(0, 0), 0)
    assert found.tokens == Range(5, 5)


def test_the_size_of_scenarios_that_were_not_rendered_is_that_of_the_others() -> None:
    assert SIZES.mean(("a", "x")) == 600
    assert SIZES.mean(("x",)) == 3600


def test_of_many_scenarios_that_the_run_uses_a_sample_is_rendered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [make_scenario(f"s{n}", stamp=f"{n:064}", prompt="é" * n) for n in range(9)]
    unused = make_scenario("unused", split="eval", stamp="9" * 64)
    job = job_of(tmp_path, *many, unused)
    job = replace(job, phases=(replace(TRAIN, scenarios=tuple(f"s{n}" for n in range(8)), dev=("s8",)),))
    whole = render(job)
    assert set(whole.by_scenario) == {s.id for s in many}
    assert whole.by_scenario["s8"] - whole.by_scenario["s3"] == 2 * 5
    monkeypatch.setattr(assumptions, "SAMPLE", 4)
    drawn = {
        seed: [*render(replace(job, settings=job.settings | {"seed": seed})).by_scenario] for seed in (1, 2)
    }
    assert [len(ids) for ids in drawn.values()] == [4, 4]
    assert drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("optimizer", "slots", "certain", "perhaps"),
    [
        ("llm", 2, (), ("a", "b")),
        ("llm", 0, (), ()),
        ("none", 2, (), ()),
        ("plugin", 2, (), ("a", "b", "c")),
    ],
)
def test_a_concurrent_control_asks_where_training_may_have_changed_the_prompt(
    optimizer: str, slots: int, certain: tuple[str, ...], perhaps: tuple[str, ...], tmp_path: Path
) -> None:
    packs = {domain: make_pack(domain, experience_slots=slots) for domain in ("text", "other")}
    job = job_of(tmp_path, A, B, ELSEWHERE, job_packs=packs, job_optimizer=named(optimizer))
    control = replace(TRAIN, mode="baseline", epoch=0, scenarios=("a", "b", "c"), concurrent=True)
    job = replace(job, phases=(TRAIN, control))
    assert assumptions.asked(job, control) == (certain, perhaps)
    alone = replace(control, concurrent=False)
    assert assumptions.asked(job, alone) == (("a", "b", "c"), ("a", "b", "c"))


def test_a_control_asks_for_certain_where_its_reference_made_another_prompt(tmp_path: Path) -> None:
    packs = {domain: make_pack(domain) for domain in ("text", "other")}
    old = Reference(
        name="old", kind="library", stamp="", library=of([make_experience(1)]), packs=(*packs.values(),)
    )
    job = job_of(tmp_path, A, ELSEWHERE, job_packs=packs, job_reference=old, job_optimizer=named("llm"))
    control = replace(TRAIN, mode="baseline", epoch=0, scenarios=("a", "c"), concurrent=True)
    assert assumptions.asked(replace(job, phases=(control,)), control) == (("a",), ("a",))
    learning = replace(job, phases=(replace(TRAIN, scenarios=("c",)), control))
    assert assumptions.asked(learning, control) == (("a",), ("a", "c"))
    both = replace(job, phases=(replace(TRAIN, scenarios=("a",)), control))
    assert assumptions.asked(both, control) == ((), ("a",))


def test_a_placebo_asks_where_other_lessons_can_stand_in_a_prompt(tmp_path: Path) -> None:
    packs = {domain: make_pack(domain) for domain in ("text", "other")}
    placebo = replace(TRAIN, mode="placebo", epoch=-2, scenarios=("a", "c"), concurrent=True)
    one, other = make_experience(1), make_experience(2, domain="other")
    for lessons, asks in (([one, other], ("a", "c")), ([one], ())):
        job = job_of(tmp_path, A, ELSEWHERE, job_packs=packs, job_library=of(lessons))
        job = replace(job, phases=(placebo,))
        assert assumptions.asked(job, placebo) == (asks, asks)


def test_without_training_the_lessons_of_before_change_no_prompt(tmp_path: Path) -> None:
    packs = {domain: make_pack(domain) for domain in ("text", "other")}
    job = job_of(tmp_path, job_packs=packs, job_library=of([make_experience(1)]))
    control = replace(TRAIN, mode="baseline", epoch=0, concurrent=True)
    assert assumptions.asked(replace(job, phases=(control,)), control) == ((), ())
