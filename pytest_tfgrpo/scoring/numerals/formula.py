"""Numerals in mathematics, rewritten as LaTeX and programs write them; formulas stay as they are."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern
from pytest_tfgrpo.scoring.numerals.place import (
    NUMERAL,
    VULGAR,
    NumeralPlace,
    UnsureNumeral,
    unhidden,
)
from pytest_tfgrpo.scoring.numerals.reader import Numeral, word_of_scale

_PLAIN = lazy_pattern(r"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_LATEX_COMMA = lazy_pattern(r"(?<=[0-9])\{,\}(?=[0-9])")
_LATEX_BLANK = (
    r"(?:\\!,\\!|\\mathord\{,\}|\\[,;:! ]|\{\\[,;]\}|~"
    r"|\\(?:thin|med|thick)space(?![A-Za-z]) ?|\\hspace\*?\{[^{}]{1,12}\})"
)
_LATEX_GROUPED = lazy_pattern(
    rf"(?<![A-Za-z0-9.,^_])[1-9][0-9]{{0,2}}(?:{_LATEX_BLANK}[0-9]{{3}})++(?![0-9]|{_LATEX_BLANK}[0-9])"
)
_LATEX_GROUP = lazy_pattern(_LATEX_BLANK)
_LATEX_DOLLAR = lazy_pattern(r"([-−–])\\\$(?=[0-9])")
_LISTED = lazy_pattern(r"[,;<>±∪]|\\(?:cup|pm|in|le|ge|lt|gt|mp)(?![A-Za-z])|\b(?:or|and)\b")
_DECIMAL_COMMA = lazy_pattern(r"[0-9]+,[0-9]+")
_OPEN = lazy_pattern(r"(?:\\\{|[(\[])[^()\[\]{}\n]*$")
_MARKED = lazy_pattern(r"\\boxed|\\\(|\\\[|\$[^$\n]+\$|\$\$")
_BRACES = lazy_pattern(r"(?<!\\)[{}]")
_DIGITS = lazy_pattern(r"[0-9]++(?:[.,][0-9]++)*+")
_BASE = lazy_pattern(r"(?<![A-Za-z0-9_^{])[0-9]++\)?_\{?[0-9]|(?<=[{(])[0-9]++[)}]?_\{?[0-9]|[0-9][₀-₉]")
_LEADS = lazy_pattern(r"(?<![A-Za-z])(?:answer|result|solution)(?![A-Za-z])|答案|答え|정답", re.IGNORECASE)
_SENTENCE_ENDS = lazy_pattern(r"[.。](?:\s|$)|\n")
_POWER_MAX = 30
"""Larger powers of ten stay powers."""


def without_latex_groups(text: str) -> str:
    """Return `text` with thousands that LaTeX's blanks part, as in ``1\\,000``, in one piece."""
    if "\\" not in text and "~" not in text:
        return text
    return _LATEX_GROUPED.sub(lambda found: _LATEX_GROUP.sub("", found[0]), text)


def with_plain_numerals(text: str, value: str) -> str:
    """Return `text` with numerals such as ``-€1.234,50`` written ``-1234.50``.

    A comma between digits stays where the expected `value` is no single number, since it may part items.
    Raises UnsureNumeral when the numeral that the answer ends in cannot be read for certain.
    """
    text = without_latex_groups(unhidden(text))
    is_list = _LISTED.search(value) is not None
    text = text if is_list else _LATEX_COMMA.sub(",", text)
    text = text if _MARKED.search(text) else _LATEX_DOLLAR.sub(r"\1$", text)
    _check_marked(text, value)
    parts, end = list[str](), 0
    scope = _scope(text)
    unsure: UnsureNumeral | None = None
    for found in NUMERAL.finditer(text):
        unsure = None
        try:
            start, plain = _plain(text, found, is_list=is_list) or (0, "")
        except UnsureNumeral as error:
            unsure = None if error.formula or not scope[0] <= found.start() < scope[1] else error
            continue
        if plain and start >= end:
            parts += (text[end:start], plain)
            end = found.end()
    if unsure is not None:
        raise unsure
    return "".join((*parts, text[end:]))


def _check_marked(text: str, value: str) -> None:
    """Raise UnsureNumeral where the last box has a word of scale or another base."""
    start = text.rfind("\\boxed")
    if start < 0:
        return
    boxed = text[start : start + 200].partition("\n")[0]
    depth, end = 0, len(boxed)
    for found in _BRACES.finditer(boxed):
        depth += 1 if found[0] == "{" else -1
        if depth <= 0:
            end = found.end()
            break
    boxed = boxed[:end]
    if "_" not in value and (base := _BASE.search(boxed)):
        raise UnsureNumeral(base[0], "it is not written with base ten")
    for number in _DIGITS.finditer(boxed):
        word = word_of_scale(boxed[number.end() :])
        if word and word not in value:
            raise UnsureNumeral(number[0], f"{word[:20]!r} follows it, and words are not read as numbers")


def _plain(text: str, found: re.Match[str], *, is_list: bool) -> tuple[int, str] | None:
    """Return where a numeral with its sign and currency starts, and how it is written; None to let it be."""
    written, start = found[0], found.start()
    is_plain = _PLAIN.fullmatch(written) is not None
    if any(one in VULGAR for one in written) or (is_list and _DECIMAL_COMMA.fullmatch(found["body"])):
        return None
    if _DECIMAL_COMMA.fullmatch(found["body"]) and _OPEN.search(text, max(0, start - 200), start):
        return None
    number = Numeral(NumeralPlace(text, found)).in_formula()
    if number is None:
        return None
    plain, minus, before = number
    if "e" in plain and not is_plain:
        plain = _without_power(plain)
    if minus and not ("$" in text[start - before : start] and _MARKED.search(text)):
        return start - before, "-" + plain
    return None if is_plain else (start, plain)


def _without_power(plain: str) -> str:
    """Return a number without its power of ten, unless that is large."""
    try:
        size = Decimal(plain)
    except InvalidOperation:  # the power has more than 18 digits
        return plain
    return f"{size:f}" if abs(size.adjusted()) < _POWER_MAX else plain


def _scope(text: str) -> tuple[int, int]:
    """Return where the answer of a text without LaTeX stands: behind the last "answer", or the last line."""
    if _MARKED.search(text):
        return 0, 0
    leads = [found.end() for found in _LEADS.finditer(text)]
    if leads:
        end = _SENTENCE_ENDS.search(text, leads[-1] + 2)
        return leads[-1], end.start() if end else len(text)
    stripped = text.rstrip()
    return stripped.rfind("\n") + 1, len(stripped)
