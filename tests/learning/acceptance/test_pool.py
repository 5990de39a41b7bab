"""The pool of lessons that coins decide on: what is in it, and what a prompt may carry as they fall."""

from dataclasses import replace

import pytest
from support.builders import make_experience

from pytest_tfgrpo.core.lessons import Experience, Operation
from pytest_tfgrpo.learning.acceptance.pool import Pool, pool_of
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.attribution.leaving_out import is_settled
from pytest_tfgrpo.learning.library.library import carry_out, of

OLD, NEW, REFUSED = (make_experience(n, summary32=f"Use tool {w}.") for n, w in enumerate("abc"))


def pool(
    *operations: Operation,
    active: tuple[Experience, ...] = (OLD,),
    refused: tuple[Experience, ...] = (),
    helps: dict[str, float] | None = None,
    started: bool = False,
) -> Pool:
    library = of(active)
    return pool_of(
        library,
        carry_out(library, operations, cap=200, epoch=1),
        refused={content_key(e): e for e in refused},
        helps=helps or {},
        started=frozenset(map(content_key, active)) if started else frozenset(),
    )


def add(lesson: Experience) -> Operation:
    return Operation(kind="add", experience=lesson)


def test_new_doubtful_and_refused_lessons_each_have_a_coin() -> None:
    found = pool(add(NEW), refused=(REFUSED,))
    assert found.tossed == {OLD.id, NEW.id, REFUSED.id}
    assert found.carried(lambda _: True) == {OLD.id, NEW.id, REFUSED.id}
    assert found.carried(lambda _: False) == frozenset()
    assert found.carried(lambda key: key == content_key(REFUSED)) == {REFUSED.id}


def test_what_is_settled_has_none() -> None:
    settled = {content_key(OLD): 0.99, content_key(REFUSED): 0.01}
    found = pool(add(NEW), refused=(REFUSED,), helps=settled)
    assert found.tossed == {NEW.id}
    assert found.carried(lambda _: False) == {OLD.id}


def test_a_lesson_of_the_start_is_in_doubt_once_the_evidence_speaks_against_it() -> None:
    assert pool(add(NEW), started=True).tossed == {NEW.id}
    assert pool(add(NEW), started=True, helps={content_key(OLD): 0.4}).tossed == {NEW.id, OLD.id}
    assert pool(add(NEW), started=True, helps={content_key(OLD): 0.5}).tossed == {NEW.id}


@pytest.mark.parametrize(("helps", "open_"), [(0.05, False), (0.0501, True), (0.9499, True), (0.95, False)])
def test_a_lesson_is_settled_from_5_percent_of_doubt_on(helps: float, open_: bool) -> None:
    assert is_settled(helps) is not open_
    assert (OLD.id in pool(helps={content_key(OLD): helps}).tossed) is open_
    if helps < 0.5:
        back = pool(refused=(REFUSED,), helps={content_key(REFUSED): helps})
        assert (REFUSED.id in back.tossed) is open_
        new = pool(add(NEW), helps={content_key(NEW): helps})
        assert (NEW.id in new.tossed) is open_
        assert bool(new.barred) is not open_


def test_a_revision_takes_turns_with_what_it_would_replace() -> None:
    revised = Operation(kind="update", experience=replace(NEW, parents=(OLD.id,)), targets=(OLD.id,))
    found = pool(revised, helps={content_key(OLD): 0.99})
    assert found.carried(lambda _: True) == {NEW.id}
    assert found.carried(lambda _: False) == {OLD.id}


def test_a_revision_of_the_figures_alone_is_no_question_once_the_lesson_is_settled() -> None:
    old = replace(OLD, summary32="Avoid tool a; it failed in 2 of 3 attempts.")
    new = replace(old, id=NEW.id, summary32="Avoid tool a; it failed in 5 of 7 attempts.", parents=(old.id,))
    grown = Operation(kind="update", experience=new, targets=(old.id,))
    sure = pool(grown, active=(old,), helps={content_key(old): 0.99})
    assert sure.tossed == frozenset()
    assert sure.carried(lambda _: False) == {new.id}
    assert pool(grown, active=(old,), helps={content_key(old): 0.03}).barred == ()
    open_ = pool(grown, active=(old,))
    assert open_.carried(lambda _: True) == {new.id}
    assert open_.carried(lambda _: False) == frozenset()


def test_a_proposed_removal_is_tried_with_and_without_the_lesson() -> None:
    gone = Operation(kind="remove", targets=(OLD.id,))
    found = pool(gone, helps={content_key(OLD): 0.99})
    assert found.carried(lambda _: True) == frozenset()
    assert found.carried(lambda _: False) == {OLD.id}


def test_what_is_settled_as_harm_stays_out_untried_when_it_is_proposed_again() -> None:
    found = pool(add(NEW), helps={content_key(NEW): 0.03, content_key(OLD): 0.99})
    assert [unit.key for unit in found.barred] == [content_key(NEW)]
    assert found.tossed == frozenset()


def test_a_refused_revision_would_come_back_in_the_place_of_its_parent() -> None:
    found = pool(refused=(replace(REFUSED, parents=(OLD.id, "gone")),), helps={content_key(OLD): 0.99})
    (unit,) = found.units
    assert (unit.gone, unit.proposed, unit.operations[0].kind) == ((OLD.id,), False, "update")
    assert unit.operations[0].reason == "refused before, and worth keeping by the evidence since"


def test_a_part_of_a_pool_has_what_prompts_of_its_domain_can_carry() -> None:
    old, new = (
        make_experience(n, domain="dates", summary32=w)
        for n, w in ((7, "Count rivers."), (8, "Sort apples."))
    )
    gone = Operation(kind="remove", targets=(old.id,))
    whole = pool(add(NEW), gone, add(new), active=(OLD, old))
    text, dates, none = (whole.within(domain) for domain in ("text", "dates", "none"))
    assert {e.id for e in text.lessons} == {OLD.id, NEW.id}
    assert {e.id for e in dates.lessons} == {old.id, new.id}
    assert [unit.gone for unit in dates.units if not unit.new] == [(old.id,)]
    assert (list(none.lessons), none.units) == ([], ())
