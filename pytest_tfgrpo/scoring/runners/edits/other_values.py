"""Other values in the place of literals: of the same kind and about the same size."""

from __future__ import annotations

import math
import re
import secrets

from pytest_tfgrpo.scoring.runners.edits.other_words import Words

ALPHABETS = ("bcdfghjklmnpqrstvwxyz", "aeiou", "BCDFGHJKLMNPQRSTVWXYZ", "AEIOU", "0123456789")
"""Letters and digits of which one may stand in the place of another."""
EMPTY = {"None": "0", "()": "(1,)", "[]": "[1]", "{}": "{'a': 1}"}
"""What is expected in the place of nothing."""

_random = secrets.SystemRandom()


def other_value(value: object, words: Words) -> str | None:
    """Return a literal of another value of the same kind and about the same size."""
    if isinstance(value, bool):
        return repr(not value)
    if isinstance(value, int):
        return f"{'-' * (value < 0)}{words.other_number(str(abs(value)))}"
    if isinstance(value, float) and math.isfinite(value):
        return _other_float(value)
    return EMPTY.get(repr(value))


def _other_float(value: float) -> str:
    """Return a number with another one of its first digits; a small or large one of another size."""
    text = repr(value)
    if abs(value) >= 0.1 and "e" not in text:
        places = [match.start() for match in re.finditer(r"[0-9]", text.lstrip("-0."))][:4]
        at = len(text) - len(text.lstrip("-0.")) + _random.choice(places)
        return text[:at] + _random.choice("123456789".replace(text[at], "")) + text[at + 1 :]
    digits = len(text.partition(".")[2]) if "e" not in text else 1
    other = round(value + max(abs(value), 1.0) * _random.uniform(0.2, 0.8), digits)
    return repr(other if math.isfinite(other) and other != value else value / 2 - 1)


def other_text(text: str | bytes) -> str:
    """Return a literal of a text with another letter or digit, or with one more where it has none."""
    plain = text if isinstance(text, str) else text.decode("latin-1")
    places = [at for at, letter in enumerate(plain) if any(letter in alphabet for alphabet in ALPHABETS)]
    other = with_other(plain, _random.choice(places)) if places else plain + _random.choice(ALPHABETS[0])
    return repr(other if isinstance(text, str) else other.encode("latin-1"))


def with_other(text: str, at: int) -> str:
    """Return a text with another letter or digit of the same kind at a place."""
    letters = next(alphabet for alphabet in ALPHABETS if text[at] in alphabet)
    return text[:at] + _random.choice(letters.replace(text[at], "")) + text[at + 1 :]
