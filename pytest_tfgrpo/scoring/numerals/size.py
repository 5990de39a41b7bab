"""How large a numeral is: groups of digits and decimals, in the ways of many countries."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import inf

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern
from pytest_tfgrpo.scoring.numerals.place import FOLDS, VULGAR, NumeralPlace
from pytest_tfgrpo.scoring.numerals.words import COMMA_CURRENCY, MONTH

_GROUPED = lazy_pattern(r"([1-9]\d{0,2})([,.'_ ])\d{3}(?:\2\d{3})*+(?:([.,d])(\d++))?")
_INDIAN = lazy_pattern(r"[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?")
_DATE = lazy_pattern(
    r"((?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|[12]\d|3[01]))\.\d{4}"
    r"|(\d{4}\.(?:0?[1-9]|1[0-2]))\.(?:0?[1-9]|[12]\d|3[01])|(\d\d\.\d\d)\.\d\d"
)
"""A day, or a time of two digits each."""
_POINTS = lazy_pattern(r"\d+(?:\.\d+){2,}")
_LAST_GROUP = lazy_pattern(r"\d{3}(?:[.,d]\d+)?")
_ONE = lazy_pattern(r"\d+(?:[.,d]\d+)?")
_POINT_GROUPED = lazy_pattern(r"\d{1,3}(?:\.\d{3})+")
_PIECE = lazy_pattern(r"\d+(?:\.\d+)?")
_COMMA_SHOWN = lazy_pattern(r"(?<![\d.,])\d{1,3}(?:(?:\.\d{3})++,\d|(?:\.\d{3}){2,}+(?![.,]?\d))")
_COMMA_LIKELY = lazy_pattern(r"(?<![\d.,])\d++,(?:\d\d?|\d{4,})(?![.,]?\d)")
_POINT_SHOWN = lazy_pattern(r"(?<![\d.,])\d{1,3}(?:(?:,\d{3})++\.\d|(?:,\d{3}){2,}+(?![.,]?\d))")
_LIST_OPENS = lazy_pattern(r"(?<!\\)\[\s?$|(?:^|[^A-Za-z\^_}])\{\s?$")


def last_of_blanks(body: str, place: NumeralPlace, *, money: bool) -> tuple[str, str]:
    """Return what stands before the last numeral among digits that blanks part, and that numeral.

    Groups of three digits after one or two are one numeral; raises UnsureNumeral where they may be several.
    """
    tokens = body.split(" ")
    count = 1
    if _LAST_GROUP.fullmatch(tokens[-1]):
        while count < len(tokens) and len(tokens[-count - 1]) == 3 and tokens[-count - 1].isdigit():
            count += 1
        first = tokens[-count - 1] if count < len(tokens) else ""
        count += first.isdigit() and len(first) < 3 and first[0] != "0"
    kept, others = tokens[-count:], len(tokens) - count
    first, decimals = kept[0], not kept[-1].isdigit()
    if (others and len(first) == 3 and first[0] == "0") or (count > 1 and first[0] == "0"):
        raise place.unsure("spaces separate its digits, but not in groups of three")
    if count > 1 and not any(group[0] == "0" for group in kept[1:]):
        several = others or (len(first) == 3 and not ("," in kept[-1] or "d" in kept[-1]))
        if (several and not money) or (decimals and others):
            raise place.unsure(f"it could be {''.join(kept)} or several numbers")
    return " ".join(tokens[: len(tokens) - count]), " ".join(kept)


def is_one(body: str) -> bool:
    """Return whether digits and what parts them are one numeral, and no list, date or address."""
    body = body.translate(FOLDS).replace("~", " ")
    return any(form.fullmatch(body) for form in (_ONE, _GROUPED, _INDIAN)) or body in VULGAR


def size(body: str, place: NumeralPlace, is_money: Callable[[], bool]) -> str:
    """Return the digits of a numeral with a point before its decimals; raises UnsureNumeral.

    `is_money` says whether a currency stands beside it.
    """
    if body.isdigit():
        return body
    body = body.replace("~", " ")
    whole, _, rest = body.partition(".")
    if whole.isdigit() and rest.isdigit():
        return _pointed(whole, rest, place)
    if (grouped := _GROUPED.fullmatch(body)) and (grouped[2] != "." or grouped[3] != "."):
        return _grouped(grouped, place, is_money)
    if _INDIAN.fullmatch(body):
        return body.replace(",", "")
    if " " in body:
        last = body.rpartition(" ")[2]
        if len(last) == 3 and last[0] == "0":
            raise place.unsure("spaces separate its digits, but not in groups of three")
        return size(last, place, is_money)
    if date := _DATE.fullmatch(body):
        return date[1] or date[2] or date[3]
    if _POINTS.fullmatch(body):
        raise place.unsure("it could be a version or an address")
    whole, _, rest = body.partition("d")
    if whole.isdigit() and rest.isdigit():
        return f"{whole}.{rest}"
    if "," in body:
        return _listed(body.split(","), place)
    raise place.unsure("its digits are separated in an unknown way")


def _pointed(whole: str, rest: str, place: NumeralPlace) -> str:
    """Read 1.234: a decimal point, unless the text or the currency is of where points part thousands."""
    if len(rest) == 3 and len(whole) < 4 and whole[0] != "0":
        thousands = f"it could be {whole}.{rest} or {whole}{rest}"
        shown, likely, other = _conventions(place)
        if shown and not other:
            return whole + rest
        if shown or likely or COMMA_CURRENCY.search(place.left[-6:] + " " + place.right[:10].strip()):
            raise place.unsure(thousands)
    return f"{whole}.{rest}"


def _conventions(place: NumeralPlace) -> tuple[bool, bool, bool]:
    """Return whether another numeral of the text has a decimal comma, may have one, has a decimal point."""
    start, end = place.found.span()
    shown, likely, other = (first < start or last >= end for first, last in _shown(place.text))
    return shown, likely, other


@lru_cache(maxsize=4)
def _shown(text: str) -> tuple[tuple[float, float], ...]:
    """Return where the first and the last numeral of each of three forms start in a text."""
    return tuple(
        (min(starts, default=inf), max(starts, default=-inf))
        for starts in (
            [found.start() for found in pattern.finditer(text)]
            for pattern in (_COMMA_SHOWN, _COMMA_LIKELY, _POINT_SHOWN)
        )
    )


def _grouped(grouped: re.Match[str], place: NumeralPlace, is_money: Callable[[], bool]) -> str:
    separator, mark, decimals = grouped[2], grouped[3], grouped[4] or ""
    if separator == mark:
        raise place.unsure("its digits are separated in an unknown way")
    body = grouped[0].removesuffix(decimals) if mark else grouped[0]
    parts = body.rstrip(".,d").split(separator)
    if separator == "," and not mark:
        if _encloses(place) == "[":
            raise place.unsure(f"it could be {''.join(parts)} or several numbers", formula=True)
        if len(parts) == 2:
            shown, likely, other = _conventions(place)
            if shown and not other:
                return ".".join(parts)
            if shown or likely:
                raise place.unsure(f"it could be {''.join(parts)} or {'.'.join(parts)}")
    octets = separator == "." and not mark and len(parts) == 4 and all(int(part) < 256 for part in parts)
    if octets and not is_money():
        raise place.unsure(f"it could be {''.join(parts)} or an address")
    return "".join(parts) + ("." + decimals if mark else "")


def _encloses(place: NumeralPlace) -> str:
    """Return the bracket that opens right before a numeral and closes right behind it."""
    left, right = place.left.rstrip(" "), place.right.lstrip(" ")
    if right[:1] in ("]", "}") and _LIST_OPENS.search(left):
        return "["
    return "(" if left[-1:] == "(" and right[:1] == ")" else ""


def _listed(pieces: list[str], place: NumeralPlace) -> str:
    """Read what commas part without a blank: a decimal comma, or a list whose last number counts."""
    if not all(map(_PIECE.fullmatch, pieces)):
        raise place.unsure("its digits are separated in an unknown way")
    whole, rest = pieces[0], pieces[-1]
    bracket = _encloses(place)
    if len(pieces) == 2 and whole.isdigit() and rest.isdigit():
        if bracket == "(":
            raise place.unsure(f"it could be {whole}.{rest} or two numbers", formula=True)
        is_date = len(rest) == 4 and MONTH.search(place.left)
        return rest if bracket or is_date else f"{whole}.{rest}"
    if bracket != "[" and not (
        all("." in piece and not _POINT_GROUPED.fullmatch(piece) for piece in pieces)
        or all(piece.isdigit() and len(piece) != 3 for piece in pieces[1:])
    ):
        raise place.unsure("commas separate its digits, but not in usual groups")
    return rest
