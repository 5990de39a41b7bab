import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest
from support.builders import make_frame, make_scenario
from support.optimizer.heuristic import (
    DISTINCT,
    PACKS,
    SORTED,
    SUITE,
    context_of,
    group_of,
    propose,
)

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.records import Frame, Group
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.learning.library.library import apply, of
from pytest_tfgrpo.learning.library.screen import Screen
from pytest_tfgrpo.learning.optimizer.registry import open_optimizer
from pytest_tfgrpo.protocols import LearningContext, Proposal
from pytest_tfgrpo.report.terminal import ALIKE


def attempt(
    reward: float | None, *tools: str | Frame, answer: str = "3", tokens: int = 5
) -> tuple[float | None, dict[str, Any]]:
    frames = tuple(make_frame(t, tokens=tokens) if isinstance(t, str) else t for t in tools)
    return reward, {"frames": frames, "answer": answer}


def lessons(proposal: Proposal, polarity: str = "do") -> list[Experience]:
    found = [o.experience for o in proposal.operations if o.experience is not None]
    return [e for e in found if e.polarity == polarity]


def revised(context: LearningContext) -> Library:
    screen = Screen(context.scenarios.values(), answers=lambda s: (), packs=context.packs, max_words=32)
    revision = apply(
        context.library, propose(context).operations, screen=screen, cap=200, epoch=context.epoch
    )
    assert revision.refused == ()
    return revision.library


WAY = ("split_words", "unique_items", "count_items")


def distinct_groups(epoch: int = 1, run: str = "run1") -> list[Group]:
    attempts = [
        attempt(1.0, *WAY),
        attempt(0.0, "char_count"),
        attempt(0.0, "split_words", "count_items"),
        attempt(None),
    ]
    return [group_of(scenario, attempts, epoch, run) for scenario in DISTINCT]


def test_a_lesson_names_the_winners_tools_in_order_and_the_kind_of_task() -> None:
    (lesson,) = lessons(propose(context_of(distinct_groups(), SUITE)))
    about = "If a task is about distinct, words or many"
    assert lesson.summary32 == f"{about}, use split_words, then unique_items, then count_items."
    assert lesson.domain == "text"
    assert (lesson.support.groups, lesson.support.rollouts) == (3, 3)
    assert (lesson.reward.gt_score, lesson.reward.relative_rank) == (1.0, 1.0)
    assert lesson.stamp_signature == PACKS["text"].stamp
    assert [stat.tool for stat in lesson.tool_stats] == sorted(WAY)
    assert lesson.tool_stats[0].tokens == 15


def guessed_groups(epoch: int = 1) -> list[Group]:
    """Return groups whose winners used no tool, so that nothing is known but what to avoid."""
    attempts = [attempt(1.0), attempt(0.0, "char_count"), attempt(0.0, "char_count")]
    return [group_of(scenario, attempts, epoch) for scenario in DISTINCT]


def test_a_lesson_to_avoid_names_what_losers_did_and_what_it_cost() -> None:
    (lesson,) = lessons(propose(context_of(guessed_groups(), SUITE)), "avoid")
    about = "If a task is about distinct, words or many"
    assert lesson.summary32 == f"{about}, avoid char_count."
    assert lesson.reward.gt_score == 1.0, "one minus what the losers scored"
    assert lesson.reward.relative_rank > 0.5


def test_nothing_is_to_be_avoided_where_it_is_known_what_to_do() -> None:
    assert lessons(propose(context_of(distinct_groups(), SUITE)), "avoid") == []
    warned = revised(context_of(guessed_groups(), SUITE))
    proposal = propose(context_of(distinct_groups(2), SUITE, warned, epoch=2))
    (removal,) = [o for o in proposal.operations if o.kind == "remove"]
    assert removal.targets == tuple(e.id for e in warned.experiences)
    assert removal.reason == "what to do instead is known"
    known = revised(context_of(distinct_groups(), SUITE))
    lost = [group_of(s, [attempt(0.6), attempt(0.0, "lines"), attempt(0.0, "lines")], 2) for s in DISTINCT]
    assert lessons(propose(context_of(lost, SUITE, known, epoch=2)), "avoid") == [], "also by lessons alone"


def test_groups_that_carried_a_lesson_are_counted() -> None:
    groups = distinct_groups()
    flat = group_of(SORTED[0], [attempt(1.0, "sort_items"), attempt(1.0, "sort_items")])
    found = propose(context_of([*groups, flat], SUITE))
    assert found.lesson_groups == {g.group_id for g in groups}


def test_an_operation_names_the_groups_that_its_lesson_rests_on() -> None:
    groups = distinct_groups()
    for operation in propose(context_of(groups, SUITE)).operations:
        assert operation.groups == tuple(g.group_id for g in groups)
        assert operation.experience is not None
        assert len(operation.groups) == operation.experience.support.groups


@pytest.mark.parametrize("rewards", [(1.0, 1.0), (0.0, 0.0), (None, None), (None, 1.0)])
def test_without_a_group_with_spread_there_is_no_lesson_and_it_says_so(
    rewards: tuple[float | None, ...],
) -> None:
    flat = group_of(DISTINCT[0], [attempt(r, tool) for r, tool in zip(rewards, WAY, strict=False)])
    found = propose(context_of([flat], SUITE))
    assert found.operations == ()
    assert "mixed results" in found.note


def test_a_difference_in_nothing_seen_gives_no_lesson_and_it_says_so() -> None:
    same = group_of(DISTINCT[0], [attempt(1.0, "count_items"), attempt(0.0, "count_items")])
    found = propose(context_of([same], SUITE))
    assert found.operations == ()
    assert found.lesson_groups == frozenset()
    assert found.note.startswith(ALIKE)


def test_of_two_equally_good_ways_the_cheaper_one_is_taught() -> None:
    groups = [
        group_of(s, [attempt(1.0, *WAY), attempt(1.0, "trim_text", *WAY), attempt(0.0, "char_count")])
        for s in DISTINCT
    ]
    (lesson,) = lessons(propose(context_of(groups, SUITE)))
    assert "trim_text" not in lesson.summary32
    dear = [
        group_of(
            s,
            [attempt(1.0, "count_all", tokens=500), attempt(1.0, *WAY, tokens=5), attempt(0.0, "char_count")],
        )
        for s in DISTINCT
    ]
    (lesson,) = lessons(propose(context_of(dear, SUITE)))
    assert "use split_words" in lesson.summary32


def test_a_way_that_won_at_several_tasks_beats_one_with_many_lucky_attempts_at_one() -> None:
    lucky = group_of(DISTINCT[0], [attempt(1.0, "char_count") for _ in range(4)] + [attempt(0.0)])
    others = [group_of(s, [attempt(1.0, *WAY), attempt(0.0, "lines")]) for s in DISTINCT[1:]]
    (lesson,) = lessons(propose(context_of([lucky, *others], SUITE)))
    assert "use split_words" in lesson.summary32


@pytest.mark.parametrize(("reward", "taught"), [(0.4, False), (0.5, True)])
def test_a_way_or_a_form_that_earned_less_than_half_is_no_example(reward: float, taught: bool) -> None:
    for better, worse in (
        (attempt(reward, *WAY), attempt(0.0, "char_count")),
        (attempt(reward, answer="3"), attempt(0.0, answer="There are three words in it.")),
    ):
        group = group_of(DISTINCT[0], [better, worse])
        assert bool(lessons(propose(context_of([group], SUITE)))) is taught


@pytest.mark.parametrize(
    ("losers", "winners", "avoided"), [(1, 0, False), (2, 0, True), (3, 1, True), (2, 1, False)]
)
def test_a_tool_is_to_be_avoided_from_two_losers_on_where_three_in_four_users_lost(
    losers: int, winners: int, avoided: bool
) -> None:
    tried = attempt(1.0, make_frame("char_count", error="no text"))
    attempts = [attempt(0.0, "char_count")] * losers + [tried] * winners + [attempt(1.0)]
    found = lessons(propose(context_of([group_of(DISTINCT[0], attempts)], SUITE)), "avoid")
    assert ["avoid char_count" in lesson.summary32 for lesson in found] == [True] * avoided


def test_calls_that_failed_are_not_part_of_the_way() -> None:
    broken = make_frame("parse_date", error="no date")
    group = group_of(DISTINCT[0], [attempt(1.0, broken, *WAY, WAY[-1]), attempt(0.0, "lines")])
    (lesson,) = lessons(propose(context_of([group], SUITE)))
    assert "use split_words, then unique_items, then count_items." in lesson.summary32


def test_tasks_without_family_are_of_one_kind_when_alike_and_solved_by_the_same_tools() -> None:
    alike = [
        make_scenario("a", prompt="Count the distinct words in 'x y'."),
        make_scenario("b", prompt="Count the distinct words of 'p q p'."),
        make_scenario("c", prompt="Which weekday follows 'Monday'?"),
    ]
    groups = [
        group_of(alike[0], [attempt(1.0, *WAY), attempt(0.0, "lines")]),
        group_of(alike[1], [attempt(1.0, *WAY), attempt(0.0, "lines")]),
        group_of(alike[2], [attempt(1.0, "next_day"), attempt(0.0, "lines")]),
    ]
    found = lessons(propose(context_of(groups, alike)))
    assert sorted(e.support.groups for e in found) == [1, 2]
    assert {"weekday" in e.summary32 for e in found} == {True, False}


def test_without_tools_the_lesson_is_about_the_form_of_the_answer() -> None:
    groups = [
        group_of(s, [attempt(1.0, answer="3"), attempt(0.0, answer="There are three words in it, I think.")])
        for s in DISTINCT
    ]
    (lesson,) = lessons(propose(context_of(groups, SUITE)))
    assert lesson.summary32.endswith(", answer with a bare number.")
    fenced = [
        group_of(s, [attempt(1.0, answer='{"n": 3}'), attempt(0.0, answer='```json\n{"n": 3}\n```')])
        for s in DISTINCT
    ]
    (lesson,) = lessons(propose(context_of(fenced, SUITE)))
    assert lesson.summary32.endswith(", answer with JSON alone.")


def test_a_form_that_only_losers_share_is_to_be_avoided() -> None:
    answers = ["one two three four five six", "1\n2\n3", "x\ny", "a b\nc d\ne f\ng h"]
    attempts = [attempt(1.0, answer=a) for a in answers] + [attempt(0.0, answer="```\nx\n```\nwhy?")] * 4
    (lesson,) = lessons(propose(context_of([group_of(DISTINCT[0], attempts)], SUITE)), "avoid")
    assert "avoid answering with a code fence." in lesson.summary32


@pytest.mark.parametrize(("others", "taught"), [(0, True), (1, True), (2, False)])
def test_a_form_is_taught_from_half_more_of_one_side_than_of_the_other(others: int, taught: bool) -> None:
    plain = "There are three words in it."
    one_side = ["3", *[plain] * others]
    for reward, polarity in ((1.0, "do"), (0.0, "avoid")):
        attempts = [attempt(reward, answer=a) for a in one_side] + [attempt(1.0 - reward, answer=plain)]
        found = lessons(propose(context_of([group_of(DISTINCT[0], attempts)], SUITE)), polarity)
        assert ["a bare number" in lesson.summary32 for lesson in found] == [True] * taught


def test_when_the_tools_are_the_same_the_lesson_is_about_their_arguments() -> None:
    good = make_frame("round_number", input={"value": 1.25, "digits": 1})
    bad = make_frame("round_number", input={"value": 1.25})
    groups = [group_of(s, [attempt(1.0, good), attempt(0.0, bad)]) for s in DISTINCT]
    (lesson,) = lessons(propose(context_of(groups, SUITE)))
    assert lesson.summary32.endswith(", call round_number with digits.")


def test_quoted_data_answers_numbers_and_role_names_are_no_key_terms() -> None:
    prompts = [
        'How many oranges does the user see in "zebra quagga"? 42 or apple',
        "Say how many oranges the user has: `kiwi`, 17, apple",
    ]
    fruit = [
        make_scenario(
            f"f{i}", family="fruit", prompt=p, checks=(Check(kind="exact", params={"value": "Apple"}),)
        )
        for i, p in enumerate(prompts)
    ]
    groups = [group_of(s, [attempt(1.0, "count"), attempt(0.0, "lines")]) for s in fruit]
    (lesson,) = lessons(propose(context_of(groups, fruit)))
    assert "oranges" in lesson.summary32
    assert not re.search(r"zebra|quagga|kiwi|apple|user|42|17", lesson.summary32)


@pytest.mark.parametrize("max_words", [6, 11, 12, 32])
def test_a_lesson_keeps_to_the_word_cap(max_words: int) -> None:
    proposal = propose(context_of(distinct_groups(), SUITE, max_words=max_words))
    assert all(len(e.summary32.split()) <= max_words for e in lessons(proposal) + lessons(proposal, "avoid"))
    assert proposal.operations or "kinds of task without a difference" in proposal.note
    assert bool(lessons(proposal)) is (max_words >= 12)


def test_more_evidence_in_a_later_epoch_updates_the_lesson_and_its_support_grows() -> None:
    first = revised(context_of(distinct_groups(1), SUITE))
    context = context_of(distinct_groups(2), SUITE, first, epoch=2)
    assert [o.kind for o in propose(context).operations] == ["update"]
    second = revised(context)
    assert second.hash == first.hash, "figures are no part of a text, so that prompts stay as they are"
    (before,), (lesson,) = first.experiences, second.experiences
    assert lesson.parents == (before.id,)
    assert (lesson.support.groups, lesson.support.rollouts) == (6, 6)


def test_when_winners_do_otherwise_later_the_lesson_is_replaced() -> None:
    first = revised(context_of(distinct_groups(1), SUITE))
    groups = [
        group_of(s, [attempt(0.0, *WAY), attempt(0.0, *WAY), attempt(1.0, "count_distinct")], 2)
        for s in DISTINCT
    ]
    second = revised(context_of(groups, SUITE, first, epoch=2))
    (lesson,) = [e for e in second.experiences if e.polarity == "do"]
    assert lesson.summary32.endswith(", use count_distinct.")
    assert lesson.parents == tuple(e.id for e in first.experiences if e.polarity == "do")
    assert lesson.support.groups == 3, "the old evidence was for something else"


def test_a_single_lucky_attempt_does_not_replace_a_proven_lesson() -> None:
    first = revised(context_of(distinct_groups(1), SUITE))
    group = group_of(DISTINCT[0], [attempt(1.0, *WAY), attempt(1.0, "char_count"), attempt(0.0, "lines")], 2)
    second = revised(context_of([group], SUITE, first, epoch=2))
    assert [e.summary32 for e in second.experiences if e.polarity == "do"] == [
        e.summary32 for e in first.experiences if e.polarity == "do"
    ]


def test_a_lesson_that_no_longer_earns_half_is_removed() -> None:
    first = revised(context_of(distinct_groups(1)[:1], SUITE))
    groups = [group_of(s, [attempt(0.0, *WAY), attempt(0.3, "count_distinct")], 2) for s in DISTINCT]
    proposal = propose(context_of(groups, SUITE, first, epoch=2))
    (removal,) = [o for o in proposal.operations if o.kind == "remove"]
    assert removal.targets == tuple(e.id for e in first.experiences if e.polarity == "do")
    assert "less than half" in removal.reason


def test_a_warning_against_what_winners_now_use_is_removed() -> None:
    first = revised(context_of(guessed_groups(), SUITE))
    (warning,) = [e for e in first.experiences if e.polarity == "avoid"]
    groups = [group_of(s, [attempt(1.0, "char_count"), attempt(0.0, "lines")], 2) for s in DISTINCT]
    context = context_of(groups, SUITE, first, epoch=2)
    assert "winners now use what it warned of" in [o.reason for o in propose(context).operations]
    second = revised(context)
    assert warning.id not in {e.id for e in second.experiences}
    assert not any("avoid char_count" in e.summary32 for e in second.experiences)


def test_two_lessons_about_one_kind_are_merged() -> None:
    first = revised(context_of(distinct_groups(1), SUITE))
    (lesson,) = [e for e in first.experiences if e.polarity == "do"]
    twin = replace(
        lesson, id="twin", summary32=lesson.summary32.replace("distinct, words or many", "distinct or words")
    )
    proposal = propose(context_of(distinct_groups(2), SUITE, of([lesson, twin]), epoch=2))
    (merge,) = [o for o in proposal.operations if o.kind == "merge"]
    assert set(merge.targets) == {lesson.id, "twin"}
    assert merge.experience is not None
    assert merge.experience.support.groups == 9


def test_lessons_of_another_stamp_or_hand_are_left_alone() -> None:
    first = revised(context_of(distinct_groups(1), SUITE))
    foreign = [replace(e, stamp_signature="b" * 64) for e in first.experiences]
    by_hand = replace(
        foreign[0], id="hand", summary32="Think of distinct words first.", stamp_signature="a" * 64
    )
    proposal = propose(context_of(distinct_groups(2), SUITE, of([*foreign, by_hand]), epoch=2))
    assert {o.kind for o in proposal.operations} == {"add"}


def test_ids_follow_from_run_epoch_and_group_and_the_lessons_do_not() -> None:
    one = propose(context_of(distinct_groups(), SUITE))
    again = propose(context_of(distinct_groups(), SUITE))
    other = propose(context_of(distinct_groups(run="run2"), SUITE, run="run2"))
    assert one == again
    assert of(lessons(one)).hash == of(lessons(other)).hash
    ids = [o.experience.id for p in (one, other) for o in p.operations if o.experience]
    assert len(set(ids)) == len(ids)


def test_names_of_tools_that_no_lesson_can_carry_are_ignored() -> None:
    group = group_of(DISTINCT[0], [attempt(1.0, "system: obey", "a b", "x" * 80), attempt(0.0, "<b>")])
    assert propose(context_of([group], SUITE)).operations == ()


def test_the_optimizer_none_learns_nothing_and_an_unknown_one_is_an_error() -> None:
    assert asyncio.run(open_optimizer("none").propose(context_of(distinct_groups(), SUITE))).operations == ()
    with pytest.raises(SettingError, match="'magic'"):
        open_optimizer("magic")


MIXED = {
    "sum": "Add the amounts of this invoice.",
    "sort": "Order these surnames alphabetically.",
    "dates": "Which weekday followed the parade?",
    "units": "Convert the altitude into feet.",
    "words": "Spell the capital backwards.",
}


def mixed_groups(epoch: int, *names: str) -> tuple[list[Group], list[Scenario]]:
    """Return groups of tasks without a family, each won without a tool and lost by a guess."""
    tasks = [make_scenario(name, prompt=MIXED[name]) for name in names]
    attempts = [attempt(1.0), attempt(0.0, "guess"), attempt(0.0, "guess")]
    return [group_of(task, attempts, epoch) for task in tasks], tasks


@pytest.mark.parametrize("families", [False, True])
def test_one_advice_is_one_lesson_for_all_its_topics_whose_support_grows(families: bool) -> None:
    def named(tasks: list[Scenario]) -> list[Scenario]:
        return [replace(task, family=task.id) for task in tasks] if families else tasks

    groups, tasks = mixed_groups(1, "sum", "sort", "dates")
    first = revised(context_of(groups, named(tasks)))
    (lesson,) = first.experiences
    assert lesson.summary32.endswith(", avoid guess.")
    assert (lesson.support.groups, lesson.support.rollouts) == (3, 6)
    groups, tasks = mixed_groups(2, "units", "words")
    second = revised(context_of(groups, named(tasks), first, epoch=2))
    (lesson,) = second.experiences
    assert lesson.summary32.endswith(", avoid guess.")
    assert (lesson.support.groups, lesson.support.rollouts) == (5, 10)
    groups, tasks = mixed_groups(3, "sum", "words")
    third = revised(context_of(groups, named(tasks), second, epoch=3))
    (lesson,) = third.experiences
    assert lesson.support.rollouts == 14


FRUIT = {name: f"How many {name}?" for name in ("apples", "plums", "pears")}


def fruit_groups(epoch: int, **ways: str) -> tuple[list[Group], list[Scenario]]:
    """A family for each fruit, whose winners used the tool given and whose losers guessed."""
    tasks = [make_scenario(name, family=name, prompt=prompt) for name, prompt in FRUIT.items()]
    groups = [
        group_of(task, [attempt(1.0, ways[task.id]), attempt(0.0, "count_by_eye")], epoch)
        for task in tasks
        if task.id in ways
    ]
    return groups, tasks


def test_topics_of_one_advice_are_joined_and_one_whose_winners_do_otherwise_parts() -> None:
    groups, tasks = fruit_groups(1, apples="count", plums="count", pears="count")
    first = revised(context_of(groups, tasks))
    assert [e.summary32 for e in first.experiences] == [
        "If a task is about apples, plums or pears, use count."
    ]
    groups, tasks = fruit_groups(2, pears="weigh")
    groups = [
        group_of(tasks[2], [attempt(0.0, "count"), attempt(0.0, "count"), attempt(1.0, "weigh")], epoch)
        for epoch in (2, 3, 4)
    ]
    context = context_of(groups, tasks, first, epoch=2)
    second = revised(context)
    assert sorted(e.summary32 for e in second.experiences if e.polarity == "do") == [
        "If a task is about apples or plums, use count.",
        "If a task is about pears, use weigh.",
    ]
    (parted,) = [o for o in propose(context).operations if o.targets]
    assert (parted.kind, parted.reason) == ("update", "winners now do otherwise")


def test_lessons_that_an_earlier_version_wrote_for_each_kind_become_one() -> None:
    groups, tasks = fruit_groups(1, apples="count", plums="count", pears="count")
    (lesson,) = revised(context_of(groups, tasks)).experiences
    old = [
        replace(
            lesson, id=name, polarity="avoid", summary32=f"For tasks about {name}: avoid guess; {figures}."
        )
        for name, figures in zip(
            FRUIT, ("it failed in 2 of 2 attempts", "it failed in 4 of 5 attempts"), strict=False
        )
    ]
    losers = [attempt(1.0), attempt(0.0, "guess"), attempt(0.0, "guess")]
    proposal = propose(context_of([group_of(tasks[2], losers, 2)], tasks, of(old), epoch=2))
    (merge,) = [o for o in proposal.operations if o.experience and o.experience.polarity == "avoid"]
    assert merge.kind == "merge"
    assert merge.targets == ("apples", "plums")
    assert merge.experience is not None
    assert merge.experience.summary32 == "If a task is about apples, plums or pears, avoid guess."


def test_topics_that_do_not_fit_into_the_word_cap_get_a_lesson_more() -> None:
    groups, tasks = fruit_groups(1, apples="count", plums="count", pears="count")
    found = revised(context_of(groups, tasks, max_words=10))
    assert sorted(e.summary32 for e in found.experiences) == [
        "If a task is about apples or plums, use count.",
        "If a task is about pears, use count.",
    ]
