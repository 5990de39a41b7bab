"""Values from outside are fit to keep, or refused with their place."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.core.wire.fitting import DEEPEST, LONGEST, UnfitError, fit, fit_text

texts = st.text(st.characters() | st.sampled_from("\x00\ud800\udfff"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3),
    max_leaves=8,
)


class Hiding:
    """Takes the word out that it is given."""

    def __init__(self, word: str) -> None:
        self.word = word

    def text(self, text: str) -> str:
        return text.replace(self.word, "[]")

    def value(self, key: str, text: str) -> str:
        return "[named]" if key == "password" else self.text(text)

    def names(self, key: str) -> bool:
        return key == "password"


@given(values)
def test_what_is_fit_can_be_encoded_and_stays_fit(value):
    once = fit(value)
    json.dumps(once, ensure_ascii=False, allow_nan=False).encode()
    assert "\x00" not in str(once)
    assert fit(once) == once


@given(st.integers(0, 3), st.sampled_from(["a", "é", "漢", "😀", "\x00", "\ud83d"]))
def test_a_text_is_cut_beyond_64_kb_of_utf_8_and_says_so(more, letter):
    plain = letter if letter not in ("\x00", "\ud83d") else "\ufffd"
    fitting = LONGEST // len(plain.encode())
    assert fit_text(letter * fitting) == plain * fitting
    text = fit_text(letter * (fitting + 1 + 1000 * more))
    assert len(text.encode()) <= LONGEST
    assert "characters left out ...)" in text
    assert text[0] == text[-1] == plain


@pytest.mark.parametrize("scrubber", [None, Hiding("nowhere")])
@pytest.mark.parametrize("letters", ["ab", "a漢", "漢a"])
def test_of_a_text_that_is_cut_two_thirds_are_its_start_and_the_note_counts_the_rest(letters, scrubber):
    first, last = letters
    text = fit_text(first * 100_000 + last * 100_000, scrubber)
    kept = text.partition(" ")[0].count(first), text.rpartition(" ")[2].count(last)
    assert kept[0] == pytest.approx(2 * kept[1], rel=0.01)
    assert f" (... {200_000 - sum(kept)} characters left out ...) " in text
    assert len(text.encode()) > 0.8 * LONGEST


def test_a_text_whose_ends_differ_in_width_is_cut_by_its_bytes():
    for text in ("a" * 60_000 + "漢" * 60_000, "漢" * 60_000 + "a" * 60_000):
        assert LONGEST // 2 < len(fit_text(text).encode()) <= LONGEST


def test_a_secret_at_a_cut_does_not_show_a_half():
    word = "secret" * 50
    for gap in range(0, 30_000, 997):
        text = "x" * gap + (word + "y" * 700) * 2000
        shown = fit_text(text, Hiding(word))
        assert "secret" not in shown
        assert len(shown.encode()) <= LONGEST


def test_secrets_are_taken_out_of_texts_keys_and_long_numbers():
    value = {"say": ["my card is 4111", {"card": 4111111111111111, "n": 4111}], "4111": 1, "password": ["x"]}
    assert fit(value, Hiding("4111")) == {
        "say": ["my card is []", {"card": "[]111111111111", "n": 4111}],
        "[]": 1,
        "password": ["[named]"],
    }


@pytest.mark.parametrize(
    ("value", "path", "finite"),
    [
        ({"a": [1, math.nan]}, ("a", 1), False),
        ({"a": -math.inf}, ("a",), False),
        ({"a": 10**400}, ("a",), False),
        ({"a": b"x"}, ("a",), True),
        ({"a": {1: 2}}, ("a",), True),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(value, path, finite):
    with pytest.raises(UnfitError) as caught:
        fit(value)
    assert (caught.value.path, caught.value.finite) == (path, finite)


def test_64_levels_are_kept_and_no_more():
    value: list = []
    for _ in range(DEEPEST - 1):
        value = [value]
    assert fit(value) == value
    with pytest.raises(UnfitError, match="more than 64 levels"):
        fit([value])
