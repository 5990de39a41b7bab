"""Numbers in words: ``forty-eight thousand two hundred and thirteen``, ``four eight two one three``."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DIGITS = {
    word: n
    for row in (
        "zero one two three four five six seven eight nine",
        "null eins zwei drei vier funf sechs sieben acht neun",
        "zero un deux trois quatre cinq six sept huit neuf",
        "cero uno dos tres cuatro cinco seis siete ocho nueve",
    )
    for n, word in enumerate(row.split())
} | {"oh": 0, "ein": 1}
_SMALL_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_SMALL = {word: n for n, word in enumerate(_SMALL_WORDS.split(), 1)}
_TENS_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * n for n, word in enumerate(_TENS_WORDS.split(), 2)}
_LARGE = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_WORD = re.compile(r"[^\W\d_]+|[0-9]+")
_LEAST = 4
"""Digits one by one from which they are a number; so short ones are said by chance."""


def spoken(folded: str) -> Iterator[str]:
    """Yield the numbers that words of a folded text say, in English, or digit by digit in four languages."""
    words = _WORD.findall(folded)
    yield from _by_digits(words)
    yield from _english(words)


def _by_digits(words: list[str]) -> Iterator[str]:
    run = ""
    for word in (*words, ""):
        if word in _DIGITS:
            run += str(_DIGITS[word])
            continue
        if len(run) >= _LEAST:
            yield run.lstrip("0") or "0"
        run = ""


def _english(words: list[str]) -> Iterator[str]:
    total = group = 0
    said = False
    for word in (*words, ""):
        value = _SMALL.get(word) or _TENS.get(word)
        if value is not None:
            # nineteen forty-seven: two parts of a year, which are no sum
            if said and group % 100 and not (group % 10 == 0 and value < 10):
                yield str(total + group)
                group = 100 * group + value if total == 0 and group < 100 else value
                total = 0
            else:
                group += value
            said = True
        elif word == "hundred" and group < 100:
            group, said = max(group, 1) * 100, True
        elif word in _LARGE:
            total, group, said = total + max(group, 1) * _LARGE[word], 0, True
        elif not (word == "and" and said):
            if said:
                yield str(total + group)
            total = group = 0
            said = False
