"""What a run knows of lessons when an epoch has proposed something."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_experience, make_group, make_scenario

from pytest_tfgrpo.core.lessons import Acceptance, Library, Operation, Revision
from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.learning.acceptance.decision import _is_measured, undecided
from pytest_tfgrpo.learning.acceptance.standpoint import refused_lessons, tried_lessons
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.runs.schedule import MIN_DEV

A, B, C, D = (make_experience(n) for n in range(4))


def library(*lessons: Any) -> Library:
    return replace(empty(), experiences=lessons)


def trial(lesson: Any, fate: str, value: float) -> Any:
    return SimpleNamespace(id=lesson.id, key=content_key(lesson), fate=fate, value=value)


def ended(active: tuple[Any, ...], rejected: tuple[Any, ...] = (), trials: tuple[Any, ...] = ()) -> Any:
    """Return the result of an epoch that left some lessons active and rejected others."""
    operations = [Operation(kind="add", experience=one) for one in rejected]
    operations.append(Operation(kind="remove", targets=(A.id,)))
    decided = SimpleNamespace(rejected=tuple(operations), lessons=trials)
    return SimpleNamespace(revision=SimpleNamespace(library=library(*active), acceptance=decided))


def test_every_lesson_of_the_epochs_so_far_was_tried_active_or_rejected() -> None:
    undone: Any = SimpleNamespace(revision=None)
    off: Any = SimpleNamespace(revision=SimpleNamespace(library=library(D), acceptance=None))
    assert [*tried_lessons(library(A), [])] == [A.id]
    found = tried_lessons(library(A), [ended((A, B), (C,)), undone, off])
    assert {*found} == {A.id, B.id, C.id, D.id}


def test_refused_and_removed_lessons_are_told_worst_first_as_last_known() -> None:
    first = ended((A,), (B, C), (trial(B, "refused", 0.1), trial(C, "refused", -0.5), trial(A, "kept", 0.2)))
    then = ended((C,), (D,), (trial(C, "returned", 0.1), trial(D, "refused", 0.0), trial(A, "removed", -0.1)))
    told = [(lesson.id, one.value) for lesson, one in refused_lessons(library(A), [first, then])]
    assert told == [(A.id, -0.1), (D.id, 0.0), (B.id, 0.1)]


def test_lessons_that_were_worth_the_same_are_told_by_what_they_say() -> None:
    both = sorted((B, C), key=content_key)
    for first, second in (both, reversed(both)):
        told = refused_lessons(
            library(), [ended((), (B, C), tuple(trial(one, "refused", 0.0) for one in (first, second)))]
        )
        assert [lesson.id for lesson, _ in told] == [one.id for one in both]


def revision(acceptance: Acceptance | None = None) -> Revision:
    return Revision(epoch=1, library=library(), acceptance=acceptance)


@pytest.mark.parametrize("rule", ["strict", "safe"])
def test_with_too_few_dev_scenarios_a_candidate_is_accepted_untried_and_says_so(rule: str) -> None:
    scenarios = [
        make_scenario(f"s{n}", split=split) for n, split in enumerate(("dev", "train", "dev", "eval"))
    ]
    settings = resolve({"acceptance": rule}, {}, {}).values
    decided = undecided(revision(), scenarios, settings).acceptance
    assert decided is not None
    assert (decided.rule, decided.scenarios) == (rule, 2)
    assert decided.note == f"not tried: 2 dev scenarios, at least {MIN_DEV} are needed"
    known = revision(decided)
    assert undecided(known, [], settings) is known
    off = resolve({"acceptance": "off"}, {}, {}).values
    assert undecided(revision(), scenarios, off).acceptance is None


@pytest.mark.parametrize(
    ("scored", "errors", "scenarios", "measured"),
    [(20, 0, 20, True), (19, 1, 20, False), (15, 15, 40, True), (14, 15, 40, False), (5, 0, 20, True)],
)
def test_errors_leave_half_of_what_was_asked_and_enough_scenarios(
    scored: int, errors: int, scenarios: int, measured: bool
) -> None:
    groups = [make_group([1.0])] * scored + [make_group([None])] * errors
    assert MIN_DEV == 20
    assert _is_measured(groups, scenarios) is measured
