"""What one failure is told apart by: like messages meet, and what tells what to fix stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_frame, make_rollout, make_scenario

from pytest_tfgrpo.core.records import CheckResult, Failure, Rollout
from pytest_tfgrpo.report.failures.failure_labels import FailureText, labels_of, told, tools_of


def wrong(reason: str, kind: str = "exact") -> Rollout:
    return make_rollout(checks=(CheckResult(kind=kind, weight=1.0, credit=0.0, reason=reason),))


def whole(message: FailureText) -> str:
    return told(message, [True] * len(message.values))


def reason(text: str, kind: str = "exact") -> str:
    message = labels_of(wrong(text, kind), make_scenario()).reason
    return told(message, [False] * len(message.values))


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("expected '2026-08-10', got 'Thursday'", "expected a date, got a word"),
        ("expected 'Thursday', got 'Friday'", "expected a word, got another word"),
        ("expected '3', got ''", "expected a number, got nothing"),
        ("expected 'three words here', got 'four other words here'", "expected text, got other text"),
        ("expected 'yes', got 'Yes.'", "expected a word, got it in other case, spaces or punctuation"),
        ("expected 'yes', got 'I think yes, it is'", "expected a word, got it with more around it"),
        ("expected 'Mill Bakery, Norwich', got 'Norwich'", "expected text, got a part of it"),
        ("expected 'a', got 'it has no such letter'", "expected a word, got text"),
        ("expected '3', got '{\"answer\": 3}'", "expected a number, got it with more around it"),
        ("expected a match of '^[0-9]+$', got 'none'", "expected a match of a pattern, got a word"),
        ("expected a key 'city' at /orders/3", "expected a key a word at a path"),
        ("see https://example.org/a?b=1 for /tmp/x/12/y", "see a URL for a path"),
        ("object 0x7f3a9c of 3f2b8c1e-aaaa-bbbb-cccc-0123456789ab", "object an id of an id"),
        ("expected {'a': 1, 'b': [2]}, got {'a': 2}", "expected data, got other data"),
        ("the user's reply isn't there", "the user's reply isn't there"),
    ],
)
def test_values_of_a_message_are_replaced_by_what_they_are(text: str, label: str) -> None:
    assert reason(text) == f"check exact: {label}"


@pytest.mark.parametrize(
    ("wanted", "got", "label"),
    [
        ("3.35", "3.0", "expected N, got it rounded"),
        ("92.0", "92000.0", "expected N, got it off by a power of ten"),
        ("7", "-7.0", "expected N, got it with the other sign"),
        ("7", "11.5", "expected N, got another number"),
        ("0", "1e308", "expected N, got another number"),
    ],
)
def test_a_wrong_number_is_told_by_how_it_is_wrong(wanted: str, got: str, label: str) -> None:
    text = f"expected {wanted} within 1e-06, got {got} as the last number"
    assert reason(text, "number") == f"check number: {label}"


def test_the_check_that_cost_most_is_the_reason_and_all_failed_ones_are_the_check() -> None:
    checks = (
        CheckResult(kind="regex", weight=1.0, credit=0.0, reason="no match"),
        CheckResult(kind="number", weight=3.0, credit=0.0, reason="no number"),
        CheckResult(kind="contains", weight=9.0, credit=1.0),
    )
    labels = labels_of(make_rollout(checks=checks), make_scenario())
    assert labels.reason.template == "check number: no number"
    assert labels.check.template == "number + regex"


TRACEBACK = """Traceback (most recent call last):
  File "/home/someone/agent.py", line 12, in solve
    return int(text)
ValueError: invalid literal for int() with base 10: 'three'
"""


def test_an_exception_is_told_by_its_type_and_place_and_its_reason_by_its_message() -> None:
    rollout = make_rollout(credit=0.0, status="failed", failure=Failure(code="crash", message=TRACEBACK))
    labels = labels_of(rollout, make_scenario())
    assert labels.exception.template == "ValueError at agent.py:12 in solve"
    assert whole(labels.reason).startswith("crash: ValueError: invalid literal for int()")
    assert labels.check.template == "no answer to check"


@pytest.mark.parametrize("last", ["agent.BadReply: no JSON", "BadReply"])
def test_any_class_may_be_an_exception(last: str) -> None:
    message = TRACEBACK.replace("ValueError: invalid literal for int() with base 10: 'three'", last)
    for text in (message, f"the program ended with status 1; its stderr ends:\n{message}"):
        rollout = make_rollout(credit=0.0, status="failed", failure=Failure(code="crash", message=text))
        name = last.partition(":")[0]
        shown = labels_of(rollout, make_scenario()).exception.template
        assert shown == f"{name} at agent.py:12 in solve"


def test_an_exception_of_a_program_is_found_in_the_end_of_its_stderr() -> None:
    message = f"the program ended with status 1; its stderr ends:\n{TRACEBACK}"
    rollout = make_rollout(credit=0.0, status="failed", failure=Failure(code="crash", message=message))
    assert labels_of(rollout, make_scenario()).exception.template == "ValueError at agent.py:12 in solve"


def test_an_error_that_is_not_the_agents_says_that_it_is_not_scored() -> None:
    rollout = make_rollout(credit=None, failure=Failure(code="provider", message="503 from the provider"))
    labels = labels_of(rollout, make_scenario())
    assert whole(labels.reason) == "provider, not scored: 503 from the provider"
    assert labels.exception.template == "provider"


def test_of_a_rollout_that_answered_the_last_error_of_a_tool_is_the_exception() -> None:
    frames = (
        make_frame("read", error="no such file"),
        make_frame("parse", error="bad date"),
        make_frame("add"),
    )
    labels = labels_of(make_rollout(credit=0.0, frames=frames), make_scenario())
    assert labels.exception.template == "tool parse: bad date"
    assert labels_of(make_rollout(credit=0.0), make_scenario()).exception.template == "no exception"


def test_a_sequence_of_tools_has_repeated_calls_once_and_marks_those_that_failed() -> None:
    names = ["a", "a", "b", "b", "a"]
    frames = tuple(make_frame(name, error="x" if n == 3 else None) for n, name in enumerate(names))
    assert tools_of(make_rollout(frames=frames)) == "a, b, b (failed), a"
    assert tools_of(make_rollout(frames=())) == "no tool"
    assert tools_of(make_rollout(frames=tuple(make_frame(f"t{n}") for n in range(99)))).endswith("t7, ...")


@pytest.mark.parametrize(
    ("truth", "label"),
    [("judge", "the judge scored it low"), ("majority", "the answer is not that of the majority")],
)
def test_a_score_without_checks_is_told_by_who_gave_it(truth: str, label: str) -> None:
    labels = labels_of(make_rollout(checks=()), make_scenario(truth=truth, checks=()))
    assert labels.reason.template == labels.check.template == label


def test_keys_of_a_provider_are_in_no_label() -> None:
    key = "sk-proj-" + "A1b2C3d4" * 5
    rollout = make_rollout(
        credit=0.0,
        status="failed",
        failure=Failure(code="crash", message=f"denied for {key}"),
        frames=(make_frame(key),),
    )
    labels = labels_of(rollout, make_scenario())
    shown = [whole(message) for message in labels]
    assert not any("A1b2C3d4" in text for text in shown)


@given(st.text(max_size=400), st.text(max_size=40), st.text(max_size=40))
def test_any_text_gives_labels_that_are_printable_lines(text: str, kind: str, tool: str) -> None:
    rollout = make_rollout(
        checks=(CheckResult(kind=kind, weight=1.0, credit=0.0, reason=text),),
        frames=(make_frame(tool, error=text),),
    )
    for message in labels_of(rollout, make_scenario()):
        for keep in (True, False):
            shown = told(message, [keep] * len(message.values))
            assert shown.isprintable()
            assert "\n" not in shown
