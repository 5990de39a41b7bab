"""What a version adds to a prompt."""

from support.builders import PACK_STAMP, make_experience, make_pack

from pytest_tfgrpo.core.lessons import Reward
from pytest_tfgrpo.production.serving.served_version import MOST_CHOSEN, NOTHING, ServedVersion

TEXTS = ("Ask for the order before a refund.", "Name the carrier of a parcel.")
LESSONS = [make_experience(n, summary32=text) for n, text in enumerate(TEXTS)]
OTHER = make_experience(9, domain="code", summary32="Run the tests of a refund.")


def test_lessons_are_chosen_as_in_the_run_that_tried_them() -> None:
    version = ServedVersion("v2", (make_pack(inject=(" More. ", "")),), LESSONS)
    found = version.prompt("Where is my parcel?")
    assert found.parts[:2] == ("Solve the task.", "More.")
    assert TEXTS[1] in found.parts[2]
    assert found.lessons == (LESSONS[1].id,)
    assert version.prompt("Nothing of that kind").parts == ("Solve the task.", "More.")


def test_a_pack_says_where_its_texts_are_served() -> None:
    version = ServedVersion("v2", (make_pack(place="user"), make_pack("code")), [*LESSONS, OTHER])
    assert [version.prompt("a refund", domain).place for domain in ("text", "code")] == ["user", "system"]


def test_a_version_of_several_domains_adds_nothing_unless_one_is_named() -> None:
    version = ServedVersion("v2", (make_pack(), make_pack("code")), [*LESSONS, OTHER])
    assert version.prompt("a refund") == NOTHING
    assert version.prompt("a refund", "code").lessons == (OTHER.id,)
    assert version.prompt("a refund", "music") == NOTHING


def test_a_pack_of_every_domain_serves_the_only_domain_of_the_lessons() -> None:
    version = ServedVersion("v2", (make_pack("*", id="any"),), LESSONS)
    assert version.prompt("a refund").lessons == (LESSONS[0].id,)


def test_lessons_of_another_pack_stay_out() -> None:
    version = ServedVersion("v2", (make_pack(stamp="b" * 64),), LESSONS)
    assert LESSONS[0].stamp_signature == PACK_STAMP
    assert version.prompt("a refund").lessons == ()


def test_choices_are_remembered_within_bounds() -> None:
    version = ServedVersion("v2", (make_pack(),), LESSONS)
    first = version.prompt("a refund 0")
    assert version.prompt("a refund 0") is first
    for n in range(MOST_CHOSEN + 1):
        version.prompt(f"a refund {n}")
    assert version.prompt("a refund 0") is not first


def test_whatever_the_task_is_the_best_lessons_are_added_as_many_as_the_pack_has_slots() -> None:
    best = make_experience(7, summary32="Never guess.", reward=Reward(gt_score=1.0, relative_rank=1.0))
    version = ServedVersion("v2", (make_pack(experience_slots=1),), [*LESSONS, best])
    found = version.fixed_prompt()
    assert found is not None
    assert found.lessons == (best.id,)
    assert ServedVersion("v1", (), ()).fixed_prompt() == NOTHING
    assert ServedVersion("v2", (make_pack("text"), make_pack("code")), ()).fixed_prompt() is None
