"""Other values in the place of literals: of the same kind and about the same size."""

from __future__ import annotations

import math
import secrets

ALPHABETS = ("bcdfghjklmnpqrstvwxyz", "aeiou", "BCDFGHJKLMNPQRSTVWXYZ", "AEIOU", "0123456789")
"""Letters and digits of which one may stand in the place of another."""
EMPTY = {"None": "0", "()": "(1,)", "[]": "[1]", "{}": "{'a': 1}"}
"""What is expected in the place of nothing."""

_random = secrets.SystemRandom()


def other_value(value: object) -> str | None:
    """Return a literal of another value of the same kind and about the same size."""
    if isinstance(value, bool):
        return repr(not value)
    if isinstance(value, int):
        near = [n for n in range(value - 9, value + 10) if n != value and (n < 0) == (value < 0)]
        far = [value + value // 5, value - value // 5]
        return repr(_random.choice(near if abs(value) < 100 else far))
    if isinstance(value, float) and math.isfinite(value):
        digits = len(repr(value).partition(".")[2]) if "e" not in repr(value) else 1
        other = round(value + max(abs(value), 1.0) * _random.uniform(0.2, 0.8), digits)
        return repr(other if math.isfinite(other) and other != value else value / 2 - 1)
    return EMPTY.get(repr(value))


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
