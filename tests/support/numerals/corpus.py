"""A corpus of numerals with their values, as countries, scripts, currencies and sciences write them.

The formats are those of CLDR for these locales; values, forms and frames are drawn by a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import NamedTuple


class Locale(NamedTuple):
    """How a locale writes numbers."""

    name: str
    group: str
    decimal: str
    digits: str = "0123456789"
    minus: str = "-"
    money: str = "{n} €"
    """An amount; `{s}` is where the sign stands, before the number when left out."""
    indian: bool = False
    least_grouped: int = 4
    """Digits of the smallest integer that is grouped."""


_NNBSP, _NBSP, _THIN = "\u202f", "\u00a0", "\u2009"
LOCALES = (
    Locale("en-US", ",", ".", money="{s}${n}"),
    Locale("en-IN", ",", ".", money="{s}₹{n}", indian=True),
    Locale("de-DE", ".", ",", money="{s}{n} €"),
    Locale("fr-FR", _NNBSP, ",", money="{s}{n}\u00a0€"),
    Locale("de-CH", "’", ".", money="CHF {s}{n}"),
    Locale("pt-BR", ".", ",", money="{s}R$ {n}"),
    Locale("sv-SE", _NBSP, ",", minus="\u2212", money="{s}{n} kr"),
    Locale("pl-PL", _NBSP, ",", money="{s}{n} zł", least_grouped=5),
    Locale("hi-IN", ",", ".", digits="०१२३४५६७८९", money="{s}₹{n}", indian=True),
    Locale("ar-EG", "٬", "٫", digits="٠١٢٣٤٥٦٧٨٩", minus="\u061c-", money="{s}{n} ج.م"),
    Locale("fa-IR", "٬", "٫", digits="۰۱۲۳۴۵۶۷۸۹", minus="\u200e\u2212", money="{s}{n} ﷼"),
    Locale("bn-BD", ",", ".", digits="০১২৩৪৫৬৭৮৯", money="{s}{n}৳", indian=True),
    Locale("th-TH", ",", ".", digits="๐๑๒๓๔๕๖๗๘๙", money="{s}฿{n}"),
    Locale("ja-JP", ",", ".", digits="０１２３４５６７８９", money="{s}￥{n}"),
    Locale("zh-CN", ",", ".", money="{s}¥{n}"),
    Locale("es-ES", ".", ",", money="{s}{n} €", least_grouped=5),
    Locale("ru-RU", _NBSP, ",", money="{s}{n} ₽"),
    Locale("si", _THIN, ".", minus="\u2212", money="{s}{n} USD"),
    Locale("plain-blank", " ", ",", money="{s}{n} €"),
    Locale("da-DK", ".", ",", money="{s}{n} kr."),
)
FRAMES = (
    "{}",
    "The answer is {}.",
    "so it comes to {}",
    "Ergebnis: {}",
    "First 7, then 8.\n\n**{}**",
    "x = {}",
    "({}, as above)",
    "`{}`",
    "{}\n",
    "答案是{}。",
    "答えは{}です",
    "La réponse : {} !",
    "الجواب {}",
    "उत्तर {} है",
    "$ {} $",
)
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Sample(NamedTuple):
    """A numeral in an answer; of an ambiguous one every value that it could have."""

    form: str
    answer: str
    value: float
    others: tuple[float, ...] = ()


def grouped(digits: str, locale: Locale) -> str:
    """Return the digits of an integer in groups."""
    if len(digits) < locale.least_grouped:
        return digits
    head, tail = digits[:-3], digits[-3:]
    step = 2 if locale.indian else 3
    cut = [head[max(0, end - step) : end] for end in range(len(head), 0, -step)]
    return locale.group.join([*reversed(cut), tail])


def written(value: Decimal, locale: Locale, *, group: bool = True) -> str:
    """Return the size of a number, without its sign, as a locale writes it."""
    whole, _, decimals = f"{abs(value):f}".partition(".")
    text = (grouped(whole, locale) if group else whole) + (locale.decimal + decimals if decimals else "")
    return text.translate(str.maketrans("0123456789", locale.digits))


def others(value: Decimal, text: str, locale: Locale) -> tuple[float, ...]:
    """Return what else a locale's number could be elsewhere: 1.234 and 1,234 are the one such form."""
    if locale.digits != "0123456789" and locale.group == "٬":
        return ()
    plain = text.translate(str.maketrans(locale.digits, "0123456789"))
    for mark in ",.":
        whole, _, rest = plain.partition(mark)
        if whole.isdigit() and rest.isdigit() and len(rest) == 3 and len(whole) < 4 and whole[0] != "0":
            sign = -1 if value < 0 else 1
            both = {float(sign * int(whole + rest)), float(sign * Decimal(f"{whole}.{rest}"))}
            return tuple(both - {float(value)})
    is_grouped = plain.count(" ") and plain.replace(" ", "").isdigit()
    if locale.group == " " and is_grouped and len(plain.partition(" ")[0]) == 3:
        return (float(plain.rpartition(" ")[2]),)  # 100 200: one number or two
    return ()


def _value(rng: random.Random, *, decimals: int | None = None) -> Decimal:
    places = rng.choice((0, 0, 0, 1, 2, 2, 3)) if decimals is None else decimals
    size = rng.randrange(10 ** rng.randrange(1, 9 + places))
    return Decimal(size).scaleb(-places) * rng.choice((1, 1, -1))


def _number(rng: random.Random) -> Sample:
    locale, value = rng.choice(LOCALES), _value(rng)
    text = written(value, locale)
    sign = locale.minus if value < 0 else ""
    return Sample("number", sign + text, float(value), others(value, text, locale))


def _money(rng: random.Random) -> Sample:
    locale, value = rng.choice(LOCALES), _value(rng, decimals=2)
    text = written(value, locale)
    money = locale.money.format(n=text, s=locale.minus if value < 0 else "")
    return Sample("money", money, float(value), others(value, text, locale))


def _tenfold(rng: random.Random) -> Sample:
    locale, power = rng.choice(LOCALES[:8]), rng.randrange(-20, 21)
    mantissa = Decimal(rng.randrange(100, 1000)).scaleb(-2) * rng.choice((1, -1))
    ways: tuple[Callable[[], str], ...] = (
        lambda: f"e{power}",
        lambda: f"E{power:+03d}",
        lambda: f" × 10^{power}",
        lambda: f"×10{str(power).translate(_RAISED)}",
        lambda: f" x 10^{power}",
        lambda: f" * 10**{power}",
        lambda: f" · 10^{{{power}}}",
        lambda: f" \\times 10^{{{power}}}",
        lambda: f"\\cdot 10^{{{power}}}",
        lambda: f" × 10<sup>{power}</sup>",
        lambda: f" × 10^{str(power).replace('-', chr(0x2212))}",
        lambda: f" × 10^({power})",
    )
    sign = locale.minus if mantissa < 0 else ""
    text = sign + written(mantissa, locale) + rng.choice(ways)()
    return Sample("power of ten", text, float(f"{mantissa}e{power}"))


def _percent(rng: random.Random) -> Sample:
    locale, value = rng.choice(LOCALES), Decimal(rng.randrange(10_000)).scaleb(-rng.choice((0, 1, 2)))
    text = written(value, locale)
    sign = rng.choice(("%", " %", "\u00a0%", "\u202f%"))
    return Sample("percent", text + sign, float(value), others(value, text, locale))


def _fraction(rng: random.Random) -> Sample:
    whole = rng.randrange(20)
    one, value = rng.choice((("½", 0.5), ("¼", 0.25), ("¾", 0.75), ("⅛", 0.125), ("⅗", 0.6)))
    above, below = sorted(rng.sample(range(1, 20), 2))
    return rng.choice(
        (
            Sample("fraction", f"{whole or ''}{one}", whole + value),
            Sample("fraction", f"{whole + 1} {above}/{below}", whole + 1 + above / below),
            Sample("fraction", f"{above}\u2044{below}", above / below),
            Sample("fraction", rf"\frac{{{above}}}{{{below}}}", above / below),
            Sample("fraction", rf"-\dfrac{{{above}}}{{{below}}}", -above / below),
        )
    )


def _latex(rng: random.Random) -> Sample:
    value = _value(rng)
    group = rng.choice(("{,}", "\\,", "\\;", ","))
    text = written(value, Locale("LaTeX", group, "."))
    text = ("-" if value < 0 else "") + text
    frames = (
        "${}$",
        "\\boxed{{{}}}",
        "\\({}\\)",
        "\\[ {} \\]",
        "\\text{{{}}}",
        "$\\mathbf{{{}}}$",
        "${}\\%$",
    )
    frame = rng.choice(frames)
    return Sample("LaTeX", frame.format(text), float(value), others(value, text.lstrip("-"), LOCALES[0]))


def _accounts(rng: random.Random) -> Sample:
    locale, value = rng.choice((LOCALES[0], LOCALES[2], LOCALES[4])), -abs(_value(rng, decimals=2))
    text = locale.money.format(n=written(value, locale), s="")
    return Sample("brackets", f"({text})", float(value))


def _program(rng: random.Random) -> Sample:
    value = _value(rng)
    ways = (f"{value:f}", f"{value:,f}".replace(",", "_"), repr(float(value)), f"{float(value):.12e}")
    return Sample("program", rng.choice(ways), float(value))


FORMS: tuple[tuple[Callable[[random.Random], Sample], int], ...] = (
    (_number, 34),
    (_money, 20),
    (_tenfold, 14),
    (_percent, 8),
    (_fraction, 8),
    (_latex, 8),
    (_accounts, 3),
    (_program, 5),
)
"""Each form and its share in percent."""


def corpus(size: int = 2000, seed: int = 0) -> Iterator[Sample]:
    """Yield samples, each in one of the frames; the shares of the forms are exact."""
    rng = random.Random(seed)
    for form, share in FORMS:
        for _ in range(size * share // 100):
            sample = form(rng)
            frame = "{}\n" if sample.form in ("brackets", "LaTeX") else rng.choice(FRAMES)
            yield sample._replace(answer=frame.format(sample.answer))
