"""Read numbers out of an answer's text: a numeral is read whole, or it is an error; linear in the text."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from fractions import Fraction
from itertools import islice

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern
from pytest_tfgrpo.scoring.numerals.place import (
    NUMERAL,
    VULGAR,
    WINDOW,
    NumeralPlace,
    UnsureNumeral,
    exponent,
    prepared,
)
from pytest_tfgrpo.scoring.numerals.sign import currency_after, sign, without_currency
from pytest_tfgrpo.scoring.numerals.size import is_one, last_of_blanks, size
from pytest_tfgrpo.scoring.numerals.words import (
    CASELESS_MULTIPLIERS,
    MULTIPLIERS,
    SYMBOLS,
)

_BEFORE_EXPONENT = frozenset("^_*")
_IS_EXPONENT = lazy_pattern(r"(?:\^\s?[({]?\s?[-+−–]?|_[({]\s?-?|[A-Za-z)\]]\*\*\(?[-+−–]?)$")
_FUNCTIONS = ("sqrt", "ln", "log", "lg", "exp", "sin", "cos", "tan", "cot")
_FUNCTION_BEFORE = lazy_pattern(
    rf"(?<![^\W\d_])(?:arc)?(?:{'|'.join(_FUNCTIONS)})[ ~]?[({{]?[ ~]?$|(?:π|\bpi)[ ~]?/[ ~]?$"
)
_BEFORE_FORMULA = frozenset(".×÷·*xX√∛∜(±∓+-−–/{t]")
_FORMULA_BEFORE = lazy_pattern(
    r"(?:[\d)\]}%]\s?[×÷·]|\d\s?\*|\d[ ~][xX][ ~]|[√∛∜]\(?|\d[ ~]\.[ ~]|\\sqrt(?:\[[^\[\]]*\])?\{?"
    r"|[±∓]|\+/[-−–]?|\d\s?\+[-−–]|\d\s?\+$|\d\.?\(|\\(?:overline|bar|dot)\{)[ ~]?$"
)
_FORMULA_AFTER = lazy_pattern(
    r"[ ~]?pi(?!\w)|[eij](?!\w)"
    r"|[ ~]?(?:π|√|∛|\\sqrt|\^\s?(?!\{?\\?(?:circ|prime|degree|°|o\b|th\b|st\b|nd\b|rd\b|text|mathrm)))"
    r"|[\u0300-\u036f₀-₉]|\(\d+\)"
)
_OTHER_BASE = lazy_pattern(r"[xX][0-9a-fA-F]|[bB][01]|[oO][0-7]")
_LOOSE_EXPONENT = lazy_pattern(r"[ ~][eE][-+−]?\d+(?!\w)|\*\^[-+−]?\d|[dD]\d+(?!\w)")
_LOOSE_BEFORE = lazy_pattern(
    r"(?:\d[ ~]?[eE][ ~]|[×xX*·][ ~]?10[ ~]?[-−–+]?[ ~]?|(?:^|[ ~\n\-−–$€£]),|\d[ ~]?(?:分の|分之|분의)[ ~]?"
    r"|(?:\d|zero|one|two|three|four|five|six|seven|eight|nine|null|zéro)[ ~]"
    r"(?:point|comma|komma|virgule)[ ~]"
    r"|\d[ ~](?:to[ ~]the[ ~]power(?:[ ~]of)?|hoch|puissance)[ ~]|10[ ~]to[ ~]the[ ~]"
    r"|\d\.\d{1,3}\.\d{1,3}\.\d{1,3}:|(?:^|[\s(\[:])(?:[0-9a-f]{1,4})?::"
    r"|(?<![\d.])(?!\d\d\.\d\d\.\d\d[-+])\d{1,3}\.\d{1,3}\.\d{1,3}[-+])$",
    re.IGNORECASE,
)
_TIMES_BEFORE = lazy_pattern(
    r"\d[ ~]{0,2}(?:multipl\w{1,12}[ ~])?(?!\\(?:times|cdot)"
    r"|(?:=|≈|≃|~|<|>|≤|≥|→|\+|/|and|or|is|to|und|et|y|vs)[ ~])"
    r"[^\s\d~]{0,11}[^\s\d~.,;:!?\n=≈<>→)][ ~]{0,2}$"
)
"""A number and one word or sign before a power of ten: they may be one numeral."""
_LOOSE_ENDS = frozenset("eE0-−–+,の之의 ~:")
_TIED = lazy_pattern(r"(?<![\d.,])\d{1,3}(?:~\d{3})*~$")
_TIED_GROUP = lazy_pattern(r"\d{3}(?!\d)")
_CURRENCY_INSIDE = lazy_pattern(rf"\d[{SYMBOLS}]$")
_FRACTION = lazy_pattern(
    r"(?:(?<![\d.,/])(?P<whole>\d{1,9})\s?)?\\frac\s?"
    r"\{\s?(?P<above>[-+−]?\d{1,15}(?:\.\d{1,15})?)\s?\}\s?\{\s?$"
)
_IN_FRACTION = lazy_pattern(r"\\frac\s?(?:\{[^{}]*\}\s?)?\{?[^{}]*$")
_SLASH = lazy_pattern(r"\d\s?[/⁄]\s?$")
_CHAIN = lazy_pattern(r"\d\s?/\s?[\d.,]*\d\s?/\s?$")
_MIXED = lazy_pattern(
    r"(?<![\d.,/])(?:(?P<whole>\d{1,9})(?P<gap>[ ~\u2064+-]))?(?P<above>\d{1,9})\s?(?P<slash>[/⁄])\s?$"
)
_WORD = lazy_pattern(r"[ ~}$*_`-]{0,4}(?:\\(?:text\w*|mathrm)\s?\{)?[ ~]?([^\W\d_]+)")
_SUFFIX = lazy_pattern(r"(?:[kKMB]|[Mm]n|bn|tn)(?!\w)")
_MONEY_SUFFIX = lazy_pattern(r"[ ~]?(?:[kKmMbBtTG]|[mM][mn]|bn|tn|MM|[Ll]|[Cc]r|jt|rb)(?!\w)")
_SUFFIX_AND_CURRENCY = lazy_pattern(
    rf"[ ~]?(?:[kKMmGT]|[mb]n)[ ~]?"
    rf"(?:[{SYMBOLS}]|EUR|USD|GBP|CHF|SEK|NOK|DKK|JPY|INR|kr|euro|dollar|pound|yen)"
)
_SCALED_CURRENCY_BEFORE = lazy_pattern(
    r"(?<![^\W\d_])(?:[kKMmTG]|Md|Mrd|[Mm]n|[Mm]io|[Bb]n)"
    r"(?:EUR|USD|GBP|CHF|SEK|NOK|DKK|JPY|INR|CAD|AUD|€|\$)[ ~]?$"
)
_SCALED_ENDS = frozenset("RDPFKYD€$")
_AND_PART = lazy_pattern(r"[ ~](?:and|plus) (?:an? |one |two |three )?(?:half|halves|third|quarter|fourth)")
_NOTABLE_FORMS = (
    *(_FORMULA_AFTER, _OTHER_BASE, _LOOSE_EXPONENT),
    *(_MONEY_SUFFIX, _SUFFIX, _SUFFIX_AND_CURRENCY, _AND_PART),
)
_NOTABLE = lazy_pattern("|".join(form.pattern for form in _NOTABLE_FORMS))
"""Whatever behind a numeral needs a closer look, but words."""
_PLAIN = lazy_pattern(
    r"(?P<number>[-$0-9](?:(?:(?<=-)\$|(?<=\$)-|(?<=[-$]))[0-9]+|(?<=[0-9])[0-9]*)"
    r"(?P<groups>(?:,[0-9]{3})*)(?P<decimals>(?:\.[0-9]+)?))"
    r"(?:%|(?P<unit>[ -]?[A-Za-z]{2,12})(?: [A-Za-z]+){0,4})?[.,!$*`)\s]*\Z"
)
"""What ends most answers: a number, its unit, a few words."""
_PLAIN_TAIL = 96
_PLAIN_BEFORE = frozenset("abcdefghijklmnopqrstuvwyz:=,")
_PLAIN_EXCEPT = (
    "minus",
    "negative",
    "menos",
    "moins",
    "meno",
    "eksi",
    "point",
    "comma",
    "komma",
    "virgule",
    "power of",
    "to the",
    "power",
    "hoch",
    "puissance",
    *_FUNCTIONS,
)
_NO_UNITS = MULTIPLIERS | {
    "and",
    "plus",
    "mn",
    "bn",
    "tn",
    "mm",
    "to",
    "pi",
    "or",
    "mkr",
    "tkr",
    "nd",
    "rd",
    "choose",
}
_BOUNDARY = lazy_pattern(r"[a-cf-wyz\n]")
TRIES = 300
"""How many numerals at the end of a text may be parts of words, before the one that counts."""
_AROUND = (lazy_pattern(r"[\s$(]*[-+−–]?[\s$]*\.?"), lazy_pattern(r"[\s$)]*"))


def last_number(text: str) -> float | None:
    """Return the last number in `text`, which counts as its answer; None when there is none.

    A leading sign belongs to the number unless a word or number ends right before it (``3-5`` ends in 5).
    Raises UnsureNumeral.
    """
    if (plain := _plain(text)) is not None:
        return float(plain)
    text = prepared(text)
    start = _safe_start(text)
    found = deque(NUMERAL.finditer(text, start), maxlen=1)
    if start and not found:
        found = deque(NUMERAL.finditer(text), maxlen=1)
    if not found:
        return None
    number = number_at(text, found[0])
    return _earlier(text) if number is None else float(number)


def certain_number(text: str) -> float | None:
    """Return the last number in `text`; None when there is none, or none that can be read for certain."""
    try:
        return last_number(text)
    except UnsureNumeral:
        return None


def _plain(text: str) -> str | None:
    """Return the last number where nothing beside it can belong to it, else None: the short way, for most."""
    found = _PLAIN.search(text, max(0, len(text) - _PLAIN_TAIL))
    if found is None:
        return None
    written, groups, decimals, unit = found.groups()
    number = written.replace("$", "").replace(",", "")
    if groups or len(decimals) == 4:  # a point or a comma that could part thousands, or not
        whole = written.strip("-$").partition(",")[0]
        is_alone = text.count(",") == written.count(",") and text.count(".") <= written.count(".") + 1
        if (len(decimals) == 4 and not groups) or len(whole) > 3 or whole[0] == "0" or not is_alone:
            return None
    if unit is not None:
        unit = unit.strip(" -")
        if number[-1] == "0" and unit[0] in "xXbBoO":
            return None
        if unit.lower() in _NO_UNITS or (len(unit) > 3 and unit[1:].isupper()):
            return None
    start = found.start()
    if not start:
        return number
    before = text[max(0, start - 12) : start]
    if before[-1] == " ":
        words = before[:-1]
        fits = words[-1:] in _PLAIN_BEFORE and not words.endswith(_PLAIN_EXCEPT) and "\\" not in words
        fits = fits and not (words[-1:] == "e" and words[-2:-1].isdigit())
    else:
        fits = before[-1] == "\n" or (
            before.endswith("**") and before[-3:-2] in ("", " ", "\n") and "**" in text[start:]
        )
    return number if fits else None


def _safe_start(text: str) -> int:
    """Return a place near the end of a long text at which no numeral is cut."""
    if len(text) < 4 * WINDOW:
        return 0
    boundary = _BOUNDARY.search(text, len(text) - 2 * WINDOW)
    return boundary.end() if boundary else 0


def _earlier(text: str) -> float | None:
    """Return the last number that is not the last numeral: that one is part of a word or an exponent."""
    starts = deque((found.start() for found in NUMERAL.finditer(text)), maxlen=TRIES + 1)
    found = None
    for start in list(reversed(starts))[1:]:
        found = NUMERAL.match(text, start)
        if found and (number := number_at(text, found)) is not None:
            return float(number)
    if found and len(starts) > TRIES:
        raise UnsureNumeral(found[0], f"the {TRIES:,} numerals behind it are parts of words or exponents")
    return None


def whole_number(text: str) -> str | None:
    """Return the one number that all of `text` is, as Python writes it; None when it is none for certain."""
    text = prepared(text)
    found = list(islice(NUMERAL.finditer(text), 2))
    if len(found) != 1 or not is_one(found[0]["body"]):
        return None
    before, after = text[: found[0].start()], text[found[0].end() :]
    if not _AROUND[0].fullmatch(before) or not _AROUND[1].fullmatch(after):
        return None
    try:
        return number_at(text, found[0])
    except UnsureNumeral:
        return None


def number_at(text: str, found: re.Match[str]) -> str | None:
    """Return the number of a numeral of prepared text, None for digits that are none, as those of a word.

    Raises UnsureNumeral.
    """
    return Numeral(NumeralPlace(text, found)).number()


def word_of_scale(right: str) -> str:
    """Return the word right behind a numeral that makes it larger; blank when there is none."""
    word = _WORD.match(right)
    if word and (word[1].casefold() in MULTIPLIERS or CASELESS_MULTIPLIERS.match(right, word.start(1))):
        return word[1]
    return ""


class Numeral:
    """The reading of one numeral."""

    def __init__(self, place: NumeralPlace) -> None:
        self._place = place
        self._found = place.found
        self._body = place.body()
        self._point = ""
        self._is_notable = place.right != "" and _NOTABLE.match(place.right) is not None

    def number(self) -> str | None:
        """Return what it says as Python writes numbers; raises UnsureNumeral."""
        place = self._place
        if not self._starts():
            return None
        self._check_around()
        fraction = self._fraction()
        if fraction is None:
            if " " in self._body:
                dropped, self._body = last_of_blanks(self._body, place, money=self._is_money())
                place.left = (place.left + dropped + " ")[-WINDOW:] if dropped else place.left
            plain = self._scaled(self._size())
        else:
            plain = fraction
        if place.left[-1:] in _LOOSE_ENDS and _LOOSE_BEFORE.search(place.left, max(0, len(place.left) - 28)):
            raise place.unsure("it may be the end of a longer numeral")
        if place.left.endswith("~") and self._is_tied():
            raise place.unsure("a tie separates its digits: it could be one number or a range")
        minus, money, rest = sign(place, self._body)
        last = rest.rstrip(" ~")[-1:]
        is_emphasis = last == "*" and place.right[:1] == "*"
        if last in _BEFORE_FORMULA and not is_emphasis and _FORMULA_BEFORE.search(rest):
            raise place.unsure("it is part of a formula", formula=True)
        if (last.isalpha() or last in "(/{") and _FUNCTION_BEFORE.search(rest, max(0, len(rest) - 12)):
            raise place.unsure("it is part of a formula", formula=True)
        self._check_multiplier(money)
        return "-" + plain if minus else plain

    def in_formula(self) -> tuple[str, bool, int] | None:
        """Return the number without its sign, whether it is money with a minus, and where that starts.

        None where there is no number, or a fraction; raises UnsureNumeral.
        """
        place = self._place
        if (
            not is_one(self._body)
            or not self._starts()
            or self._point
            or place.left.rstrip()[-1:] in ("/", "⁄")
        ):
            return None
        plain = self._scaled(self._size())
        minus, money, rest = sign(place, self._body)
        self._check_multiplier(money)
        return plain, minus and money, len(place.left) - len(rest)

    def _starts(self) -> bool:
        """Return whether a number starts here, or behind the blanks that follow digits of a word."""
        place = self._place
        if not _BEFORE_EXPONENT.isdisjoint(place.left[-4:]) and _IS_EXPONENT.search(
            place.left, len(place.left) - 6
        ):
            return False
        if place.left.endswith("."):
            return self._starts_with_point()
        while place.is_inside_word():
            word, blank, rest = self._body.partition(" ")
            if not blank:
                return False
            self._body = rest
            place.left = (place.left + word)[-WINDOW:] + " "
        return True

    def _starts_with_point(self) -> bool:
        """Return whether a point before the digits begins decimals, or ends what stands before them."""
        place = self._place
        before = place.left[:-1]
        if before.endswith(".") or re.search(r"(?<![^\W\d_])(?:Rs|Fr|[Kk]r|Rp)$", before):
            place.left = before.rstrip(".") + " "
            return True
        if (before and (before[-1].isalnum() or before[-1] in "_)]}")) or not self._body.isdigit():
            return False
        self._point = "0."
        place.left = before
        return True

    def _is_tied(self) -> bool:
        """Return whether TeX's tie may part groups of three digits, as in 1~250."""
        place = self._place
        is_written = place.text[self._found.start() - 1] == "~"
        return bool(is_written and _TIED_GROUP.match(self._body) and _TIED.search(place.left))

    def _is_money(self) -> bool:
        return without_currency(self._place.left)[1] or currency_after(self._place.right) > 0

    def _has_currency(self) -> bool:
        """Return whether a currency stands beside it, also before its sign."""
        left = self._place.left.rstrip("-+−–")
        return without_currency(left)[1] or currency_after(self._place.right) > 0

    def _check_around(self) -> None:
        """Raise UnsureNumeral where what follows, or a currency amid the digits, makes it no lone numeral."""
        place = self._place
        if self._is_notable:
            if _FORMULA_AFTER.match(place.right):
                raise place.unsure("it is part of a formula", formula=True)
            if self._body == "0" and _OTHER_BASE.match(place.right):
                raise place.unsure("it is not written with base ten")
            if _LOOSE_EXPONENT.match(place.right):
                raise place.unsure("what follows it may be its exponent")
        if place.left[-2:-1].isdigit() and _CURRENCY_INSIDE.match(place.left, len(place.left) - 2):
            raise place.unsure("a currency is among its digits")

    def _fraction(self) -> str | None:
        """Return the decimal value of a fraction whose lower part this is, None when it is none."""
        place = self._place
        if "\\frac" in place.left and _IN_FRACTION.search(place.left):
            return self._latex_fraction()
        if (
            place.left.rstrip()[-1:] not in ("/", "⁄")
            or not _SLASH.search(place.left)
            or _CHAIN.search(place.left)
        ):
            return None
        mixed = _MIXED.search(place.left)
        below = self._found[0]
        if mixed and below.isdigit() and (mixed["whole"] or mixed["slash"] == "⁄"):
            whole, above = int(mixed["whole"] or 0), int(mixed["above"])
            if mixed["gap"] in (None, " ", "~", "\u2064") and 0 < above < int(below[:9]) and len(below) < 9:
                place.left = place.left[: mixed.start()]
                return repr(float(whole + Fraction(above, int(below))))
        raise place.unsure("it could be a fraction, a ratio or a date", formula=True)

    def _latex_fraction(self) -> str:
        place, below = self._place, self._body
        if place.left.endswith("\\frac") and len(below) == 2 and below.isdigit() and below[1] != "0":
            above, whole, place.left = below[0], "", place.left.removesuffix("\\frac")
            below = below[1]
        elif (found := _FRACTION.search(place.left)) and place.right.lstrip(" ~").startswith("}"):
            above, whole, place.left = (
                found["above"].replace("−", "-"),
                found["whole"] or "",
                place.left[: found.start()],
            )
        else:
            raise place.unsure("it is part of a formula", formula=True)
        place.right = place.right.lstrip(" ~").removeprefix("}")
        if self._found[0] != self._found["body"] or not re.fullmatch(r"\d{1,15}(?:\.\d{1,15})?", below):
            raise place.unsure("it is part of a formula", formula=True)
        if not float(below) or (whole and above.startswith("-")):
            raise place.unsure("it is not a fraction with a value", formula=True)
        return repr(float(Fraction(whole or 0) + Fraction(above) / Fraction(below)))

    def _size(self) -> str:
        if self._body[0] not in VULGAR:
            return self._point + size(self._body, self._place, self._has_currency)
        if len(self._body) > 1 or self._found[0] != self._body:
            raise self._place.unsure("its digits are separated in an unknown way")
        return repr(unicodedata.numeric(self._body))

    def _scaled(self, plain: str) -> str:
        """Return digits with the exponent, power or fraction that follows them."""
        found, place = self._found, self._place
        if found[0] == found["body"]:
            return plain
        if found["vulgar"]:
            if not plain.isdigit() or len(plain) > 15:
                raise place.unsure("a fraction follows it")
            plain = repr(int(plain) + unicodedata.numeric(found["vulgar"]))
        if tenfold := found["e"] or found["d"]:
            return f"{plain}e{exponent(tenfold)}"
        if found["raised"]:
            if [unicodedata.decimal(digit) for digit in found["ten"]] != [1, 0]:
                raise place.unsure("it is part of a formula", formula=True)
            return f"{plain}e{exponent(found['raised'])}"
        if found["power"]:
            if plain != "10":
                raise place.unsure("it is part of a formula", formula=True)
            if _TIMES_BEFORE.search(place.left, max(0, len(place.left) - 40)):
                raise place.unsure("it may be the power of ten of the number before it", formula=True)
            return f"1e{exponent(found['power'])}"
        return plain

    def _check_multiplier(self, money: bool) -> None:
        """Raise UnsureNumeral where a word or letter behind it makes the numeral larger."""
        right = self._place.right
        if word := word_of_scale(right):
            raise self._place.unsure(f"{word[:20]!r} follows it, and words are not read as numbers")
        left = self._place.left[-12:]
        if left.rstrip(" ~")[-1:] in _SCALED_ENDS and _SCALED_CURRENCY_BEFORE.search(left):
            raise self._place.unsure("the currency before it may make it larger")
        if not self._is_notable:
            return
        suffix = _MONEY_SUFFIX if money else _SUFFIX
        if found := suffix.match(right) or _SUFFIX_AND_CURRENCY.match(right):
            raise self._place.unsure(f"{found[0].strip()!r} follows it, which may make it larger")
        if _AND_PART.match(right):
            raise self._place.unsure("words follow it that add a part to it")
