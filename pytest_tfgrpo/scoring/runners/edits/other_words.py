"""Other words and numbers in the place of those of a test: what a person could have written there.

Who sees but one form of a test and guesses by its looks must not see which word was exchanged, so another one
is drawn from the same test, else the same file, else from what tests use everywhere.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache

TOKEN = re.compile(r"[A-Za-z]+|[0-9]+")
STRING = re.compile(rb"'[^'\\\n]+'|\"[^\"\\\n]+\"")
COMMON = tuple(
    TOKEN.findall(
        """
        a b c d e k n s t v x y z id ok no on us en fr abc bar baz bob cat dog end foo key new old one red
        tag two blue city data file home item john left list name node path root size spam test text time
        type user admin alice apple color empty error field first green group hello index large money other
        right small start table title token value white world banana double family letter middle number
        object orange public second simple single string target another content default example message
        private service version document language original position property separate sequence something
        """
    )
)
"""Words of tests of any project."""
BOUNDS = ((1, 12), (13, 28), (29, 59), (60, 99))
"""Numbers of which each may stand for one of the same range: hours and months, days, minutes, others."""
LONGER = 2
"""By how many letters another word may be longer or shorter."""
KNOWN, FOREIGN = 1, 4
"""How odd a word is that stands nowhere else in a test, in a file."""

_random = secrets.SystemRandom()


class Words:
    """The words of a file of tests, and of one test in it."""

    def __init__(self, data: bytes, near: str) -> None:
        """`data` is the file, `near` the text of the test."""
        self._in_file = tokens_of(data)
        self._near = Counter(TOKEN.findall(near))
        self._near_strings = tokens_of(near.encode())

    def other(self, token: str) -> str | None:
        """Return another word or number in the place of one; None where none of its kind is known."""
        if token.isdigit():
            return self.other_number(token)
        like = _like(token)
        kinds = (self._near_strings, self._in_file, _cased(token))
        return _first_drawn(filter(like, words) for words in kinds)

    def odd(self, old: str, new: str) -> int:
        """Return how plainly a text is not a person's that stands in the place of another; 0: not at all.

        A word counts that stands nowhere else, a loss where what a test expects stands in it once more, and
        whatever else is written otherwise.
        """
        before, behind = Counter(TOKEN.findall(old)), Counter(TOKEN.findall(new))
        strange = sum(self._strange(token) for token in behind - before)
        lost = sum(len(token) > 1 and self._near[token] > before[token] for token in before - behind)
        return strange + 2 * lost + FOREIGN * (TOKEN.sub("", old) != TOKEN.sub("", new))

    def _strange(self, token: str) -> int:
        if self._near[token]:
            return 0
        if token.isdigit() or token in self._in_file:
            return KNOWN
        return 2 * KNOWN if token.lower() in COMMON else FOREIGN

    def other_number(self, token: str) -> str:
        """Return another number of as many digits."""
        if len(token) > 2:
            others = with_other_digit(token)
        else:
            number = int(token)
            low, high = next((low, high) for low, high in BOUNDS if number <= high)
            near = range(max(low, number - 3), min(9, number + 3) + 1) if len(token) == 1 else ()
            others = {str(n).zfill(len(token)) for n in near or range(low, high + 1)} - {token}
            others = {one for one in others if one.startswith("0") is token.startswith("0") or number == 0}
        there = [one for one in others if self._near[one] and len(one) > 1]
        return _random.choice(there if there and _random.random() < 0.5 else sorted(others))


@lru_cache(maxsize=64)
def tokens_of(data: bytes) -> tuple[str, ...]:
    """Return the words and numbers in the texts that a file has, each once."""
    texts = (text.decode("utf-8", "replace") for text in STRING.findall(data))
    return tuple(dict.fromkeys(token for text in texts for token in TOKEN.findall(text)))


def _like(token: str) -> Callable[[str], bool]:
    """Return what says whether a word may stand for one: of another meaning, of its case and length."""
    kind = _case(token)

    def like(one: str) -> bool:
        fits = len(one) == 1 if len(token) == 1 else len(one) > 1 and abs(len(one) - len(token)) <= LONGER
        return fits and one.lower() != token.lower() and not one.isdigit() and _case(one) == kind

    return like


def _case(word: str) -> int:
    return 0 if word.islower() else 1 if word.isupper() else 2 if word.istitle() else 3


def _cased(token: str) -> Iterable[str]:
    """Return common words in the case of a word."""
    return map((str.lower, str.upper, str.title, str.lower)[_case(token)], COMMON)


def _first_drawn(kinds: Iterable[Iterable[str]]) -> str | None:
    """Return one of the first that are any."""
    return next((_random.choice(found) for kind in kinds if (found := [*kind])), None)


def with_other_digit(token: str) -> set[str]:
    """Return a number with another of its first digits, but not the first; no digit is above its largest.

    So one of another base stays one, and one that a comparison rounds differs all the same.
    """
    top = max(1, *map(int, token))
    digits = "0123456789"[: top + 1]
    places = range(1, min(len(token), 4))
    return {token[:at] + one + token[at + 1 :] for at in places for one in digits} - {token}
