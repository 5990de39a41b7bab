"""Other words and numbers in the place of those of a test."""

import pytest

from pytest_tfgrpo.scoring.runners.edits.other_words import COMMON, Words, with_other_digit

TEST = "def test_a():\n    assert parse('hello {}', 'hello world 2021 21') == 'world'\n"
FILE = f"NAMES = ['spam', \"Title\", 'LOUD', '77']\n\n\n{TEST}".encode()


def drawn(token: str, file: bytes = FILE, near: str = TEST) -> set[str]:
    words = Words(file, near)
    return {other for _ in range(60) if (other := words.other(token)) is not None}


@pytest.mark.parametrize(
    ("token", "others"),
    [
        ("world", {"hello"}),  # of the test itself
        ("ham", {"hello", "world"}),
        ("Other", {"Title"}),  # of the file, as its case is
        ("OTHER", {"LOUD"}),
        ("7", {str(n) for n in range(4, 10)} - {"7"}),
        ("0", {"1", "2", "3"}),
        ("07", {f"0{n}" for n in range(1, 10)} - {"07"}),
        ("11", {"10", "12"}),
        ("1011", {"1111", "1001", "1010"}),
    ],
)
def test_another_word_is_of_the_same_test_else_of_the_file_and_of_its_kind(token, others) -> None:
    assert drawn(token) == others


def test_where_a_file_has_no_such_word_one_is_drawn_that_tests_use() -> None:
    for token, as_written in (("strangely", str.lower), ("STRANGELY", str.upper), ("x", str.lower)):
        found = drawn(token, b"", "")
        assert len(found) > 5
        assert found <= {as_written(word) for word in COMMON}
    assert drawn("incomprehensibilities", b"", "") == set()
    assert drawn("camelCase", b"", "") == set()


def test_a_date_stays_one_and_a_number_of_the_test_is_drawn_sooner() -> None:
    assert {int(day) for day in drawn("16")} <= set(range(13, 29))
    again = [Words(FILE, TEST).other("16") for _ in range(200)]
    assert again.count("21") > 60


@pytest.mark.parametrize("number", ["100", "777", "2021", "0011", "123456789"])
def test_a_number_with_another_digit_keeps_its_first_and_its_base(number: str) -> None:
    others = with_other_digit(number)
    assert others
    for other in others:
        assert len(other) == len(number)
        assert other[0] == number[0]
        assert max(other) <= max(number)
        assert sum(one != two for one, two in zip(other, number, strict=True)) == 1


@pytest.mark.parametrize(
    ("old", "new", "odd"),
    [
        ("'5'", "'6'", 1),
        ("'world'", "'hello'", 2),  # what is expected stands in the test no more
        ("'world'", "'spam'", 3),
        ("'ham'", "'hello'", 0),
        ("'ham'", "'other'", 2),
        ("'ham'", "'hem'", 4),  # no word that anybody uses
        ("x", "[x]", 4),
    ],
)
def test_how_odd_a_text_is_says_what_a_reader_sees(old: str, new: str, odd: int) -> None:
    assert Words(FILE, TEST).odd(old, new) == odd


@pytest.mark.parametrize(
    ("old", "new", "odd"),
    [
        ("world", "world", 0),
        ("hello", "world", 2),
        ("spam", "ham", 4),  # stands nowhere
        ("spam", "Title", 1),  # of the file
        ("spam", "12", 1),
        ("spam", "private", 2),
        ("spam", "spam!", 4),  # written otherwise
        ("world", "spam", 3),  # stands once more in the test
        ("21", "22", 1),
        ("x a", "x", 4),
    ],
)
def test_how_odd_a_text_is_in_the_place_of_another(old, new, odd) -> None:
    near = TEST.replace("== 'world'", "== f('world', a)")
    assert Words(FILE, near).odd(old, new) == odd
