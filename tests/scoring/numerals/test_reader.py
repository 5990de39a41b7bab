"""Numbers in answers: each is read whole, or cannot be read for certain."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import growth
from support.numerals.cases import CASES, UNSURE

from pytest_tfgrpo.scoring.numerals.place import UnsureNumeral
from pytest_tfgrpo.scoring.numerals.reader import certain_number, last_number, whole_number


def read(text: str) -> float | str | None:
    try:
        return last_number(text)
    except UnsureNumeral:
        return UNSURE


def test_there_are_many_cases_of_each_form():
    assert len(CASES) >= 350
    assert len({case.answer for case in CASES}) == len(CASES)
    assert {case.form for case in CASES} >= {
        "sign",
        "currency",
        "groups",
        "decimals",
        "exponent",
        "scripts",
        "LaTeX",
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.answer.encode("unicode_escape").decode()[:40])
def test_the_last_number_of_an_answer_is_read_whole_or_not_at_all(case):
    assert read(case.answer) == case.number


def test_each_example_of_the_documentation_is_read_as_it_says():
    text = Path(__file__).parents[3].joinpath("docs/scenarios.md").read_text("utf-8")
    section = text.split("## Numbers in answers")[1].split("## The math check")[0]
    rows = [row.split("|") for row in section.splitlines() if row.startswith("| ")][2:]
    assert len(rows) == 10
    for _, _, certain, uncertain, _ in rows:
        assert all(isinstance(read(one), float) for one in re.findall("`([^`]*[0-9½٤][^`]*)`", certain)), (
            certain
        )
        assert {read(one) for one in re.findall("`([^`]*)`", uncertain)} <= {UNSURE}, uncertain
    values = re.findall(r"`([^`]+)` is (-?[0-9.]+)(?=[\s,:;.]*(?:[a-z`,.]|$))", section.partition("\n* ")[2])
    assert len(values) >= 10
    assert [(one, read(one)) for one, _ in values] == [(one, float(said.rstrip("."))) for one, said in values]


@pytest.mark.parametrize("frame", ["so it is {}", "First 7, then 8.\n\n{}\n", "**Answer:** {}", "x = {}"])
@pytest.mark.parametrize("form", ["currency", "scripts", "LaTeX", "exponent"])
def test_words_before_a_numeral_do_not_change_it(form, frame):
    signs = {"- $5", "(USD 1,200.50)"}  # a bullet, and an amount in brackets: what stands before them decides
    cases = [
        case for case in CASES if case.form == form and case.number is not None and case.answer not in signs
    ]
    assert [(case.answer, read(frame.format(case.answer))) for case in cases] == [
        (case.answer, case.number) for case in cases
    ]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            "5 million",
            "'5' cannot be read for certain: 'million' follows it, and words are not read as numbers",
        ),
        ("€1.234", "'€1.234' cannot be read for certain: it could be 1.234 or 1234"),
        ("it is 100 200", "'100 200' cannot be read for certain: it could be 100200 or several numbers"),
        ("1/2", "'1/2' cannot be read for certain: it could be a fraction, a ratio or a date"),
        ("5.00-", "'5.00-' cannot be read for certain: its sign seems to follow it"),
    ],
)
def test_why_a_numeral_cannot_be_read_names_it_and_what_it_could_be(answer, why):
    with pytest.raises(UnsureNumeral) as raised:
        last_number(answer)
    assert str(raised.value) == why
    assert certain_number(answer) is None


@given(st.text(alphabet="0123456789.,-+eE ", max_size=30) | st.text(max_size=40))
def test_hostile_digits_give_a_number_or_none_or_are_refused(text):
    found = read(text)
    assert found is None or found == UNSURE or isinstance(found, float)


@given(st.text(alphabet="0123456789,. '½×^$€-–()[]/e٣一\u00a0\\{}", max_size=25))
def test_what_any_mixture_of_signs_gives_is_one_of_three(text):
    assert read(text) is None or read(text) == UNSURE or isinstance(read(text), float)


PIECES = [
    "1",
    "1,",
    "1.",
    "1,234",
    "-",
    "1e",
    ".5",
    "1 ",
    "a1",
    ",111",
    "1/",
    "$1",
    "(1",
    "½",
    "\\frac{",
    "１，",
    "1×10^",
]


@pytest.mark.parametrize("piece", PIECES)
def test_the_time_for_many_digits_grows_with_their_number(piece):
    assert growth(lambda n: read(piece * n), 20_000 // len(piece)) < 64


def test_digits_before_any_number_of_words_with_digits_are_not_searched_for_ever():
    assert read("7 " + "B1 " * 200) == 7
    assert read("7 " + "B1 " * 2000) == UNSURE


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,000", "1000"), ("-$5.00", "-5.00"), ("4 1", None), ("about 5", None), ("", None), ("5 kg", None),
        ("1.234.567,5", "1234567.5"), ("4\u200b2", "42"), ("1/2", None), ("9" * 400, "9" * 400), ("٤٢", "42"),
    ],
)  # fmt: skip
def test_a_text_that_is_one_number_is_told_from_one_that_has_one(text, number):
    assert whole_number(text) == number
