"""Edits of literals: another value, or a part of it exchanged, written as the test writes its own."""

from __future__ import annotations

import ast
import re
import secrets
from collections.abc import Iterable, Sequence

from pytest_tfgrpo.scoring.runners.edits.edit import Edit, Spot, end_of, replaced, start_of
from pytest_tfgrpo.scoring.runners.edits.other_values import (
    ALPHABETS,
    other_text,
    other_value,
    with_other,
)
from pytest_tfgrpo.scoring.runners.edits.other_words import TOKEN, Words, with_other_digit

SIMILAR = 4
"""How many other texts are drawn in the place of one, of which the least odd is taken."""
NUMBERS = 0.75
"""How often a number is exchanged in a text that has any: another word is seen sooner."""
_random = secrets.SystemRandom()


class LiteralEdits:
    """What can stand in the place of the literals of one test."""

    def __init__(self, lines: Sequence[bytes], words: Words) -> None:
        """`lines` are those of the test's file, `words` what its own are exchanged for."""
        self._lines = lines
        self._words = words

    def of(self, node: ast.expr) -> Edit | None:
        """Return another value in the place of a literal, or of a part of it; None where none is known."""
        parts = _values_of(node) if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        if parts:
            return self._least_odd([edit for part in parts if (edit := self.of(part)) is not None])
        value = ast.literal_eval(node)
        if isinstance(value, str | bytes):
            others = [self._with_other_word(node, value) for _ in range(SIMILAR)]
            return self._least_odd([replaced(node, other) for other in others if other]) or self.with_letter(
                node
            )
        based = self._in_base(node, value)
        text = based or other_value(value, self._words)
        return None if text is None else replaced(node, text)

    def odd(self, edits: Iterable[Edit]) -> int:
        """Return how plainly edits are not a person's."""
        return max(self._words.odd(self.text(e.start, e.end).decode(), e.text.decode()) for e in edits)

    def _least_odd(self, edits: list[Edit]) -> Edit | None:
        """Return one of the edits that are the least odd."""
        _random.shuffle(edits)
        return min(edits, key=lambda edit: self.odd([edit]), default=None)

    def _in_base(self, node: ast.expr, value: object) -> str:
        """Return another number as it is written, where that is to another base; nothing elsewhere."""
        text = self.text(start_of(node), end_of(node)).decode()
        match = re.fullmatch(r"(-?0[box])(\w+)", text, re.IGNORECASE)
        if match is None or not isinstance(value, int):
            return ""
        digits = [found for found in TOKEN.finditer(match[2]) if found[0].isdigit() and len(found[0]) > 1]
        if not digits:
            return ""
        found = _random.choice(digits)
        other = _random.choice(sorted(with_other_digit(found[0])))
        return match[1] + match[2][: found.start()] + other + match[2][found.end() :]

    def _with_other_word(self, node: ast.expr, value: str | bytes) -> str:
        """Return a literal with another number or word, a number sooner; nothing where none is known."""
        text = self.text(start_of(node), end_of(node)).decode()
        begin = text.find(text[-1]) + 1
        tokens = [one for one in TOKEN.finditer(text, begin) if text[one.start() - 1] != "\\"]
        numbers = [one for one in tokens if one[0].isdigit()]
        tokens = numbers if numbers and _random.random() < NUMBERS else tokens
        if not tokens:
            return ""
        found = _random.choice(tokens)
        other = self._words.other(found[0])
        return _checked(f"{text[: found.start()]}{other}{text[found.end() :]}", value) if other else ""

    def with_letter(self, node: ast.expr) -> Edit:
        """Return a text with another letter or digit, as it is written where that is plain."""
        value = ast.literal_eval(node)
        return replaced(node, self._with_other_letter(node, value) or other_text(value))

    def _with_other_letter(self, node: ast.expr, value: str | bytes) -> str:
        """Return a literal as it is written but for one letter or digit; nothing where that is not plain."""
        text = self.text(start_of(node), end_of(node)).decode()
        written = range(text.find(text[-1]) + 1, len(text))
        places = [at for at in written if text[at - 1] != "\\" and any(text[at] in a for a in ALPHABETS)]
        return _checked(with_other(text, _random.choice(places)), value) if places else ""

    def text(self, start: Spot, end: Spot) -> bytes:
        """Return the text from one place to another."""
        rows = [*self._lines[start[0] : end[0] + 1]]
        rows[-1] = rows[-1][: end[1]]
        return b"".join(rows)[start[1] :]


def _checked(literal: str, value: str | bytes) -> str:
    """Return a literal of another text than a value; nothing where it is none."""
    try:
        other = ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        return ""
    return literal if type(other) is type(value) and other != value else ""


def is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _values_of(node: ast.Dict) -> list[ast.expr]:
    """Return the values of a mapping; of a key that is there twice, the last."""
    return list(
        {ast.dump(key): value for key, value in zip(node.keys, node.values, strict=True) if key}.values()
    )
