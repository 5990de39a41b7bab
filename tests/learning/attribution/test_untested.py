"""Lessons that no prompt of the dev or eval split carried."""

from dataclasses import replace
from typing import Any

import pytest
from support.builders import make_experience, make_group, make_rollout

from pytest_tfgrpo.core.lessons import Library, Revision
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult, Run
from pytest_tfgrpo.learning.attribution.untested import held_back, untested
from pytest_tfgrpo.learning.library.library import of, without

OLD, SEEN, TRIED, NEW = (make_experience(n) for n in range(4))


def group(mode: Any, carried: str, epoch: int) -> Group:
    rollout = make_rollout(mode=mode, epoch=epoch, experiences=(carried,))
    return make_group([1.0], rollouts=(rollout,))


def result(epoch: int, mode: Any, *groups: Group, **changes: Any) -> PhaseResult:
    phase = Phase(epoch=epoch, mode=mode, temperature=0.3, rollouts=1, scenarios=("count-words",))
    fields = {"groups": groups, "status": "complete", "library_hash": ""} | changes
    return PhaseResult(phase=phase, **fields)


def run(start: Library, library: Library, *phases: PhaseResult, untested: str = "hold") -> Run:
    return Run(
        run_id="run1", task_id="demo", started_at="", settings={"untested": untested}, stamps={}, versions={},
        scenarios=(), status="complete", finished_at="", phases=phases, library_start=start, library=library,
    )  # fmt: skip


@pytest.fixture
def learned() -> Run:
    library = of([OLD, SEEN, TRIED, NEW])
    training = result(
        1,
        "evidence",
        group("evidence", NEW.id, 1),
        dev=(group("dev", TRIED.id, 1),),
        revision=Revision(epoch=1, library=library),
    )
    return run(of([OLD]), library, training, result(2, "eval", group("eval", SEEN.id, 2)))


def test_a_lesson_is_tested_by_a_dev_or_eval_prompt_alone(learned: Run) -> None:
    assert untested(learned) == (NEW,)


def test_a_revision_with_more_evidence_is_the_lesson_that_was_tested(learned: Run) -> None:
    again = replace(SEEN, id="f" * 16, parents=(SEEN.id,))
    assert untested(replace(learned, library=of([again, NEW]))) == (NEW,)


def test_they_are_held_back_where_the_setting_says_so(learned: Run) -> None:
    assert held_back(learned, learned.library) == (NEW,)
    assert held_back(replace(learned, settings={"untested": "keep"}), learned.library) == ()
    assert held_back(replace(learned, settings={}), learned.library) == ()


def test_a_library_without_lessons_knows_where_it_comes_from(learned: Run) -> None:
    left = without(learned.library, {NEW.id})
    assert left.experiences == (OLD, SEEN, TRIED)
    assert left.lineage == (learned.library.hash,)
