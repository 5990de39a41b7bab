"""The check that an answer is like a text."""

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.scoring.checks import similar


def test_an_answer_passes_if_it_is_as_like_the_value_as_min_says(judge):
    value = "The lamp costs 40 euros."
    assert judge("similar", "the lamp costs 40 euro", value=value).passed
    result = judge("similar", "a chair", value=value)
    assert result.reason == (
        "similarity 0.258, at least 0.8 required: expected 'The lamp costs 40 euros.', got 'a chair'"
    )
    assert judge("similar", "a chair", value=value, min=0.25).passed


def test_a_reason_shows_both_texts_as_they_are_and_0_8_is_asked_for(judge):
    assert judge("similar", "abcdefghijklmno", value="abcdefghij").passed
    close = judge("similar", "abcdefghijklmnop", value="abcdefghij")
    assert close.reason.startswith("similarity 0.769, at least 0.8 required: ")
    assert judge("similar", "A Chair", value="The LAMP").reason.endswith("expected 'The LAMP', got 'A Chair'")


def test_white_space_around_does_not_count_and_every_word_does(judge):
    assert judge("similar", " yes\n", value="\tyes ", min=1).passed
    assert not judge("similar", "red red green", value="red green", by="words", min=1).passed


def test_case_counts_only_if_asked_for(judge):
    assert judge("similar", "YES", value="yes", min=1).passed
    assert not judge("similar", "YES", value="yes", min=1, ignore_case=False).passed


def test_by_words_their_order_does_not_matter(judge):
    assert judge("similar", "green and red", value="red and green", by="words", min=1).passed
    assert not judge("similar", "green and red", value="red and green", min=1).passed


def test_without_its_library_the_check_says_how_to_install_it(load, monkeypatch):
    monkeypatch.setattr(similar, "_is_installed", lambda: False)
    with pytest.raises(ScenarioError, match=r"pip install 'pytest-tfgrpo\[similarity\]'"):
        load("similar", value="yes")
