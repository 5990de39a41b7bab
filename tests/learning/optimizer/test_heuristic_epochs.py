"""The heuristic optimizer over several epochs of any groups: each lesson is said once, and can be applied."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_experience, make_frame, make_scenario
from support.optimizer.heuristic import PACKS, context_of, group_of, propose

from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.learning.library.library import carry_out, of
from pytest_tfgrpo.learning.optimizer.wording import parse, room_for

TOPICS = ("apples", "plums pears", "pears", "grapes figs dates", "note memo letter", "of the")
ABOUT = ("apples", "plums, pears", "pears, apples, note, dates, figs", "two words, note", "dates")
ADVICE = ("use count", "use sort, then join", "avoid split", "answer with a bare number")
ANSWERS = ("", "3", "{}", "several words in a row here")
TOOLS = ("count", "sort", "split", "join")


def suite_of(random: Random) -> list[Scenario]:
    return [
        make_scenario(
            f"s{n}",
            domain=random.choice(("text", "dates")),
            family=random.choice((None, "one", "two", "three")),
            prompt=random.choice(("Count {}.", "Sort the {} by name", "{}")).format(random.choice(TOPICS)),
        )
        for n in range(random.randint(1, 8))
    ]


def library_of(random: Random) -> Library:
    """Return lessons as older versions wrote them: one for each kind, with figures."""
    lessons = []
    for n in range(random.randint(0, 5)):
        domain, advice = random.choice(("text", "dates")), random.choice(ADVICE)
        figures = random.choice(("", "; it failed in 2 of 2 attempts"))
        lessons.append(
            make_experience(
                id=f"old{n}",
                domain=domain,
                polarity="avoid" if advice.startswith("avoid") else "do",
                summary32=f"For tasks about {random.choice(ABOUT)}: {advice}{figures}.",
                stamp_signature=PACKS[domain].stamp,
            )
        )
    return of(lessons)


def groups_of(random: Random, suite: list[Scenario], epoch: int) -> list[Group]:
    def attempt() -> tuple[float | None, dict[str, object]]:
        tools = tuple(make_frame(random.choice(TOOLS)) for _ in range(random.randint(0, 3)))
        return random.choice((None, 0.0, 0.5, 1.0)), {"frames": tools, "answer": random.choice(ANSWERS)}

    tried = random.sample(suite, random.randint(0, len(suite)))
    return [group_of(one, [attempt() for _ in range(random.randint(2, 4))], epoch) for one in tried]


def said(lesson: Experience) -> tuple[str, str, str]:
    parsed = parse(lesson.summary32)
    assert parsed is not None
    return lesson.domain, lesson.polarity, parsed.advice.partition("; ")[0]


@given(st.integers(0, 2**32))
def test_over_epochs_each_advice_is_said_once_by_operations_that_can_be_carried_out(seed: int) -> None:
    random = Random(seed)
    suite, library = suite_of(random), library_of(random)
    for epoch in (1, 2, 3):
        max_words = random.choice((10, 12, 15, 32))  # a run may go on with another cap
        groups = groups_of(random, suite, epoch)
        found = propose(context_of(groups, suite, library, epoch, max_words=max_words)).operations
        named = Counter(target for operation in found for target in operation.targets)
        assert all(count == 1 for count in named.values()), named
        new = [o.experience for o in found if o.experience is not None]
        assert all(len(lesson.summary32.split()) <= max_words for lesson in new), new
        library = carry_out(library, found, cap=200, epoch=epoch).library
        for advice, count in Counter(map(said, new)).items():
            active = [lesson.summary32 for lesson in library.experiences if said(lesson) == advice]
            words = sum(len(parsed.terms) for text in active if (parsed := parse(text)))
            assert len(active) == count, active
            assert count == 1 or words > room_for(advice[2], max_words), active


def fruit(about: tuple[str, ...], otherwise: tuple[str, ...], max_words: int = 32) -> list[tuple[str, str]]:
    """Return kind and text of the operations on lessons to count, where winners at some fruit now weigh."""
    names = ("apples", "plums", "pears", "figs")
    suite = [make_scenario(name, family=name, prompt=f"How many {name}?") for name in names]
    library = of(
        make_experience(
            id=f"old{n}",
            domain="text",
            summary32=f"For tasks about {terms}: use count.",
            stamp_signature=PACKS["text"].stamp,
        )
        for n, terms in enumerate(about)
    )
    weighed = (1.0, {"frames": (make_frame("weigh"),)})
    counted = (0.0, {"frames": (make_frame("count"),)})
    groups = [
        group_of(one, [weighed, counted, counted], epoch)
        for one in suite
        if one.id in otherwise
        for epoch in (2, 3, 4)
    ]
    found = propose(context_of(groups, suite, library, 2, max_words=max_words)).operations
    texts = [(o.kind, o.experience.summary32) for o in found if o.experience is not None]
    return [(kind, text) for kind, text in texts if "use count" in text]


def test_lessons_of_one_advice_that_all_lose_a_topic_become_one() -> None:
    found = fruit(("apples, plums", "pears, figs"), otherwise=("apples", "pears"))
    assert found == [("merge", "If a task is about plums or figs, use count.")]


def test_a_lesson_that_loses_a_topic_parts_where_the_word_cap_is_lower_than_it_was() -> None:
    found = fruit(("apples, plums, pears, figs",), otherwise=("apples",), max_words=10)
    assert found == [
        ("update", "If a task is about plums or pears, use count."),
        ("add", "If a task is about figs, use count."),
    ]
