"""Lessons left out of training prompts: by chance, by identity, for a whole group, and in no sweep."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.attribution.leaving_out import lessons
from support.builders import make_experience, make_pack
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.learning.library.library import of
from pytest_tfgrpo.learning.prompts import PromptBuilder, RenderedPrompt
from pytest_tfgrpo.runs.journal.journal_contents import load_run


def training(lesson_dropout: float = 0.5, epoch: int = 1) -> Phase:
    return Phase(
        epoch=epoch, mode="train", temperature=0.7, rollouts=2, scenarios=(), lesson_dropout=lesson_dropout
    )


def questions(
    tmp_path: Path, library: Library, phase: Phase | None, train: int = 100, **changes: Any
) -> list[RenderedPrompt]:
    pack = make_pack(experience_slots=4, retrieval="top")
    changes = {"scenarios": suite(train=train), "job_packs": {"text": pack}} | changes
    changes.setdefault("job_library", library)
    job = make_job(ScriptedActor(three_or_not), tmp_path, **changes)
    prompts = PromptBuilder(job, library, phase)
    return [prompts.ask(f"train-{n}") for n in range(train)]


def offered(question: RenderedPrompt) -> set[str]:
    return {*question.experiences, *question.left_out}


def texts_left_out(asked: Sequence[RenderedPrompt], library: Library) -> list[set[str]]:
    said = {e.id: e.summary32 for e in library.experiences}
    return [{said[id_] for id_ in q.left_out} for q in asked]


def test_about_the_chance_is_left_out_and_no_slot_is_refilled(tmp_path: Path) -> None:
    library = of(lessons())
    whole = questions(tmp_path, library, None)
    asked = questions(tmp_path, library, training(0.2), train=300)
    share = sum(len(q.left_out) for q in asked) / sum(len(offered(q)) for q in asked)
    assert share == pytest.approx(0.2, abs=0.04)
    for full, question in zip(whole, asked[:100], strict=True):
        assert offered(question) == set(full.experiences)
        assert not set(question.experiences) & set(question.left_out)


def test_what_is_left_out_is_not_in_the_prompt(tmp_path: Path) -> None:
    library = of(lessons())
    said = {e.id: e.summary32 for e in library.experiences}
    for question in questions(tmp_path, library, training()):
        assert all(said[id_] in question.prompt.system for id_ in question.experiences)
        assert not any(said[id_] in question.prompt.system for id_ in question.left_out)


@pytest.mark.parametrize("phase", [None, training(0.0)])
def test_nothing_is_left_out_of_sweeps_or_without_a_chance(tmp_path: Path, phase: Phase | None) -> None:
    assert not any(q.left_out for q in questions(tmp_path, of(lessons()), phase))


def test_equal_runs_leave_out_the_same_whatever_their_ids(tmp_path: Path) -> None:
    one, other = of(lessons()), of(lessons(run="another"))
    assert one.hash == other.hash
    first, second = (questions(tmp_path, library, training()) for library in (one, other))
    assert texts_left_out(first, one) == texts_left_out(second, other)
    assert [q.prompt_stamp for q in first] == [q.prompt_stamp for q in second]


@pytest.mark.parametrize(
    ("phase", "changes"),
    [(training(epoch=2), {}), (training(), {"seed": 1}), (training(), {"job_library": of(lessons(2))})],
)
def test_another_epoch_seed_or_starting_library_draws_anew(
    tmp_path: Path, phase: Phase, changes: dict[str, Any]
) -> None:
    library = of(lessons())
    first = texts_left_out(questions(tmp_path, library, training()), library)
    second = texts_left_out(questions(tmp_path, library, phase, **changes), library)
    same = sum(a == b for a, b in zip(first, second, strict=True))
    assert same < 30


def test_a_lesson_is_left_out_whatever_stands_beside_it(tmp_path: Path) -> None:
    few, many = of(lessons(2)), of(lessons(4))
    start = of(lessons(1))
    first = texts_left_out(questions(tmp_path, few, training(), job_library=start), few)
    second = texts_left_out(questions(tmp_path, many, training(), job_library=start), many)
    common = {e.summary32 for e in few.experiences}
    assert first == [texts & common for texts in second]


def test_a_group_shares_what_is_left_out_and_the_journal_has_it(tmp_path: Path) -> None:
    actor = ScriptedActor(three_or_not)
    job = make_job(
        actor, tmp_path, scenarios=suite(train=30), job_library=of(lessons(3)), lesson_dropout=0.4, epochs=2
    )
    run, _ = run_job(job, tmp_path / "runs" / "run1")
    (trained,) = [result for result in run.phases if result.phase.mode == "train"]
    assert trained.phase.lesson_dropout == 0.4
    assert any(group.rollouts[0].left_out for group in trained.groups)
    for group in trained.groups:
        assert len({(r.experiences, r.left_out, r.prompt_stamp) for r in group.rollouts}) == 1
    for result in run.phases:
        if result is not trained:
            assert not any(r.left_out for group in result.groups for r in group.rollouts)
    assert load_run(tmp_path / "runs" / "run1").phases == run.phases


def test_a_key_sets_no_figures_of_evidence_apart() -> None:
    from pytest_tfgrpo.learning.attribution.exposures import content_key

    one = make_experience(summary32="Avoid guess; it failed in 3 of 4 attempts.")
    assert content_key(one) == content_key(
        replace(one, id="x", summary32="Avoid guess; it failed in 9 of 12 attempts.")
    )
    assert content_key(one) != content_key(replace(one, summary32="Avoid guess."))
    assert content_key(one) != content_key(replace(one, stamp_signature="b" * 64))
    assert content_key(one) != content_key(replace(one, polarity="avoid"))
    assert content_key(one) != content_key(replace(one, domain="dates"))
