"""The words of a lesson about a kind of task."""

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.words import stem
from pytest_tfgrpo.learning.optimizer import wording
from pytest_tfgrpo.learning.optimizer.wording import (
    Topic,
    joined,
    key_terms,
    one_word_answers,
    parse,
    phrase,
    room_for,
    shares,
)


def topic(*terms: str) -> Topic:
    return Topic(terms, {stem(term): 1.0 for term in terms})


@pytest.mark.parametrize(
    ("room", "terms"), [(1, ["words"]), (2, ["words", "text"]), (30, ["words", "text", "page"])]
)
def test_a_lesson_names_as_many_terms_as_fit(room: int, terms: list[str]) -> None:
    assert joined([topic("words", "text", "page")], (), room) == terms
    lesson = phrase(terms, "use count_words first")
    assert parse(lesson) == (tuple(terms), "use count_words first")
    assert len(lesson.split()) == 5 + len(terms) + (len(terms) > 1) + 3
    assert room_for("use count_words first", 6 + room + 3) == room


def test_one_topic_needs_no_or() -> None:
    lesson = phrase(["words"], "use count_words first")
    assert room_for("use count_words first", len(lesson.split())) == 1
    assert room_for("use count_words first", len(lesson.split()) - 1) < 1


def test_each_topic_has_a_word_even_beyond_the_room_and_what_is_kept_comes_first() -> None:
    topics = [topic("apples", "fruit"), topic("plums", "fruit"), topic("pears", "fruit")]
    assert joined(topics, ["plum", "kiwi"], 3) == ["plum", "kiwi", "apples", "pears"]


def test_many_topics_share_the_words_that_several_have() -> None:
    topics = [topic(f"x{name}", "fruit") for name in "abcdefgh"] + [topic("nut", "shell")]
    assert joined(topics, (), 3) == ["fruit", "nut", "xa"]


def test_lessons_that_earlier_versions_and_people_wrote_are_read() -> None:
    assert parse("For tasks about words, text: use a.") == (("words", "text"), "use a")
    assert parse("For tasks about words or text: use a") == (("words", "text"), "use a")
    by_hand = "If a task is about unit prices, vat, or sums, use a, then b."
    assert parse(by_hand) == (("unit prices", "vat", "sums"), "use a, then b")
    assert parse("If a task is about vat, unit prices or sums, avoid a.")[0] == ("vat", "unit prices", "sums")
    assert parse("If a task is about words or text or both, use a") == (("words", "text", "both"), "use a")


@pytest.mark.parametrize("terms", [("sum",), ("a", "b"), ("a-1", "b.c", "or"), ("or", "or", "use")])
def test_an_advice_with_commas_and_alternatives_is_read_back_whole(terms: tuple[str, ...]) -> None:
    for advice in ("use a, then b", "call a with b, or c", "avoid or, then a"):
        assert parse(phrase(terms, advice)) == (terms, advice)


@pytest.mark.parametrize(
    "lesson",
    ["If a task is about words", "For tasks about words", "For tasks about a: b\nc", "Use count_words."],
)
def test_other_lessons_are_not_of_that_form(lesson: str) -> None:
    assert parse(lesson) is None


def test_what_a_prompt_quotes_says_nothing_of_the_kind_of_task() -> None:
    prompt = "Count `code` \"said\" “so” «ici» 'it' ```block\n2``` <input>data</input> don't"
    assert wording.wording(prompt).split() == ["Count", "don't"]
    assert len(wording.wording("x" * 30_000)) == 20_000


def test_terms_are_those_of_its_own_tasks_and_of_few_others_most_distinctive_first() -> None:
    own = ["Convert kelvin degrees", "Convert kelvin values", "Convert kelvin degrees system"]
    found = key_terms(own, shares(own), [shares(["Convert money"])], frozenset())
    assert found == ["kelvin", "degrees"]
    assert key_terms(own, shares(own), [], frozenset({"kelvin"})) == ["convert", "degrees"]
    assert "system" not in key_terms(["Rank system orders"], shares(["Rank system orders"]), [], frozenset())
    many = [" ".join(f"alpha{chr(97 + n)}" for n in range(12))]
    assert len(key_terms(many, shares(many), [], frozenset())) == wording.MAX_TERMS
    long = ["convert " + "x" * 24 + " " + "y" * 25]
    assert key_terms(long, shares(long), [], frozenset()) == ["convert", "x" * 24]


def test_answers_of_one_word_are_those_of_any_check() -> None:
    checks = (
        Check(kind="exact", params={"value": " Paris "}),
        Check(kind="contains", params={"values": ["two words", "Rome"], "in": {"deep": ["Oslo"]}}),
        Check(kind="number", params={"value": 3}),
    )
    assert one_word_answers([make_scenario(checks=checks)]) == {"paris", "rome", "oslo"}
