"""The sign of a numeral: before it, before or behind its currency, as a word, or as accountants write it."""

from __future__ import annotations

import re

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern
from pytest_tfgrpo.scoring.numerals.place import NumeralPlace
from pytest_tfgrpo.scoring.numerals.words import (
    BEFORE_A_SIGN,
    COPULA,
    CURRENCY,
    MAYBE_CURRENCY,
    SIGN_WORD_ENDS,
    SIGN_WORDS,
    SYMBOLS,
)

SIGNS = ("-", "+", "−", "–", "—")
_CURRENCY_BEFORE = lazy_pattern(rf"(?:{CURRENCY})[ ~]{{0,2}}$")
_CURRENCY_AFTER = lazy_pattern(rf"[ ~]?(?:{CURRENCY})")
_RANGE = lazy_pattern(rf"\d[ ~]?[%°'\"€£{SYMBOLS}\w)]{{0,3}}$")
_APART = lazy_pattern(r"[-−–][ ~]{1,2}$")
_TRAILING = lazy_pattern(r"[-−](?=\s|$|[.;,)~])")
_OPENING_ENDS = frozenset("*_`$({[>\"'“”„«‘)}▲△▼▽🔻~ ")
_MARKS = frozenset("-−–—▲△▼▽🔻")
_BEFORE_OPENING = lazy_pattern(
    r"(?:^|[^\w)\]}%°*\"'”\-−–—]|(?:^|[\s(])\*{1,3})(?:[({]|\\[a-z]{1,10}\{)?[-−–—]"
    r"(?:[*_`$({\[\"'“”„«‘]|<[a-zA-Z]{1,9}>|\\[a-zA-Z]{1,12}[ ~]?\{|\\[a-zA-Z]{1,12}[ ~])++[ ~]{0,2}$"
    r"|(?:[(\[]|\{)[-−–—][)\]}][ ~]{0,2}$"
    r"|[▲△▼▽🔻][ ~]{0,2}$"
    r"|\$[-−–—][ ~]{1,2}$"
)
"""A sign that marks of bold and the like, quotes or brackets part from its digits; or a triangle."""
_TELLS = ("=", "≈", "≃", "≅", "→", "(", "[", "{", ">", "<", "≤", "≥")
"""What cannot stand before the sign of a subtraction."""


def without_currency(left: str) -> tuple[str, bool]:
    """Return `left` without a currency at its end, and whether there is one."""
    if not MAYBE_CURRENCY.search(left[-8:]):
        return left, False
    found = _CURRENCY_BEFORE.search(left, max(0, len(left) - 12))
    return (left[: found.start()], True) if found else (left, False)


def currency_after(right: str) -> int:
    """Return how many characters of `right` are the currency of the numeral before it."""
    found = _CURRENCY_AFTER.match(right)
    return found.end() if found else 0


def sign(place: NumeralPlace, body: str) -> tuple[bool, bool, str]:
    """Return whether a numeral is negative, whether it is money, and what stands before sign and currency.

    Raises UnsureNumeral.
    """
    head, mark = (place.left[:-1], place.left[-1]) if place.left.endswith(SIGNS) else (place.left, "")
    bare, money = without_currency(head)
    if money and not mark and bare.endswith(SIGNS):
        bare, mark = bare[:-1], bare[-1]
    after = currency_after(place.right) if place.right else 0
    if not bare and not mark and not after and not place.right.startswith(("-", "−")):
        return False, money, bare
    if not mark and _TRAILING.match(place.right[after:]):
        raise place.unsure("its sign seems to follow it")
    if mark:
        return _is_minus(mark, bare, place), money or after > 0, bare
    if (
        bare[-1:] in _OPENING_ENDS
        and not _MARKS.isdisjoint(bare[-40:])
        and _BEFORE_OPENING.search(bare, max(0, len(bare) - 40))
    ):
        raise place.unsure("the mark before it may be its sign", formula=True)
    if bare.endswith((" ", "~")) and (apart := _APART.search(bare, max(0, len(bare) - 3))):
        return _is_minus_apart(bare[: apart.start()], apart[0][0], place), money or after > 0, bare
    last = bare.rstrip(" ~-")[-1:].lower()
    if last in SIGN_WORD_ENDS and (word := SIGN_WORDS.search(bare, max(0, len(bare) - 10))):
        before = bare[: word.start()]
        letter = before.rstrip(" ~")[-1:]
        caseless = letter.isalpha() and letter.lower() == letter.upper()
        if not caseless and BEFORE_A_SIGN.search(before) is None:
            raise place.unsure(
                f"{word[0].strip()!r} before it may be its sign or a subtraction", formula=True
            )
        return True, money or after > 0, before
    if bare.rstrip(" ~").endswith("("):
        return _in_brackets(place, bare, body, money, after), money or after > 0, bare
    return False, money or after > 0, bare


def _is_minus(mark: str, bare: str, place: NumeralPlace) -> bool:
    """Return whether a mark is a sign, and not the dash of a range or between words."""
    before = bare[-1:]
    if mark == "+":
        return False
    if not before or before.isspace() or before == "~":
        last = bare.rstrip(" ~")[-1:]
        if mark == "—" or (mark == "–" and last.isdigit()):
            raise place.unsure("the dash before it may be its sign", formula=True)
        return True
    if before == "_" or before.isdigit() or (before.isalpha() and before.lower() != before.upper()):
        return False
    if mark == "—" or (mark == "–" and before in ")]}"):
        return False
    return not _RANGE.search(bare)


def _is_minus_apart(bare: str, mark: str, place: NumeralPlace) -> bool:
    """Return whether a mark with a blank behind it is a sign, and not a dash, a bullet or a subtraction."""
    before = bare.rstrip(" ~")
    starts = not before or before.endswith(("\n", "\r", "|", "\t"))
    if before.endswith(_TELLS) or (mark == "−" and (starts or before.endswith(":"))):
        return True
    alone = starts and "\n" not in place.text.strip()
    if alone or before.endswith(":") or COPULA.search(before):
        raise place.unsure("the dash before it may be its sign", formula=True)
    return False


def _in_brackets(place: NumeralPlace, bare: str, body: str, money: bool, after: int) -> bool:
    """Return whether brackets around a numeral make it negative, as accountants write."""
    if not place.right[after:].lstrip(" ~").startswith(")"):
        return False
    outside = bare.rstrip(" ~")[:-1]
    before, named = without_currency(outside)
    closing = place.right[after:].lstrip(" ~")[1:2]
    if named and not (outside.rstrip().endswith("$") and closing == "$"):
        return True
    money = money or after > 0
    if not money and not re.search(r"[,.'~ d]\d{3}(?!\d)|[.,d]\d\d$", body):
        return False
    stands_alone = not before.strip(" ~*") or before.rstrip(" ~*").endswith((":", "=", "|", "\n", "\t"))
    if money and stands_alone:
        return True
    raise place.unsure("the brackets around it may mean a minus", formula=not money)
