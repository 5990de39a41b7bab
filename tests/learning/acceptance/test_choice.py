"""The choice by itself: what becomes of each lesson, given what the evidence says of it."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.builders import make_experience

from pytest_tfgrpo.core.lessons import Acceptance, Experience, Operation, Revision
from pytest_tfgrpo.learning.acceptance import choice as module
from pytest_tfgrpo.learning.acceptance.choice import UNMEASURED, Choice
from pytest_tfgrpo.learning.acceptance.evidence import LessonValues
from pytest_tfgrpo.learning.acceptance.pool import pool_of
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.library.library import carry_out, of

OLD, ALSO, NEW, BACK, THIRD = (
    make_experience(n, summary32=f"Use tool {w}.") for n, w in enumerate("abcde", 1)
)
NONE = Acceptance(rule="safe", margin=0.1, alpha=0.2, scenarios=9)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what the evidence says of lessons by id: value, probability to help, whether it was tried."""
    says: dict[str, Any] = {}

    def value_of(evidence: Any, prior: Any) -> LessonValues:
        del prior
        rows = [says.get(id_, (0.1, 0.6, True)) for id_ in evidence.ids]
        topic = SimpleNamespace(prior=SimpleNamespace(on_topic=SimpleNamespace(mean=1.0, sd=2.0)))
        return LessonValues(
            value_L=np.array([row[0] for row in rows]),
            sd_L=np.full(len(rows), 0.01),
            helps_L=np.array([row[1] for row in rows]),
            tried_L=np.array([row[2] for row in rows], dtype=np.bool_),
            effects=topic,  # type: ignore[arg-type]
        )

    monkeypatch.setattr(module, "value_of", value_of)
    monkeypatch.setattr(Choice, "_cross_fitted", lambda _: {})
    return says


def choose(
    *operations: Operation,
    active: tuple[Experience, ...] = (OLD,),
    refused: tuple[Experience, ...] = (),
    earlier: tuple[tuple[Experience, ...] | None, ...] = (),
    rule: str = "safe",
    measured: bool = True,
    settled: Mapping[str, float] | None = None,
    margin: float = 0.5,
    cap: int = 50,
    started: tuple[Experience, ...] = (),
) -> Choice:
    """Return the choice after epoch 2 of a run that began with `started` and had `earlier` libraries."""
    library = of(active)
    candidate = carry_out(library, operations, cap=cap, epoch=2)
    lessons = {e.id: e for e in (*active, *candidate.library.experiences, *refused)}
    by_key = {content_key(e): e for e in lessons.values()}
    refused_by_key = {content_key(e): e for e in refused}
    evidence = SimpleNamespace(
        keys=tuple(sorted(by_key)),
        ids=[by_key[key].id for key in sorted(by_key)],
        included={content_key(OLD): 3},
        left_out={content_key(OLD): 5},
    )
    settings = {"acceptance": rule, "acceptance_margin": margin, "library_cap": cap}
    revisions = [None if some is None else Revision(epoch=1, library=of(some)) for some in earlier]
    at = SimpleNamespace(
        job=SimpleNamespace(settings=settings, library=of(started), run_id="run1"),
        library=library,
        candidate=candidate,
        earlier=[SimpleNamespace(revision=revision) for revision in revisions],
        prior=None,
        lessons=lessons,
        refused=lambda: refused_by_key,
    )
    pool = pool_of(library, candidate, refused=refused_by_key, helps=dict(settled or {}), started=frozenset())
    return Choice(at, pool, evidence, measured=measured)  # type: ignore[arg-type]


def add(lesson: Experience = NEW) -> Operation:
    return Operation(kind="add", experience=lesson)


def update(*targets: Experience, lesson: Experience = NEW) -> Operation:
    ids = tuple(target.id for target in targets)
    kind: Any = "update" if len(ids) == 1 else "merge"
    return Operation(kind=kind, experience=replace(lesson, parents=ids), targets=ids)


def kept(found: Choice) -> set[str]:
    return {e.id for e in found.revision().library.experiences}


def fates(found: Choice) -> dict[str, str]:
    return {trial.id: trial.fate for trial in found.acceptance(NONE).lessons}


@pytest.mark.parametrize(
    ("helps", "rule", "tried", "comes"),
    [
        (0.51, "safe", False, True),
        (0.5, "safe", True, False),
        (0.8, "strict", True, True),
        (0.79, "strict", True, False),
        (0.9, "strict", False, False),
    ],
)
def test_a_new_lesson_comes_in_where_it_is_worth_it(
    helps: float, rule: str, tried: bool, comes: bool, known: dict[str, Any]
) -> None:
    known[NEW.id] = (0.1, helps, tried)
    found = choose(add(), rule=rule)
    assert (NEW.id in kept(found)) is comes
    assert fates(found)[NEW.id] == ("accepted" if comes else "refused")
    assert len(found.acceptance(NONE).rejected) == (not comes)


@pytest.mark.parametrize(
    ("value", "old", "comes"),
    [(0.2, (0.2, 0.6, True), True), (0.2, (0.3, 0.6, True), False), (0.2, (0.3, 0.5, True), True)],
    ids=["as-good", "worse", "than-one-that-does-not-help"],
)
def test_a_revision_comes_in_unless_what_it_replaces_helps_more(
    value: float, old: Any, comes: bool, known: dict[str, Any]
) -> None:
    known |= {NEW.id: (value, 0.6, True), OLD.id: old}
    found = choose(update(OLD))
    assert kept(found) == ({NEW.id} if comes else {OLD.id})
    assert fates(found)[OLD.id] == ("replaced" if comes else "kept")


def test_a_repeated_lesson_with_other_figures_does_not_compete_with_itself(known: dict[str, Any]) -> None:
    old = replace(OLD, summary32="Avoid tool a; it failed in 2 of 3 attempts.")
    new = replace(NEW, summary32="Avoid tool a; it failed in 5 of 7 attempts.")
    known |= {new.id: (0.1, 0.6, True), old.id: (0.1, 0.6, True)}
    assert kept(choose(update(old, lesson=new), active=(old,))) == {new.id}


@pytest.mark.parametrize(
    ("helps", "tried", "stays"), [(0.8, True, True), (0.79, True, False), (0.9, False, False)]
)
def test_a_removal_stands_unless_the_lesson_is_shown_to_help(
    helps: float, tried: bool, stays: bool, known: dict[str, Any]
) -> None:
    known[OLD.id] = (0.1, helps, tried)
    found = choose(Operation(kind="remove", targets=(OLD.id,)))
    assert kept(found) == ({OLD.id} if stays else set())
    if tried:
        assert fates(found) == {OLD.id: "kept" if stays else "removed"}


def test_an_active_lesson_in_doubt_that_does_not_help_is_removed_and_why_is_said(
    known: dict[str, Any],
) -> None:
    known |= {OLD.id: (-0.1, 0.5, True), ALSO.id: (0.1, 0.51, True)}
    found = choose(active=(OLD, ALSO))
    assert kept(found) == {ALSO.id}
    (operation,) = found.revision().applied
    assert operation.reason == "it does not help: expected effect -0.100, probability to help 0.50"
    assert fates(found) == {OLD.id: "removed", ALSO.id: "kept"}


def test_a_lesson_beyond_doubt_is_not_removed(known: dict[str, Any]) -> None:
    known[OLD.id] = (-0.1, 0.4, True)
    assert kept(choose(settled={content_key(OLD): 0.99})) == {OLD.id}


def test_a_lesson_that_was_replaced_is_not_removed_again(known: dict[str, Any]) -> None:
    known |= {OLD.id: (-0.1, 0.4, True), NEW.id: (0.1, 0.6, True)}
    assert [o.kind for o in choose(update(OLD)).revision().applied] == ["update"]


def test_where_too_much_was_an_error_nothing_new_comes_in_and_nothing_goes(known: dict[str, Any]) -> None:
    known[OLD.id] = (-0.1, 0.4, True)
    found = choose(add(), measured=False)
    assert kept(found) == {OLD.id}
    assert found.acceptance(NONE).note == UNMEASURED


@pytest.mark.parametrize(
    ("value", "helps", "rule", "loss"),
    [
        (-0.2, 0.6, "safe", True),
        (-0.1, 0.6, "safe", False),
        (-0.11, 0.6, "safe", True),
        (-0.107, 0.6, "safe", False),
        (-0.2, 0.5, "safe", False),
        (-0.2, 0.8, "strict", True),
        (-0.2, 0.79, "strict", False),
    ],
)
def test_new_lessons_that_together_lose_more_than_the_margin_are_said_so(
    value: float, helps: float, rule: str, loss: bool, known: dict[str, Any]
) -> None:
    known[NEW.id] = (value, helps, True)
    found = choose(add(), margin=0.1, rule=rule)
    said = f"together the new lessons were shown to be worse by more than 0.1: {value:+.3f}"
    assert found.acceptance(NONE).note == (said if loss else "")


@pytest.mark.parametrize(
    ("started", "earlier", "same"),
    [
        ((), (), True),
        ((), (None, (OLD,)), True),
        ((BACK,), (), False),
        ((), (None, (BACK,)), False),
    ],
    ids=["never", "not-in-a-library", "from-the-start", "in-an-epoch"],
)
def test_a_refused_lesson_returns_under_an_id_that_no_library_had(
    started: Any, earlier: Any, same: bool, known: dict[str, Any]
) -> None:
    known[BACK.id] = (0.1, 0.6, True)
    found = choose(refused=(BACK,), started=started, earlier=earlier)
    (operation,) = found.revision().applied
    lesson = operation.experience
    assert lesson is not None
    assert (operation.kind, operation.targets) == ("add", ())
    assert (lesson.id == BACK.id) is same
    assert lesson.parents == (() if same else (BACK.id,))
    assert replace(lesson, id=BACK.id, parents=()) == BACK
    assert fates(found)[lesson.id] == "returned"


@pytest.mark.parametrize(
    ("parents", "operations", "kind", "targets"),
    [
        ((OLD,), (), "update", (OLD.id,)),
        ((OLD, ALSO), (), "merge", (OLD.id, ALSO.id)),
        ((OLD, ALSO, THIRD), (), "merge", (OLD.id, ALSO.id, THIRD.id)),
        ((OLD, ALSO), (update(OLD),), "update", (ALSO.id,)),
        ((OLD,), (update(OLD),), "add", ()),
    ],
    ids=["one", "two", "three", "one-of-two-taken", "taken"],
)
def test_a_lesson_returns_in_the_place_of_those_parents_that_nothing_else_replaces(
    parents: Any, operations: Any, kind: str, targets: Any, known: dict[str, Any]
) -> None:
    back = replace(BACK, parents=tuple(e.id for e in parents))
    known |= {BACK.id: (0.3, 0.6, True), NEW.id: (0.3, 0.6, True)}
    found = choose(*operations, active=(OLD, ALSO, THIRD), refused=(back,))
    operation = found.revision().applied[-1]
    assert (operation.kind, operation.targets) == (kind, targets)


def test_two_lessons_that_return_do_not_replace_the_same_one(known: dict[str, Any]) -> None:
    one, two = (replace(e, parents=(OLD.id,)) for e in (BACK, NEW))
    known |= {one.id: (0.3, 0.6, True), two.id: (0.3, 0.6, True)}
    found = choose(refused=(one, two)).revision()
    assert sorted(o.targets for o in found.applied) == [(), (OLD.id,)]


def test_what_is_settled_as_harm_is_refused_untried_and_what_no_coin_decided_is_not_told(
    known: dict[str, Any],
) -> None:
    known[OLD.id] = (0.1, 0.9, False)
    found = choose(add(), settled={content_key(NEW): 0.01, content_key(OLD): 0.99})
    assert fates(found) == {NEW.id: "refused"}


def test_lessons_are_told_best_first_with_how_often_they_were_tried(known: dict[str, Any]) -> None:
    known |= {OLD.id: (0.1, 0.6, True), NEW.id: (0.3, 0.7, True), ALSO.id: (0.1, 0.6, True)}
    trials = choose(add(), active=(OLD, ALSO)).acceptance(NONE).lessons
    assert trials[0].id == NEW.id
    assert [trial.key for trial in trials[1:]] == sorted(content_key(e) for e in (OLD, ALSO))
    assert (trials[0].value, trials[0].sd, trials[0].helps) == (0.3, 0.01, 0.7)
    assert {(t.included, t.left_out) for t in trials if t.id == OLD.id} == {(3, 5)}
    assert (trials[0].included, trials[0].left_out) == (0, 0)


def test_the_library_keeps_its_cap_and_what_it_cuts_is_not_rejected(known: dict[str, Any]) -> None:
    known[NEW.id] = (0.3, 0.6, True)
    found = choose(add(), active=(OLD, ALSO), cap=2)
    assert len(kept(found)) == 2
    assert found.acceptance(NONE).rejected == ()
    known[NEW.id] = (0.3, 0.5, True)
    found = choose(add(), active=(OLD, ALSO), cap=2)
    assert kept(found) == {OLD.id, ALSO.id}
    assert [o.kind for o in found.acceptance(NONE).rejected] == ["add"]


def test_of_those_that_a_lesson_replaces_the_best_counts(known: dict[str, Any]) -> None:
    known |= {NEW.id: (0.2, 0.6, True), OLD.id: (0.3, 0.6, True), ALSO.id: (0.1, 0.6, True)}
    assert kept(choose(update(OLD, ALSO), active=(OLD, ALSO))) == {OLD.id, ALSO.id}


def test_of_two_lessons_that_come_in_together_the_better_one_must_be_worth_what_they_replace(
    known: dict[str, Any],
) -> None:
    same = replace(NEW, summary32="Use tool a")
    known |= {THIRD.id: (0.3, 0.6, True), same.id: (0.1, 0.6, True), OLD.id: (0.2, 0.6, True)}
    assert kept(choose(update(OLD, lesson=THIRD), add(same))) == {THIRD.id, same.id}


def test_a_lesson_that_replaces_none_needs_no_more_than_to_help(known: dict[str, Any]) -> None:
    known[NEW.id] = (0.0, 0.6, True)
    assert NEW.id in kept(choose(add()))


def test_new_figures_of_a_lesson_beyond_doubt_come_in_whatever_was_measured(known: dict[str, Any]) -> None:
    old = replace(OLD, summary32="Avoid tool a; it failed in 2 of 3 attempts.")
    new = replace(NEW, summary32="Avoid tool a; it failed in 5 of 7 attempts.")
    known[new.id] = (-0.1, 0.4, True)
    found = choose(update(old, lesson=new), active=(old,), settled={content_key(old): 0.99}, measured=False)
    assert kept(found) == {new.id}


def test_what_was_tried_before_is_told_though_nothing_is_open_now(known: dict[str, Any]) -> None:
    known[BACK.id] = (-0.1, 0.01, True)
    found = choose(refused=(BACK,), settled={content_key(BACK): 0.01, content_key(OLD): 0.99})
    assert fates(found) == {OLD.id: "kept", BACK.id: "refused"}


def test_the_share_of_lessons_that_help_is_that_of_the_prior(known: dict[str, Any]) -> None:
    del known
    assert choose().acceptance(NONE).hit_rate == pytest.approx(0.6915, abs=1e-4)


@pytest.mark.usefixtures("known")
def test_gains_are_of_what_the_rule_would_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    confidences = []

    def cross_fitted(*_: Any, confidence: float, **__: Any) -> tuple[float, float]:
        confidences.append(confidence)
        return 0.0, 0.0

    monkeypatch.setattr(module, "cross_fitted", cross_fitted)
    evidence = SimpleNamespace(
        cells=SimpleNamespace(scored=None), about_SL=None, dev_S=np.array([True]), stands_SL=None
    )
    for rule in ("strict", "safe"):
        found = choose(rule=rule)
        found._evidence = evidence  # type: ignore[assignment]
        found._measured(np.array([0]), np.array([True]))
    assert confidences == [0.8, 0.5]
