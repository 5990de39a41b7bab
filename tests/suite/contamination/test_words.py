import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.suite.contamination.words import data_of, words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How many words?", "how  many\nWORDS"),
        ("Say “hello”, please.", 'say "hello" please'),
        ("**Bold** text\n=====", "bold text"),
        ("1,000 boxes", "1000 boxes"),
        ("ｆｕｌｌ width", "full width"),
        ("zero\u200bwidth and soft\u00adhyphen", "zerowidth and softhyphen"),
        ("\u202bשלום עולם\u202c", "שלום עולם"),
        ("日本語。テキスト！", "日本語 テキスト"),
        ("- one\n- two", "one, two"),
    ],
)
def test_case_and_typography_do_not_count(one: str, other: str) -> None:
    assert words(one) == words(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 + 4", "3 - 4"),
        ("3 * 4", "3 / 4"),
        ("is it -5", "is it 5"),
        ("3.5 kg", "35 kg"),
        ("a == b", "a != b"),
        ("it costs $5", "it costs €5"),
        ("2026-03-02", "2026-03-20"),
        ("rate 😀", "rate 😡"),
        ("京都", "東京"),
        ("naive", "naïve"),
    ],
)
def test_data_does(one: str, other: str) -> None:
    assert words(one) != words(other)


def test_scripts_without_spaces_are_taken_character_by_character() -> None:
    assert words("東京の天気") == ["東", "京", "の", "天", "気"]


def test_numbers_and_signs_are_data() -> None:
    assert data_of(words("Add 3 and 4.5 on 2026-03-02: 3 + x")) == {"3": 2, "4.5": 1, "2026-03-02": 1, "+": 1}


@given(st.text(max_size=80))
def test_any_text_has_words_and_upper_case_the_same(text: str) -> None:
    found = words(text)
    assert all(word and not word.isspace() for word in found)
    assert words(f"  {text}\n") == found
