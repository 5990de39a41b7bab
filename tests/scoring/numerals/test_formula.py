"""Numerals in mathematics are written anew; formulas stay."""

from contextlib import suppress

import pytest
from support.growth import growth

from pytest_tfgrpo.scoring.numerals.formula import with_plain_numerals
from pytest_tfgrpo.scoring.numerals.place import UnsureNumeral


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("-$5.00", "-5.00"), ("−€1.234,50", "-1234.50"), ("$5.00", "$5.00"), ("12,50", "12.50"),
        ("1,234", "1,234"),
        ("1.234.567", "1234567"), ("1 000 000", "1000000"), ("about 1.2 × 10^5", "about 120000"),
        (r"$1.5 \times 10^3$", r"$1.5 \times 1000$"), ("1.5e3", "1.5e3"), ("1,5E-3", "0.0015"),
        ("10^99", "1e99"), ("1,5e99999999999999999999", "1.5e99999999999999999999"),
        ("x^2 + 1", "x^2 + 1"), ("2^10", "2^10"), ("3 1/2", "3 1/2"), (r"\frac{1}{2}", r"\frac{1}{2}"),
        ("(1,2)", "(1,2)"), (r"\{1,2\}", r"\{1,2\}"), ("[0,5; 1,5]", "[0,5; 1,5]"), ("(1,200)", "(1,200)"),
        (r"\boxed{12{,}5}", r"\boxed{12.5}"), ("x = 1,5", "x = 1.5"), ("- 5", "- 5"), ("3½", "3½"),
        ("1,2,3", "1,2,3"), ("$-5x^2$", "$-5x^2$"),
        ("$-5$", "$-5$"), (r"-\$5.00", "-5.00"), ("$-1,5$", "$-1.5$"),
        (r"\boxed{1\,000}", r"\boxed{1000}"), (r"$1\;000$", "$1000$"), (r"\boxed{1\ 000}", r"\boxed{1000}"),
        (r"\boxed{3\,500\,000}", r"\boxed{3500000}"), (r"12{\,}345.5", "12345.5"), ("12~345", "12345"),
        (r"12\thinspace 345", "12345"), (r"12\hspace{1mm}345", "12345"), (r"1\!,\!000", "1000"),
        (r"x^2\,000", r"x^2\,000"), (r"1\,000\,00", r"1\,000\,00"), (r"0\,000", r"0\,000"),
        ("The answer is 42. It took 5 million steps", "The answer is 42. It took 5 million steps"),
        (r"\boxed{3}, not 5 million", r"\boxed{3}, not 5 million"),
    ],
)  # fmt: skip
def test_numerals_are_written_as_programs_write_them_and_formulas_stay(text, written):
    assert with_plain_numerals(text, "5") == written


@pytest.mark.parametrize("value", ["1, 2", r"\{1, 2\}", "x > 2", "(0, 1)", "1 or 2", r"\pm 2"])
def test_a_comma_stays_where_several_numbers_are_expected(value):
    assert with_plain_numerals("1,2", value) == "1,2"
    assert with_plain_numerals("1{,}2", value) == "1{,}2"


@pytest.mark.parametrize("text", ["5 million", "7\nThe answer is $5M.", "1,234,5", "答案是5万"])
def test_an_answer_that_ends_in_what_cannot_be_read_is_refused(text):
    with pytest.raises(UnsureNumeral, match="cannot be read for certain"):
        with_plain_numerals(text, "5")


@pytest.mark.parametrize(
    "piece", ["1", "1,", "(1,2", "$1", "1.234; ", "1,234;2 ", r"1\,000", "1×10^2", "answer 1"]
)
def test_the_time_for_a_long_answer_grows_with_its_length(piece):
    def read(count: int) -> None:
        with suppress(UnsureNumeral):
            with_plain_numerals(piece * count, "5")

    assert growth(read, 400 // len(piece)) < 64


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{5 \text{ million}}",
        r"\boxed{5\text{ thousand}}",
        r"\boxed{3 \text{ dozen}}",
        r"\boxed{\text{5 million}}",
        r"\boxed{101_2}",
        r"\boxed{101_{2}}",
        r"\boxed{(101)_2}",
        "\\boxed{101₂}",
    ],
)
def test_a_box_with_a_word_of_scale_or_another_base_is_refused(text):
    with pytest.raises(UnsureNumeral, match="cannot be read for certain"):
        with_plain_numerals(text, "5")


@pytest.mark.parametrize(
    "text", [r"\boxed{x_1}", r"\boxed{\log_2 5}", r"\boxed{C_5^2}", r"\boxed{5 \text{ cm}}", r"\boxed{2x_1}"]
)
def test_a_box_with_an_index_or_a_unit_stays(text):
    assert with_plain_numerals(text, "5") == text


def test_a_base_is_no_matter_where_the_value_has_one():
    assert with_plain_numerals(r"\boxed{101_2}", "101_2") == r"\boxed{101_2}"
