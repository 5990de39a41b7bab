"""A numeral in a text and what stands beside it, in few kinds of characters."""

from __future__ import annotations

import re
import unicodedata
from html import unescape

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.scoring.numerals.words import ATTACHED_CURRENCY

WINDOW = 64
"""Characters on each side of a numeral that may say what it is."""

VULGAR = "".join(map(chr, (0xBC, 0xBD, 0xBE, *range(0x2150, 0x215F), 0x2189)))
"""One character for a fraction."""
BLANK = "[ \u00a0\u2002-\u200a\u202f]"
SIGN = "[-+\u2212\u2013\u2010\u2011\uff0b\uff0d]"
_SEPARATOR = "(?:[.,'\u2019\u02bc_\u066b\u066c\u060c\u00a0\u2002-\u200a\u202f ]|(?<=[０-９])[，．＇])"
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺"
_RAISED_TO = rf"(?:[({{]{BLANK}?{SIGN}?{BLANK}?\d++{BLANK}?[)}}]|{SIGN}?\d++)"
_STARS = rf"(?:\*\*|{BLANK}\*\*{BLANK}){_RAISED_TO}"
_POWER = rf"(?:{BLANK}?\^{BLANK}?{_RAISED_TO}|[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]++)"
NUMERAL = lazy_pattern(
    rf"(?P<body>[\d{VULGAR}]\d*+(?:{_SEPARATOR}\d++)*+)"
    rf"(?:{BLANK}?(?P<vulgar>[{VULGAR}])|[eE](?P<e>{SIGN}?\d++)|[dD](?P<d>{SIGN}\d\d++)"
    rf"|{BLANK}{{0,2}}[xX×✕✖*∗∙·⋅]{BLANK}{{0,2}}(?P<ten>\d\d)(?P<raised>{_POWER}|{_STARS})"
    rf"|(?P<power>{_POWER}|{_STARS}(?!\*\*)))?"
)
"""Digits and all that may join them to one numeral; what it says is read afterwards."""

_ESCAPES = lazy_pattern("\x1b\\[[0-?]*[ -/]*[@-~]")
_INVISIBLE = lazy_pattern("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
_ENTITY = lazy_pattern(r"&(?:#\d{2,5}|nbsp|thinsp|ensp|emsp|minus|times|middot|ndash|mdash|euro|pound|yen);")
_LATEX = lazy_pattern(
    r"\\(?:\\|[,;: !%$()\[\]{}]|[dtc](?=frac)"
    r"|(?:times|cdot|pm|pi|div|left|right|displaystyle|quad)(?![A-Za-z])"
    r"|(?:ast|bullet|pounds|euro|yen|(?:thin|med|thick)space)(?![A-Za-z]) ?"
    r"|hspace\*?\{[^{}]{1,12}\}|mathord\{[.,]\}|u00d7)"
)
_BRACED_TEN = lazy_pattern(r"(?<=[ ×·*])\{10\}(?=\^)")
_LATEX_PLAIN = {
    "\\": "\n", ",": "\u2009", ";": "\u2009", ":": "\u2009", " ": "\u2009", "!": "", "(": " ", ")": " ",
    "[": " ", "]": " ", "d": "\\", "t": "\\", "c": "\\", "times": "×", "cdot": "·", "pm": "±", "pi": "π",
    "div": "÷", "left": "", "right": "", "displaystyle": "", "quad": " ",
    "ast": "*", "bullet": "·", "pounds": "£", "euro": "€", "yen": "¥", "thinspace": "\u2009",
    "medspace": "\u2009", "thickspace": "\u2009", "mathord{,}": ",", "mathord{.}": ".",
    "u00d7": "×",
}  # fmt: skip


class UnsureNumeral(ValueError):
    """A numeral that cannot be read for certain; the message says why, for a reader."""

    def __init__(self, written: str, why: str, *, formula: bool = False) -> None:
        """`formula` is true where mathematics may be read although a lone number cannot."""
        super().__init__(f"{short(written.strip())} cannot be read for certain: {why}")
        self.formula = formula


class _Folds(dict[int, str]):
    """One character for another: any digit as ASCII, few kinds of blanks and signs."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if 0xFF01 <= code <= 0xFF5E:
            folded = chr(code - 0xFEE0)
        elif character.isdecimal():
            folded = str(unicodedata.decimal(character))
        else:
            folded = character
        if code < 0x10000:
            self[code] = folded
        return folded


FOLDS = _Folds({
    **dict.fromkeys(map(ord, "\u2010\u2011\ufe63\u2796"), "-"), 0x2212: "−", 0x2012: "–", 0x2015: "—",
    **dict.fromkeys(map(ord, "✕✖"), "×"), **dict.fromkeys(map(ord, "⋅∙"), "·"), 0x2217: "*", 0x2215: "/",
    **dict.fromkeys(map(ord, "\u2019\u02bc\u066c"), "'"), 0x066B: "d", 0xFFE1: "£", 0xFFE5: "¥", 0xFFE6: "₩",
    **dict.fromkeys([0xA0, *range(0x2002, 0x200B), 0x202F], "~"),
})  # fmt: skip
"""Blanks that bind digits become a tilde, the Arabic decimal sign a `d`."""
_EXPONENT = str.maketrans(dict(zip(_RAISED, "0123456789-+", strict=True)) | dict.fromkeys("−–", "-"))


def unhidden(text: str) -> str:
    """Return `text` without what readers do not see of it: colours, marks of direction, names of signs."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "&" in text:
        text = _ENTITY.sub(lambda found: unescape(found[0]), text)
    if "<sup" in text:
        text = text.replace("<sup>", "^{").replace("</sup>", "}")
    return text if text.isascii() else _INVISIBLE.sub("", text)


def _without_latex(found: re.Match[str]) -> str:
    written = found[0][1:]
    if written.startswith("hspace"):
        return "\u2009"
    return _LATEX_PLAIN.get(written) or _LATEX_PLAIN.get(written.rstrip(" "), written)


def prepared(text: str) -> str:
    """Return `text` unhidden and without LaTeX's blanks and spellings."""
    if "\\" in text:
        text = _LATEX.sub(_without_latex, text.replace("{\\,}", "\\,") if "{\\,}" in text else text)
    if "{10}^" in text:
        text = _BRACED_TEN.sub("10", text)
    if "{,}" in text:
        text = text.replace("{,}", ",")
    return unhidden(text)


def exponent(text: str) -> str:
    """Return the whole number that a power raises to, without brackets."""
    return re.sub(r"[^-+0-9]", "", text.translate(FOLDS).translate(_EXPONENT))


def _folded(text: str) -> str:
    return text if text.isascii() else text.translate(FOLDS)


class NumeralPlace:
    """A numeral where it stands; `left` and `right` are folded and at most WINDOW characters long."""

    def __init__(self, text: str, found: re.Match[str]) -> None:
        start, end = found.span()
        self.text = text
        self.found = found
        self.left = _folded(text[max(0, start - WINDOW) : start])
        self.right = _folded(text[end : end + WINDOW])

    def unsure(self, why: str, *, formula: bool = False) -> UnsureNumeral:
        """Return the error that the numeral cannot be read for certain."""
        left = self.left if formula else re.split(r"\s", self.left)[-1]
        written = left[-12:] + self.found[0] + re.split(r"\s", self.right)[0][:8]
        return UnsureNumeral(written.rpartition("\n")[2].replace("~", " ")[-60:], why, formula=formula)

    def body(self) -> str:
        """Return the digits and what parts them, folded; raises UnsureNumeral where two scripts are mixed."""
        body = self.found["body"]
        if body.isascii():
            return body
        digits = [character for character in body if character.isdecimal()]
        if len({ord(digit) - unicodedata.decimal(digit) for digit in digits}) > 1:
            raise self.unsure("its digits are of two scripts")
        return body.translate(FOLDS)

    def is_inside_word(self) -> bool:
        """Return whether a word ends right before it, as in B52; letters without capitals end none."""
        before = self.left[-1:]
        if before == "_":
            return not (self.right[:1] == "_" and self.left.rstrip("_")[-1:] in ("", " ", "\n"))
        if not before or before in " ~\n$*:=(":
            return False
        letter = next((c for c in reversed(self.left) if not unicodedata.category(c).startswith("M")), "")
        if not letter.isalpha():
            return before.isnumeric()
        if letter.lower() == letter.upper():
            return False
        return not re.search(r"\\[A-Za-z]+$", self.left) and not ATTACHED_CURRENCY.search(self.left)
