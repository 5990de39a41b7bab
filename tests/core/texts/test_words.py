import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.texts.words import content, stem, words


@pytest.mark.parametrize(
    "forms",
    [
        ("sort", "sorts", "sorted", "sorting"),
        ("remove", "removes", "removed", "removing"),
        ("stop", "stopped", "stopping"),
        ("query", "queries"),
        ("box", "boxes"),
        ("date", "dates", "dated"),
    ],
)
def test_forms_of_a_word_share_a_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(("one", "other"), [("note", "notice"), ("address", "add"), ("status", "state")])
def test_different_words_keep_different_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_content_leaves_out_function_words_scaffolding_and_numbers() -> None:
    assert content("For tasks about the 12 words: use count_items, then stop.") == {
        stem("words"), stem("count"), stem("items"), stem("stop")
    }  # fmt: skip


@reaches("a word", "a long run of letters")
@given(st.text() | st.text("abÀß_1 -", max_size=30) | st.text("aÀ", min_size=41, max_size=60))
def test_words_are_bounded_and_hold_no_space_digit_or_underscore_whatever_the_text(text: str) -> None:
    reached("a long run of letters", len(text) > 40 and text.isalpha())
    for word in words(text):
        reached("a word")
        assert 2 <= len(word) <= 40
        assert not any(c.isspace() or c.isdecimal() or c == "_" for c in word)


@given(st.text(st.characters(codec="ascii")))
def test_content_does_not_depend_on_case(text: str) -> None:
    assert content(text) == content(text.upper())
