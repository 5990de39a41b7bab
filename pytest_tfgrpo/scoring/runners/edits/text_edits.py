"""Edits of tests in any language, by line: another text or number where a line looks as if it asserts."""

from __future__ import annotations

import ast
import re
import secrets
from collections.abc import Iterator

from pytest_tfgrpo.scoring.runners.edits.edit import Edit
from pytest_tfgrpo.scoring.runners.edits.edits import EXPECTED, OTHERS, EditChoice, in_turns
from pytest_tfgrpo.scoring.runners.edits.other_values import ALPHABETS, other_value, with_other
from pytest_tfgrpo.scoring.runners.edits.other_words import TOKEN, Words

ASSERTS = re.compile(rb"assert|expect|should|equal|\bis\(|\bt\.", re.IGNORECASE)
LITERAL = re.compile(rb"'[^'\\\n]+'|\"[^\"\\\n]+\"|(?<![\w.$])\d{1,15}(?:\.\d{1,9})?(?![\w.])")
_random = secrets.SystemRandom()


def text_choices(data: bytes, before: bytes) -> list[EditChoice]:
    """Return edits of a file of tests; only a run says what they make fail.

    `before` is the file without the tests of interest: its lines show less.
    """
    try:
        data.decode()
    except UnicodeDecodeError:
        return []
    old = {row.strip() for row in before.splitlines()}
    rows = data.splitlines()
    new = [row.strip() not in old for row in rows]
    near = b"\n".join(row for row, is_new in zip(rows, new, strict=True) if is_new)
    words = Words(data, near.decode())
    return in_turns(
        choice for at, row in enumerate(rows) for choice in _of_row(at, row, new=new[at], words=words)
    )


def _of_row(at: int, row: bytes, *, new: bool, words: Words) -> Iterator[EditChoice]:
    asserts = ASSERTS.search(row) is not None
    found = list(LITERAL.finditer(row)) if new or asserts else []
    for match in found:
        written = match[0].decode()
        told = EXPECTED if new and asserts and match is found[-1] else OTHERS
        other = _other(written, words)
        if other is not None:
            edit = Edit((at, match.start()), (at, match.end()), other.encode())
            yield EditChoice([edit], told, words.odd(written, other))


def _other(written: str, words: Words) -> str | None:
    """Return another literal in the place of one; None where it has no letter or digit."""
    if written[0] not in "'\"":
        return other_value(ast.literal_eval(written.lstrip("0") or "0"), words)
    tokens = list(TOKEN.finditer(written))
    found = _random.choice([token for token in tokens if token[0].isdigit()] or tokens or [None])
    if found is not None and (word := words.other(found[0])) is not None:
        return written[: found.start()] + word + written[found.end() :]
    places = [at for at, letter in enumerate(written) if any(letter in alphabet for alphabet in ALPHABETS)]
    return with_other(written, _random.choice(places)) if places else None
