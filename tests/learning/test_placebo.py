"""The texts of a library in the wrong places: which lessons a prompt gets, and when there are none for it."""

from dataclasses import replace

import pytest
from support.builders import make_experience, make_scenario

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.learning.library.library import of
from pytest_tfgrpo.learning.placebo import Placebo, as_placebo


def lesson(n: int, domain: str = "text", family: str = "", words: int = 6) -> Experience:
    text = " ".join([f"Lesson{n}", *["word"] * (words - 1)])
    return make_experience(n, domain=domain, summary32=text, group_id=f"run1.e1.{family or f'alone-{n}'}")


def known(*families: str) -> dict[str, Scenario]:
    return {name: make_scenario(name, family=name) for name in families}


TASK = make_scenario("task", split="eval")


def test_each_slot_gets_another_lesson_of_another_domain_and_none_twice() -> None:
    own, other = [lesson(n) for n in range(5)], [lesson(n, domain="other") for n in range(5, 12)]
    placebo = Placebo([*own, *other], {}, 0)
    for size in range(1, 6):
        found = placebo.in_place_of(own[:size], TASK)
        assert found is not None
        assert len({one.id for one in found}) == size
        assert {one.domain for one in found} == {"other"}


def test_a_lesson_is_replaced_by_one_that_is_about_as_long() -> None:
    own = [lesson(1, words=4), lesson(2, words=20)]
    other = [lesson(n, domain="other", words=words) for n, words in ((3, 30), (4, 5), (5, 19), (6, 12))]
    found = Placebo([*own, *other], {}, 0).in_place_of(own, TASK)
    assert found is not None
    assert [len(one.summary32.split()) for one in found] == [5, 19]


def test_within_one_domain_it_is_one_of_a_family_that_neither_task_nor_lessons_have() -> None:
    lessons = [lesson(n, family=name) for n, name in enumerate("aabbcd")]
    placebo = Placebo(lessons, known(*"abcd"), 0)
    task = replace(TASK, family="c")
    found = placebo.in_place_of(lessons[:2], task)
    assert found is not None
    assert {one.group_id[-1] for one in found} <= {"b", "d"}
    assert placebo.in_place_of([lessons[0], lessons[2]], task) is None  # only the lesson of d is left


@pytest.mark.parametrize(
    "lessons",
    [
        [lesson(1)],
        [lesson(n) for n in range(6)],
        [lesson(n, family="a") for n in range(6)],
        [
            lesson(0),
            *[replace(lesson(n, domain="other"), summary32=lesson(0).summary32) for n in range(1, 6)],
        ],
    ],
    ids=["one lesson", "one domain, families unknown", "one family", "one text"],
)
def test_without_other_lessons_there_is_none(lessons: list[Experience]) -> None:
    assert Placebo(lessons, known("a"), 0).in_place_of(lessons[:1], TASK) is None


def test_equal_runs_draw_alike_whatever_their_ids_and_another_seed_draws_differently() -> None:
    own, other = [lesson(n) for n in range(3)], [lesson(n, domain="other") for n in range(3, 30)]

    def drawn(seed: int, suffix: str = "") -> list[str]:
        lessons = [replace(one, id=one.id + suffix) for one in (*other[::-1], *own)]
        found = Placebo(lessons, {}, seed).in_place_of(lessons[-3:], TASK)
        assert found is not None
        return [one.summary32 for one in found]

    assert drawn(0) == drawn(0, "x")
    assert drawn(0) != drawn(1)


def test_its_hash_is_its_own_for_each_library_and_seed() -> None:
    library = of([lesson(1), lesson(2)], ())
    hashes = {library.hash, as_placebo(library, 0).hash, as_placebo(library, 1).hash}
    assert len(hashes) == 3
    assert as_placebo(library, 0).experiences == library.experiences
