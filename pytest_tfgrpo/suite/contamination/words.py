"""Words of a task as the comparison sees them: letters and data stay, case and typography do not count."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern

_HIDDEN = lazy_pattern(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]"
)
"""Soft hyphens, joiners, marks of direction, variation selectors: nobody sees them."""
_RULE = lazy_pattern(r"([!-/:-@\[-`{-~])\1{2,}")
"""Three and more of one sign draw a line, a heading or a fence."""
_THOUSANDS = lazy_pattern(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
"""Scripts that part no words by spaces: Thai to Myanmar, Khmer, kana, Han. Each character is a word."""
_WORD = lazy_pattern(
    r"[0-9]+(?:[.,:/-][0-9]+)*"  # numbers, dates, times
    rf"|[{SPACELESS}]"
    rf"|[^\W_{SPACELESS}]+"
    r"|[-*/%](?=\s?(?:[0-9(]|[^\W\d_]\b))|!(?==)|\$(?=[0-9])|[+<>=|~^]"  # signs of arithmetic and code
    r"|[^\w\s\x00-\x7f]"
)


def words(text: str) -> list[str]:
    """Return the words, numbers and signs of `text`; equal lists differ in case and typography alone.

    Signs that compute something are words; other punctuation and blanks are not, emoji are.
    """
    if not text.isascii():
        text = _HIDDEN.sub("", unicodedata.normalize("NFKC", text))
    found = _WORD.findall(_THOUSANDS.sub("", _RULE.sub(" ", text.casefold())))
    return found if text.isascii() else [word for word in found if len(word) > 1 or not _is_typography(word)]


def data_of(found: Iterable[str]) -> Counter[str]:
    """Return the numbers and the signs among words, with how often each is there."""
    return Counter(word for word in found if not word[0].isalpha())


@cache
def _is_typography(character: str) -> bool:
    return unicodedata.category(character)[0] not in "LNMS" and not character.isascii()
