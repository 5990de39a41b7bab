"""Spellings: texts folded so that look-alikes are equal, and the values of the numbers in them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern

MAX_GROUPS = 20
"""Groups of digits that are read as one number."""
MAX_EXPONENT = 60
"""Powers of ten beyond which nobody spells a number."""
REVERSED = 5
"""Characters from which an answer is also looked for backwards."""

_LOOKALIKES = dict(
    [
        *zip("АВЕКМНОРСТУХІЈЅԌԚԜҺ", "abekmhopctyxijsgqwh", strict=True),
        *zip("авекмнорстухіјѕһԁԛԝьгип", "abekmhopctyxijshdqwbrun", strict=True),
        *zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹ", "abezhikmnoptyxc", strict=True),
        *zip("αβγεζηικμνορσςτυχωϲ", "abyeznikuvopoctuxwc", strict=True),
        *zip("ԼՍՏՕգզհյոսցօք", "lusoqqhjnugop", strict=True),
        *zip("ᎠᎡᎢᎪᎫᎬᎳᎷᎻᏀᏃᏒᏔᏙᏚᏞᏟᏢᏦᏴ", "drtajewmhgzrwvslcpkb", strict=True),
        *zip("ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ", "bpdtgkjczfmnlsrvhwxyaeiou", strict=True),
        *zip("ɡɑɩʋ", "gaiv", strict=True),
        *zip("ıȷ٫٬×−", "ij.,x-", strict=True),
    ]
)
"""Letters that look like Latin ones, in small letters, and signs of numbers."""
_LATIN = lazy_pattern(
    r"LATIN (?:SMALL LETTER|CAPITAL LETTER|LETTER SMALL CAPITAL) ([A-Z])(?: WITH .*)?"
    r"|(?:NEGATIVE )?(?:CIRCLED|SQUARED) LATIN CAPITAL LETTER ([A-Z])"
    r"|REGIONAL INDICATOR SYMBOL LETTER ([A-Z])"
)
_NUMERAL = lazy_pattern(
    r"(?<![\w.,])(?P<hex>0x[0-9a-f]{1,32}|0b[01]{1,128}|0o[0-7]{1,48}|(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{3,16})(?!\w)"
    r"|(?<![0-9])(?P<run>[0-9]+(?:(?:[.,'’_·]|[ .,'’_-]{1,2})[0-9]+)*)"
    r"(?:e(?P<exp>[+-]?[0-9]{1,3})(?![0-9a-z])|\s?[x*]\s?10(?:\^|\*\*)?(?P<ten>[+-]?[0-9]{1,2})(?![0-9]))?"
    r"(?P<unit>\s?%|k(?!\w))?"
)
_TIGHT = lazy_pattern(r"[.,'’_·]")
_ALONE = lazy_pattern(
    r"[-+~\s$€£¥]*(?P<run>[0-9]+(?:[ .,'’_][0-9]+)*)"
    r"(?:e(?P<exp>[+-]?[0-9]{1,3}))?\s*[%$€£¥]?\s*[^\W0-9_]{0,6}[.!]?"
)
_GROUPS = lazy_pattern(r"[0-9]+|[^0-9]+")


def bare(text: str) -> str:
    """Return `text` in compatible characters without the marks that combine with them, visible or not."""
    if text.isascii():
        return text
    letters = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFKC", "".join(c for c in letters if unicodedata.category(c) != "Mn"))


def fold(text: str) -> str:
    """Return `text` in small letters, with Latin letters for those that look alike and ASCII digits."""
    if text.isascii():
        return text.lower()
    return "".join(map(_plain, bare(text))).casefold()


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    if character.isascii():
        return character
    if character in _LOOKALIKES:
        return _LOOKALIKES[character]
    if (digit := unicodedata.decimal(character, None)) is not None:
        return str(digit)
    if unicodedata.category(character) == "Cf":
        return ""
    name = _LATIN.fullmatch(unicodedata.name(character, ""))
    return next(filter(None, name.groups())).lower() if name else character


def values(folded: str) -> Iterator[str]:
    """Yield the numbers in a folded text, each in all readings of its separators, as plain decimals.

    Signs do not count. Bases 2, 8 and 16, powers of ten, percents and numbers written backwards are read too.
    """
    for match in _NUMERAL.finditer(folded):
        if match["hex"]:
            yield str(int(match["hex"], 0 if match["hex"][:2] in ("0x", "0b", "0o") else 16))
            continue
        power = int(match["exp"] or match["ten"] or 0)
        parts = _GROUPS.findall(match["run"])
        for text in _readings(parts, bool(match["exp"] or match["ten"] or match["unit"])):
            number = decimal(text, power + 3 * (match["unit"] == "k"))
            share = decimal(text, power - 2) if (match["unit"] or "").endswith("%") else None
            yield from filter(None, (number, share))


def number_of(folded: str) -> tuple[str, ...]:
    """Return the readings of a folded text that is one number, perhaps with a unit, the likely one first."""
    match = _ALONE.fullmatch(folded.strip())
    if match is None:
        return ()
    parts, power = _GROUPS.findall(match["run"]), int(match["exp"] or 0)
    digits = "".join(parts[::2])
    whole = [text for text in _readings(parts, True) if text.replace(".", "") == digits]
    return tuple(dict.fromkeys(filter(None, (decimal(text, power) for text in whole))))


def decimal(text: str, power: int = 0) -> str | None:
    """Return a number times a power of ten as a plain decimal; None where that is no usual number."""
    if abs(power) > MAX_EXPONENT or len(text) > 10 * MAX_EXPONENT:
        return None
    try:
        plain = f"{Decimal(text).scaleb(power).copy_abs():f}"
    except InvalidOperation:
        return None
    return (plain.rstrip("0").rstrip(".") if "." in plain else plain) or "0"


def _readings(parts: list[str], to_the_end: bool) -> Iterator[str]:
    """Yield what digits and separators in turn can mean; what stands tightly together is not torn apart."""
    groups, signs = parts[::2], parts[1::2]
    for start in range(len(groups)):
        if start and _TIGHT.fullmatch(signs[start - 1]):
            continue
        for end in range(start + 1, min(len(groups), start + MAX_GROUPS) + 1):
            if end < len(groups) and (to_the_end or _TIGHT.fullmatch(signs[end - 1])):
                continue
            digits = "".join(groups[start:end])
            if _can_be_joined(groups[start:end], signs[start : end - 1]):
                yield digits
                if len(digits) >= REVERSED:
                    yield digits[::-1]
            if (
                end - start > 1
                and signs[end - 2] in (".", ",")
                and _are_thousands(groups[start + 1 : end - 1])
            ):
                yield f"{''.join(groups[start : end - 1])}.{groups[end - 1]}"


def _are_thousands(groups: list[str]) -> bool:
    return all(len(group) == 3 for group in groups)


def _can_be_joined(groups: list[str], signs: list[str]) -> bool:
    """Return whether separators can be those of thousands, or of digits one by one."""
    parted = [group for group, sign in zip(groups[1:], signs, strict=True) if sign in (".", ",")]
    return _are_thousands(parted) or all(len(group) == 1 for group in groups)
