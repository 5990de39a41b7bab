"""What is read out of a teacher's answer, whatever it is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches
from support.teachers import USE_COUNT, operation, says

from pytest_tfgrpo.learning.optimizer.llm.parsing import MAX_CHARACTERS, Change, read

ADDITION = Change(op="ADD", polarity="do", lesson=USE_COUNT, reason="compared")
ANSWER = says(operation())


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"```json\n{ANSWER}\n```",
        f"I compared {{both}} attempts [1] and [2].\n\n{ANSWER}\n\nI hope that {{this}} helps!",
        f"<think>maybe {says(operation(lesson='A draft.'))}</think>{ANSWER}",
        f'{{"op": "x"}} {ANSWER}',
        json.dumps([operation()]),
        json.dumps({"operations": [operation("add")], "more": {"deep": [1, 2, {}]}}),
        "\ufeff" + ANSWER,
        '{"unfinished": ' * 50 + ANSWER,
    ],
)
def test_operations_are_found_in_fences_prose_and_thoughts(text: str) -> None:
    reading = read(text, max_words=32)
    assert reading.changes == (ADDITION,)
    assert reading.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would rather not say.",
        "null",
        "[]",
        "[1, 2]",
        '{"operations": {}}',
        '{"operations": [{"op": "ADD"',
        '{"operations": NaN}',
        '{"operations": [' + "9" * 5_000 + "]}",
        '{"operations": [' * 100_000,
        "[" * 150_000,
        '{"a":' * 30_000,
        '[{"op": 1},' * 10_000,
        "{" * MAX_CHARACTERS,
        f"{ANSWER}{' prose' * MAX_CHARACTERS}",
    ],
)
def test_what_holds_no_list_of_operations_is_malformed(text: str) -> None:
    reading = read(text, max_words=32)
    assert not reading.readable
    assert [problem.code for problem in reading.problems] == ["malformed"]


def test_an_answer_cut_at_the_limit_of_tokens_is_called_that() -> None:
    (problem,) = read(ANSWER[:40], max_words=32, cut=True).problems
    assert "cut off" in problem.message


def test_no_operations_is_an_answer_too() -> None:
    reading = read('{"operations": []}', max_words=32)
    assert reading.readable
    assert reading.changes == reading.problems == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"op": "REPLACE"}, '"op" must be one of ADD, UPDATE, DELETE, KEEP'),
        ({"op": None}, '"op" must be one of'),
        ({"op": ["ADD"]}, '"op" must be one of'),
        ({"op": "UPDATE"}, "UPDATE needs the id of a lesson"),
        ({"op": "DELETE", "ids": "L1"}, "lists of texts"),
        ({"op": "KEEP", "ids": [1]}, "lists of texts"),
        ({"lesson": ""}, '"lesson"'),
        ({"lesson": 3}, '"lesson"'),
        ({"lesson": float("nan")}, None),
        ({"polarity": "never"}, '"do" or "avoid"'),
        ({"polarity": {"do": 1}}, '"do" or "avoid"'),
        ({"lesson": "..."}, "repeats the form"),
        ({"reason": " in a few words "}, "repeats the form"),
        ({"lesson": "Use the first 3 steps of it."}, "no word about a task"),
    ],
)
def test_an_operation_of_another_form_is_left_out_and_said(change: dict[str, Any], words: str | None) -> None:
    reading = read(says(operation(), operation(**change)), max_words=32)
    if words is None:  # NaN is no JSON, so nothing of it can be trusted
        assert not reading.readable
        return
    assert reading.changes == (ADDITION,)
    (problem,) = reading.problems
    assert problem.code == "malformed"
    assert problem.message.startswith("operation 2: ")
    assert words in problem.message


def test_a_lesson_over_the_cap_is_not_cut_but_named() -> None:
    reading = read(says(operation(lesson="word " * 33), operation(lesson="w" * 601)), max_words=32)
    assert reading.changes == ()
    assert [problem.code for problem in reading.problems] == ["word_cap", "word_cap"]
    assert "has 33 words; 32 are allowed" in reading.problems[0].message
    assert read(says(operation(lesson="word " * 32)), max_words=32).problems == ()
    assert read(says(operation(lesson="w" * 600)), max_words=32).problems == ()


def test_an_addition_of_a_consolidation_names_what_it_rests_on() -> None:
    assert read(ANSWER, max_words=32, sources=True).problems
    sourced = read(says(operation(sources=["P1", " P2 ", "P1"])), max_words=32, sources=True)
    assert sourced.problems == ()
    assert sourced.changes[0].sources == ("P1", "P2")


def test_white_space_surrogates_and_secrets_do_not_get_far() -> None:
    text = '{"operations": [{"op": "ADD", "polarity": "do", "lesson": " two\\n\\tlines \\ud800 ", "reason": '
    (change,) = read(text + '"api_key=0123456789abcdef\\u0007"}]}', max_words=32).changes
    assert change.lesson == "two lines ?"
    assert "0123456789abcdef" not in change.reason
    assert change.reason.isprintable()


def test_very_many_operations_are_not_all_looked_at() -> None:
    assert read(says(*[operation()] * 200), max_words=32).problems == ()
    reading = read(says(*[operation()] * 1_000), max_words=32)
    assert len(reading.changes) == 200
    assert [problem.code for problem in reading.problems] == ["too_many"]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ("op", "ids", "polarity", "lesson", "sources", "reason")
VALUES = JSON | st.sampled_from(["ADD", "UPDATE", "DELETE", "KEEP", "do", "avoid", ["L1"]])


IDS = st.lists(st.sampled_from(["L1", "L2"]), min_size=1, max_size=2)
LESSON = st.text("ab ,", min_size=1, max_size=9).map(lambda text: f"use {text}")
POLARITY = st.sampled_from(["do", "avoid"])
OP = st.sampled_from(["ADD", "UPDATE", "DELETE"])
RIGHT = st.fixed_dictionaries(
    {
        "op": OP,
        "ids": IDS,
        "polarity": POLARITY,
        "lesson": LESSON,
        "sources": IDS,
        "reason": st.text(max_size=5),
    }
)
OPERATIONS = st.lists(RIGHT | st.dictionaries(st.sampled_from(FIELDS), VALUES) | JSON, max_size=5)


@reaches("a change", "a problem")
@given(OPERATIONS, st.booleans())
def test_any_json_is_read_or_refused(operations: list[Any], sources: bool) -> None:
    reading = read(json.dumps({"operations": operations}), max_words=5, sources=sources)
    assert len(reading.changes) + len(reading.problems) == len(operations) or not reading.readable
    reached("a problem", reading.problems)
    for change in reading.changes:
        reached("a change")
        assert change.op == "ADD" or change.ids
        assert len(change.lesson.split()) <= 5
        change.lesson.encode()


NOISE = st.text(alphabet='{}[]":,op ADD\\n', max_size=200)
SAID = OPERATIONS.map(lambda operations: json.dumps({"operations": operations}))


@reaches("operations", "malformed")
@given(NOISE | st.tuples(NOISE, SAID, NOISE).map("".join) | st.tuples(SAID, NOISE).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    reading = read(text, max_words=5)
    reached("malformed" if not reading.readable else "operations", not reading.readable or reading.changes)
    assert reading.readable or reading.problems
