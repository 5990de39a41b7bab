"""Read and compare mathematics in a separate process; the only file that imports ``math_verify``.

Run as a script by ``math.py``: sympy may hang in C code, which nothing stops but the end of the process.
Talks lines of JSON; every request is answered by a line on the expected value, then one on the answer.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import re
import resource
import signal
import sys
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

DECIMALS = 6

_MARKED = re.compile(r"\\boxed|\\\(|\\\[|\$[^$\n]+\$|\$\$")
_LEAD = re.compile(r"^.*\b(?:answer|result|solution)\b\s*(?:is\b|[:=])*\s*", re.IGNORECASE)
_CASELESS_LEAD = re.compile(
    r"^.*(?:答案|答え|答|结果|結果|解|정답|답|คำตอบ|उत्तर|الجواب|התשובה)"
    r"\s*(?:应该是|應該是|是|为|為|は|은|는|คือ|है|هو|היא|[:：=])*\s*"
)
_CASELESS = re.compile(
    "[\u05d0-\u05ea\u0620-\u065f\u066e-\u06ef\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_TAIL = re.compile(r"\s*(?:です|である|だ|입니다|이다|है|ครับ|ค่ะ)?\s*[。．।؟]*$")
"""What leads to an answer and follows it in scripts that have no capitals."""
_NAMES = frozenset(
    {"sqrt", "sin", "cos", "tan", "log", "ln", "exp", "pi", "oo", "inf", "infinity"}
    | {"or", "and", "minus", "negative"}
)
"""Words that mathematics is written with."""
_TAGS = re.compile(r"</?(?:answer|final|final_answer|result|solution)>", re.IGNORECASE)
_SIGNS = {0xFF01 + n: chr(0x21 + n) for n in range(94)} | str.maketrans({
    "\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{HYPHEN}": "-", "\N{NON-BREAKING HYPHEN}": "-",
    "\N{NO-BREAK SPACE}": " ", "\N{THIN SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ",
    "\N{FIGURE SPACE}": " ", "\N{PRIME}": "'",
    "\N{MULTIPLICATION SIGN}": r"\times ", "\N{DOT OPERATOR}": r"\cdot ", "\N{MIDDLE DOT}": r"\cdot ",
    "\N{BULLET OPERATOR}": r"\cdot ", "\N{ASTERISK OPERATOR}": "*", "\N{DIVISION SIGN}": "/",
    "\N{DIVISION SLASH}": "/", "\N{RATIO}": ":", "\N{INFINITY}": r"\infty ",
    "\N{GREEK SMALL LETTER PI}": r"\pi ", "\N{ELEMENT OF}": r"\in ",
    "\N{UNION}": r"\cup ", "\N{INTERSECTION}": r"\cap ", "\N{LESS-THAN OR EQUAL TO}": r"\le ",
    "\N{GREATER-THAN OR EQUAL TO}": r"\ge ", "\N{LESS-THAN OR SLANTED EQUAL TO}": r"\le ",
    "\N{GREATER-THAN OR SLANTED EQUAL TO}": r"\ge ",
})  # fmt: skip
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣʸ", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙᵢₓ"
_LEVEL = str.maketrans(_RAISED + _LOWERED, "0123456789+-=()nixy" + "0123456789+-=()nix")
_ROOTS = {"\N{SQUARE ROOT}": r"\sqrt", "\N{CUBE ROOT}": r"\sqrt[3]", "\N{FOURTH ROOT}": r"\sqrt[4]"}
_UNICODE: list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]] = [
    (re.compile(f"[{_RAISED}]+"), lambda found: f"^{{{found[0].translate(_LEVEL)}}}"),
    (re.compile(f"[{_LOWERED}]+"), lambda found: f"_{{{found[0].translate(_LEVEL)}}}"),
    (
        re.compile(r"([√∛∜])\s?(?:\(([^()]{1,100})\)|\{([^{}]{1,100})\}|(\d{1,30}(?:\.\d{1,30})?|[A-Za-z]))"),
        lambda found: f"{_ROOTS[found[1]]}{{{found[2] or found[3] or found[4]}}}",
    ),
    (re.compile("(?<=[0-9]) ?(?=[¼-¾⅐-⅞])"), lambda _: ""),
    (
        re.compile("[¼-¾⅐-⅞]"),
        lambda found: r"\frac{{{}}}{{{}}}".format(*unicodedata.normalize("NFKC", found[0]).split("⁄")),
    ),
    (re.compile(r"(\d{1,30})⁄(\d{1,30})"), lambda found: rf"\frac{{{found[1]}}}{{{found[2]}}}"),
    (re.compile(r"[^\x00-\x7f]"), lambda found: _digit(found[0])),
]
"""Signs of Unicode whose meaning needs more than one character of LaTeX."""
_REWRITES = [
    (re.compile(r"(?<![\w\\.])(\d{1,30}(?:\.\d{1,30})?)[eE]([+-]?\d{1,9})(?![\w^])"), r"\1\\times 10^{\2}"),
    (re.compile(r"\^(-?\d{2,30})(?!\d)"), r"^{\1}"),
    (re.compile(r"(?<![A-Za-z\\])pi(?![A-Za-z])"), r"\\pi "),
    (re.compile(r"\\varnothing"), r"\\emptyset"),
]
"""What people write and LaTeX or the library reads otherwise: 1.5e3, 2^10, pi."""
_REPEATING = re.compile(r"(?<!\d)(\d{1,30})\.(\d{0,30})\\(?:overline|bar|dot)\{(\d{1,30})\}")
_PLAIN_REWRITES = [
    (re.compile(r"\b(?:minus|negative) (?=[\d.])"), "-"),
    (re.compile(r"(?<=\d) (?=\d{3}(?:\D|$))"), ""),
    (re.compile(r"(?<![\d./])(\d{1,30}) (\d{1,30})/(\d{1,30})(?![\d./])"), r"\1\\frac{\2}{\3}"),
    (re.compile(r"(?<=\d) ?[xX] ?(?=10\^)"), r"\\times "),
    (re.compile(r"(?<![A-Za-z\\])(?:oo|inf|infinity)(?![A-Za-z])"), r"\\infty "),
    (re.compile(r" (?:or|and) "), ", "),
    (re.compile(r" U "), r" \\cup "),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"\*"), r"\\cdot "),
    (re.compile(r"<="), r"\\le "),
    (re.compile(r">="), r"\\ge "),
    (re.compile(r"\^\(([^()]{1,100})\)"), r"^{\1}"),
]
"""The same for mathematics without LaTeX's marks around it."""


def marked(text: str) -> str:
    """Return `text` so that the library finds the mathematics in it.

    What has none of LaTeX's marks but is mathematics from start to end of its last line gets them.
    """
    if not text.isascii():
        text = text.translate(_SIGNS)
        for signs, in_latex in _UNICODE:
            text = signs.sub(in_latex, text)
    if not _MARKED.search(text):
        text = _TAGS.sub("\n", text)
        line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        line = _LEAD.sub("", line).strip().strip("*`").strip()
        line = _TAIL.sub("", _CASELESS_LEAD.sub("", line)).removesuffix(".")
        if not _is_bare(line):
            return _CASELESS.sub(r" \g<0> ", text).replace(r"\$", "$")
        for pattern, plain in _PLAIN_REWRITES:
            line = pattern.sub(plain, line)
        text = f"${line}$"
    for pattern, plain in _REWRITES:
        text = pattern.sub(plain, text)
    return _REPEATING.sub(_fraction, text)


def _is_bare(line: str) -> bool:
    """Return whether a line is mathematics alone: no word stands in it but names of functions."""
    if _CASELESS.search(line):
        return False
    words = [word.strip("()[]{}<>.,:;!?\"'") for word in line.split()]
    known = all(len(word) < 2 or not word.isalpha() or word in _NAMES for word in words)
    return any(words) and known and "$" not in line


def _digit(character: str) -> str:
    return str(unicodedata.decimal(character)) if character.isdecimal() else character


def _fraction(match: re.Match[str]) -> str:
    """Return a repeating decimal as the fraction it is."""
    whole, head, period = match.groups()
    over = int(whole + head + period) - int(whole + head)
    return rf"\frac{{{over}}}{{{10 ** len(head) * (10 ** len(period) - 1)}}}"


class MathLibrary:
    """What of the library is used, imported once."""

    def __init__(self) -> None:
        """Raises ImportError."""
        from math_verify import parse, verify
        from sympy import I, Number

        self._parse: Callable[..., list[Any]] = parse
        self._verify: Callable[..., bool] = verify
        self._number: Callable[[str], Any] = Number
        self._imaginary_unit: Any = I
        self.expected = lru_cache(maxsize=512)(self._expected)

    def read(self, text: str) -> tuple[Any, str]:
        """Return the final expression of `text`, None when there is none, and what was read of it."""
        found = self._parse(marked(text), parsing_timeout=None, raise_on_error=True)
        written = next((item for item in found if isinstance(item, str)), "")
        expression: Any = next((item for item in found if not isinstance(item, str)), None)
        with contextlib.suppress(TypeError, AttributeError):  # complex numbers have no order
            units = [symbol for symbol in expression.free_symbols if symbol.name == "i"]
            expression = expression.xreplace(dict.fromkeys(units, self._imaginary_unit))
        return expression, written

    def equal(self, expected: Any, got: Any, decimals: int) -> bool:
        """Return whether `got` is equivalent to `expected`; the order matters to the library."""
        numbers = [getattr(side, "is_Number", False) for side in (expected, got)]
        if all(numbers) and (expected.is_Float or got.is_Float):
            # the library rounds both sides, and holds 3 and 2.9999999999999996 for different
            return bool(abs(expected - got) * 2 * 10**decimals <= 1)
        return self._verify(
            expected,
            got,
            float_rounding=decimals,
            allow_set_relation_comp=True,
            timeout_seconds=None,
            raise_on_error=True,
        )

    def _expected(self, value: str | float) -> tuple[Any, int]:
        """Return the expected value, and to how many decimals others are compared with it.

        Raises ValueError when it is none that can be compared.
        """
        if isinstance(value, str):
            text = value if _MARKED.search(value) else f"${value}$" if "\\" in value else value
            found, _ = self.read(text)
        else:
            found = self._number(repr(value))
        if found is None or not self.equal(found, found, DECIMALS):
            raise ValueError("it cannot be read as a number, an expression, an interval or a set")
        with contextlib.suppress(Exception):  # hangs now, and not on every answer, where it hangs at all
            self.equal(found, self._number("0.12345678"), DECIMALS)
        return found, _decimals(found)


def _decimals(value: Any) -> int:
    """Return 6, or as many places as give a smaller number 6 digits."""
    try:
        size = abs(float(value))
    except (TypeError, ValueError, OverflowError, AttributeError):
        return DECIMALS
    return DECIMALS if size == 0 or size >= 0.1 else DECIMALS - 1 - math.floor(math.log10(size))


def answer(reader: MathLibrary, request: Mapping[str, Any], say: Callable[..., None]) -> None:
    """Answer one request in two lines."""
    try:
        expected, decimals = reader.expected(request["value"])
    except Exception as error:  # noqa: BLE001 - whatever the library raises on it
        say(wrong=f"{type(error).__name__}: {error}"[:300])
        return
    say(wrong=None)
    try:
        got, written = reader.read(request["answer"])
        equal = got is not None and reader.equal(expected, got, request["decimals"] or decimals)
        say(found=got is not None, written=written[-200:], equal=equal)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the library raises on it
        say(found=False, written=type(error).__name__, equal=False)


def main() -> None:
    """Serve until standard input ends; a request that takes too long is the end, by a signal's default."""
    requests, replies = os.fdopen(0, encoding="ascii"), os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no reply

    def say(**reply: Any) -> None:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    logging.disable()  # the library warns that its own time limits, which need signals, are off
    start = json.loads(requests.readline())
    sys.path.extend(folder for folder in start["path"] if folder not in sys.path)
    with contextlib.suppress(ValueError, OSError):  # not every system knows this limit
        resource.setrlimit(resource.RLIMIT_AS, (start["memory"], start["memory"]))
    try:
        reader = MathLibrary()
        reader.read("$\\frac{1}{2}$")
    except ImportError as error:
        say(ready=False, why=str(error))
        return
    say(ready=True)
    for line in requests:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, request["limit_s"])
        answer(reader, request, say)
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()
