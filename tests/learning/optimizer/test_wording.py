"""The words of a lesson about a kind of task."""

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.learning.optimizer import wording
from pytest_tfgrpo.learning.optimizer.wording import key_terms, one_word_answers, parse, phrase, shares


@pytest.mark.parametrize(
    ("terms", "most", "lesson"),
    [
        (["words", "text"], 32, "For tasks about words, text: use count_words first."),
        (["words", "text"], 7, "For tasks about words: use count_words first."),
        (["words", "text"], 6, None),
        ([], 32, None),
    ],
)
def test_a_lesson_names_as_many_terms_as_fit(terms: list[str], most: int, lesson: str | None) -> None:
    assert phrase(terms, "use count_words first", most) == lesson
    if lesson is not None:
        named = terms if most == 32 else terms[:1]
        assert parse(lesson) == (tuple(named), "use count_words first")


@pytest.mark.parametrize("lesson", ["For tasks about words", "For tasks about a: b\nc", "Use count_words."])
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
