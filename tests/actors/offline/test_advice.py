"""Advice as the offline agent reads it: a negation is no recommendation, a tool is known by its words."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import benchmark
from support.builders import make_experience, make_pack

from pytest_tfgrpo.actors.offline.advice import read_advice, tokens_of
from pytest_tfgrpo.actors.offline.agent import open_offline
from pytest_tfgrpo.actors.offline.lessons import ReadLesson, lessons_in
from pytest_tfgrpo.actors.offline.tools.registry import BY_NAME, TOOLS, OfflineTool
from pytest_tfgrpo.core.scenarios import Prompt, Task
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.suite.prompt import merge_experiences

Call = Callable[..., ActorCall]

NEVER = (
    "never use {}",
    "Never, ever use {}",
    "do not use {}",
    "don't call {}",
    "Don’t ever call {}",
    "you should not use {}",
    "never, under any circumstances, use {}",
    "avoid {}",
    "avoid {}; it failed in 2 of 2 attempts",
    "refrain from {}",
    "steer clear of {}",
    "stop using {}",
    "leave out {}",
    "there is no need to use {}",
    "no {}",
    "not {}",
    "it is wrong to use {}",
    "under no circumstances use {}",
)
"""Ways to warn of what follows."""
CONDEMNED = (
    "{} never works",
    "{} should not be used",
    "{} must be avoided",
    "{} is not needed",
    "{} fails",
    "{} is wrong",
    "using {} is a mistake",
    "using {} for this leads to wrong results",
)
"""Ways to warn of what stands before."""
ALWAYS = ("use {}", "always call {}", "try {}", "{}", "never forget {}", "do not skip {}", "not without {}")
"""Ways to recommend."""
CHOICE = (
    "use {b} instead of {a}",
    "instead of {a}, use {b}",
    "instead of {a} use {b}",
    "use {b} rather than {a}",
    "use {b}, not {a}",
    "do not use {a}, use {b}",
    "do not use {a} but {b}",
    "do not use {a}. Use {b}",
    "avoid {a} and use {b}",
    "avoid {a}; use {b} instead",
    "{a} is wrong, use {b}",
    "{a} does not help, {b} does",
    "prefer {b} over {a}",
    "replace {a} by {b}",
    "use {b} without {a}",
)
"""Ways to say both."""


PARTS = [
    *("split_words", "month end", "count how many items a list has", "numbers", "it"),
    *(
        "never",
        "not",
        "don't",
        "avoid",
        "without",
        "instead of",
        "rather than",
        "fails",
        "wrong",
        "over",
        "only",
    ),
    *("use", "then", "and", "but", "if", "for", "the", ",", ";", ":", "."),
]


def read(advice: str, polarity: str = "do") -> ReadLesson | None:
    lesson = make_experience(1, summary32=f"For tasks about vocabulary: {advice}.", polarity=polarity)
    return next(iter(lessons_in(merge_experiences(make_pack(), [lesson]))), None)


def forms(tool: OfflineTool) -> tuple[str, str, str]:
    """Return the identifier, the words of the name, and the description without full stop."""
    return tool.name, tool.name.replace("_", " "), tool.description.rstrip(".")


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_is_known_by_identifier_name_and_description(tool: OfflineTool) -> None:
    for form in (*forms(tool), tool.name.replace("_", "-").upper(), f"`{tool.name}`"):
        for way in ALWAYS[:4]:
            lesson = read(way.format(form))
            assert lesson is not None, (way, form)
            assert (lesson.tools, lesson.warned) == ((tool.name,), ()), (way, form)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_warning_in_any_words_recommends_nothing(tool: OfflineTool) -> None:
    for form in forms(tool):
        cut = {",", ":"} & set(form)  # a sign may cut what stands behind it off from the tool
        for way in (*NEVER, *(() if cut else CONDEMNED)):
            lesson = read(way.format(form))
            assert lesson is not None, (way, form)
            assert (lesson.tools, lesson.warned) == ((), (tool.name,)), (way, form)


@pytest.mark.parametrize("way", ALWAYS)
def test_a_double_negation_recommends(way: str) -> None:
    lesson = read(way.format("split_words"))
    assert lesson is not None
    assert (lesson.tools, lesson.warned) == (("split_words",), ())


@pytest.mark.parametrize("word", ["only", "just", "merely", "simply"])
def test_not_only_is_no_negation(word: str) -> None:
    lesson = read(f"not {word} split_words but count_items too")
    assert lesson is not None
    assert (lesson.tools, lesson.warned) == (("split_words", "count_items"), ())


@pytest.mark.parametrize("polarity", ["do", "avoid"])
@pytest.mark.parametrize("way", CHOICE)
def test_what_to_avoid_and_what_to_do_are_told_apart_whatever_the_polarity(way: str, polarity: str) -> None:
    for a, b in (("split_words", "count_items"), ("split words", "Count items")):
        lesson = read(way.format(a=a, b=b), polarity)
        assert lesson is not None
        assert (lesson.tools, lesson.warned) == (("count_items",), ("split_words",)), (a, b)


def test_a_warning_reaches_all_that_it_joins() -> None:
    for advice in (
        "never use split_words, then count_items",
        "neither split_words nor count_items helps",
        "avoid split_words and count_items",
        "do not call split_words or count_items",
        "split_words and count_items are useless",
    ):
        lesson = read(advice)
        assert lesson is not None
        assert (lesson.tools, lesson.warned) == ((), ("split_words", "count_items")), advice


def test_a_lesson_to_avoid_warns_of_all_that_it_names_plainly() -> None:
    for advice in ("split_words, then count_items", "use split_words, then count_items"):
        lesson = read(advice, "avoid")
        assert lesson is not None
        assert (lesson.tools, lesson.warned) == ((), ("split_words", "count_items"))


def test_most_tools_are_known_in_other_words_and_few_mistaken() -> None:
    learning = benchmark("learning_gain")
    for words, known in ((learning.PARAPHRASES, 24), (learning.UNSEEN_PARAPHRASES, 32)):
        found = {name: read(text) for name, text in words.items()}
        right = sum(lesson is not None and lesson.tools == (name,) for name, lesson in found.items())
        assert found.keys() == BY_NAME.keys()
        assert right >= known
        assert sum(lesson is not None for lesson in found.values()) - right <= 3


def test_every_way_to_solve_the_suites_is_understood_in_words() -> None:
    sources = benchmark("make_fixtures")
    words = {tool.name: forms(tool)[2] for tool in TOOLS}
    for family in (*sources.MAIN, *sources.HELD_OUT):
        lesson = read(", then ".join(words[name] for name in family.chain))
        assert lesson is not None
        assert lesson.tools == family.chain
        never = read("never use " + ", then ".join(family.chain))
        assert never is not None
        assert (never.tools, never.warned) == ((), family.chain)


@pytest.mark.parametrize(
    "advice",
    [
        *("read the question twice", "answer with a bare number", "answer with JSON alone", "mind the units"),
        *("check each date and number", "keep calm and move on", "it never works", "pay attention to names"),
    ],
)
def test_words_that_clearly_mean_no_tool_are_no_advice_on_tools(advice: str) -> None:
    assert read(advice) is None


@pytest.mark.parametrize(
    ("lesson", "about"),
    [
        ("For tasks about month end: use find_dates.", {"month", "end"}),
        ("When asked for the total sum of numbers, use find_dates.", {"ask", "total", "sum", "number"}),
        ("Use find_dates for closing tasks.", {"clos"}),
        ("If a task is about closing, month or rent, use find_dates.", {"clos", "month", "rent"}),
        ("For gross, net or tax, always use find_dates first.", {"gross", "net", "tax"}),
        ("If a task has weeks, rents, find_dates helps.", {"week", "rent"}),
        ("For rents, add what you know and use find_dates.", {"rent"}),
        ("Vocabulary: use find_dates.", {"vocabulary"}),
    ],
)
def test_what_a_lesson_is_about_is_no_advice(lesson: str, about: set[str]) -> None:
    (found,) = lessons_in(merge_experiences(make_pack(), [make_experience(1, summary32=lesson)]))
    assert (found.tools, set(found.about)) == (("find_dates",), about)


def test_a_negation_behind_several_commas_is_no_part_of_what_a_lesson_is_about() -> None:
    lesson = make_experience(1, summary32="For rents, weeks, never, ever use find_dates.")
    (found,) = lessons_in(merge_experiences(make_pack(), [lesson]))
    assert (found.tools, found.warned, set(found.about)) == ((), ("find_dates",), {"rent", "week"})


@given(st.lists(st.sampled_from(PARTS), max_size=12), st.booleans())
def test_whatever_it_says_a_lesson_is_read_and_no_tool_is_both_recommended_and_warned_of(
    parts: list[str], warning: bool
) -> None:
    advice = read_advice(tokens_of(" ".join(parts)), warning=warning)
    assert not set(advice.do) & set(advice.avoid)
    assert {*advice.do, *advice.avoid} <= BY_NAME.keys()


TASKS = {
    "notes": 'State the vocabulary of "The cat, the dog and 3 birds. They met on 2026-03-02, 14 kg in all."',
    "list": 'State the vocabulary of "pear, fig, fig, plum"',
}


def uses(make_call: Call, system: str, prompt: str, tool: str) -> int:
    """Return in how many of 25 attempts the agent called the tool."""
    task = Task(id="t", domain="notes", prompt=prompt)
    count = 0
    for seed in range(25):
        call = make_call(task=task, prompt=Prompt(system=system, user=prompt), seed=seed, temperature=1.0)
        count += any(frame.name == tool for frame in asyncio.run(open_offline()(call)).frames)
    return count


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if not tool.reads], ids=lambda tool: tool.name)
def test_a_warning_never_makes_the_agent_use_a_tool(tool: OfflineTool, make_call: Call) -> None:
    for prompt in TASKS.values():
        plain = uses(make_call, "Solve the task.", prompt, tool.name)
        for way in (NEVER[0], NEVER[7], CONDEMNED[1]):
            lesson = make_experience(1, summary32=f"For tasks about vocabulary: {way.format(tool.name)}.")
            warned = uses(make_call, merge_experiences(make_pack(), [lesson]), prompt, tool.name)
            assert warned <= plain, (way, prompt)
            assert warned <= 3, (way, prompt)
