"""One text in several spellings, and what only looks alike."""

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

Check = Callable[..., tuple[bool, str]]


@pytest.fixture
def check(judge: Any) -> Check:
    def made(kind: str, answer: str, **params: Any) -> tuple[bool, str]:
        found = judge(kind, answer, **params)
        return found.passed, found.reason

    return made


CAFE = "Café Zoë 각"
APART = unicodedata.normalize("NFD", CAFE)


@pytest.mark.parametrize(("wanted", "answer"), [(CAFE, APART), (APART, CAFE)])
def test_one_text_in_two_spellings_of_unicode_is_one(check: Check, wanted: str, answer: str) -> None:
    for kind, params in (
        ("exact", {"value": wanted}),
        ("contains", {"value": wanted}),
        ("regex", {"pattern": f"^{wanted}$"}),
        ("similar", {"value": wanted, "min": 1}),
    ):
        assert check(kind, answer, **params) == (True, "")


def test_a_blank_that_does_not_break_is_a_blank_unless_one_is_wanted(check: Check) -> None:
    for blank in "\u00a0\u202f\u2007":
        assert check("contains", f"It is 42{blank}km.", value="42 km")[0]
        assert check("exact", f"42{blank}km", value="42 km")[0]
    assert check("exact", "42\u00a0km", value="42\u00a0km")[0]
    assert not check("exact", "42 km", value="42\u00a0km")[0]


@pytest.mark.parametrize(
    ("wanted", "answer"), [("don't", "don’t"), ('say "a"', "say “a”"), ("2020-2021", "2020–2021")]
)
def test_other_quotation_marks_and_dashes_are_other_signs_and_named(
    check: Check, wanted: str, answer: str
) -> None:
    for kind in ("exact", "contains"):
        passed, reason = check(kind, answer, value=wanted)
        assert not passed
        assert reason.endswith("differ only in the form of quotation marks, apostrophes or dashes")
    assert "differ only" not in check("exact", "döner", value=wanted)[1]
    assert "differ only" not in check("exact", f"{answer}!", value=wanted)[1]


@pytest.mark.parametrize(("plain", "forms"), [("'", "‘’‚′`´"), ('"', "“”„«»″"), ("-", "‐‑‒–—−")])
def test_every_form_of_a_sign_is_named_as_one(check: Check, plain: str, forms: str) -> None:
    for form in forms:
        passed, reason = check("exact", f"a{form}é", value=f"a{plain}é")
        assert not passed
        assert reason.endswith("differ only in the form of quotation marks, apostrophes or dashes"), form


def test_a_text_that_composes_to_a_far_shorter_one_equals_it(check: Check) -> None:
    """The longest: a decomposed Greek letter, whose other case has three parts more."""
    apart = unicodedata.normalize("NFD", "ᾂ" * 9)
    for wanted in (unicodedata.normalize("NFC", apart), apart.casefold()):
        assert check("exact", apart, value=wanted, ignore_case=True)[0]


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ('{"city": "Ko\\u0308ln"}', {"city": "Köln"}),
        ('{"city": "Ko\u0308ln"}', {"city": "Köln"}),
        ('{"gro\u0308\u00dfe": [1]}', {"größe": [1]}),
        ('{"größe": ["Köln"]}', {"gro\u0308ße": ["Ko\u0308ln"]}),
    ],
)
def test_texts_and_keys_of_json_are_compared_in_one_spelling(check: Check, answer: str, value: Any) -> None:
    assert check("json", answer, value=value) == (True, "")
    assert check("json_schema", answer, schema={"const": value}) == (True, "")


@pytest.mark.parametrize(
    ("kind", "answer", "params"),
    [
        ("exact", "\x1b[1;32mRome\x1b[0m", {"value": "Rome"}),
        ("contains", "Ro\x1b[31mme", {"value": "Rome"}),
        ("regex", "\x1b[38;5;1mRome\x1b[m", {"pattern": "^Rome$"}),
        ("exact", "\x1b]8;;http://x\x1b\\Rome\x1b]8;;\x07", {"value": "Rome"}),
        ("json", '\x1b[1m{"a": 1}\x1b[0m', {"value": {"a": 1}}),
        ("number", "\x1b[1m42\x1b[0m", {"value": 42}),
        ("number", "\x9b32m5\x9b0m", {"value": 5}),
        ("exact", "\x9bmR\x9b1;31mome", {"value": "Rome"}),
        ("exact", "\x9bHR\x9bJo\x9bKme", {"value": "Rome"}),
    ],
)
def test_the_colours_of_a_terminal_decide_nothing(
    check: Check, kind: str, answer: str, params: dict[str, Any]
) -> None:
    assert check(kind, answer, **params) == (True, "")


def test_a_check_of_colours_sees_them(check: Check) -> None:
    assert check("contains", "\x1b[31mred", value="\x1b[31m")[0]
    assert check("regex", "\x1b[31mred", pattern=r"\x1b\[31m")[0]
    assert check("contains", "\x9b31mred", value="\x9b31m")[0]
