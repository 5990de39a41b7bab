"""Templates, filled in one pass, and fences around data that no text can break."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple
from unicodedata import normalize

from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import Json

MARK_DIGITS = 16
_PLACE = re.compile(r"\{\{(\w+)\}\}")


class Block(NamedTuple):
    """Data in a prompt."""

    name: str
    """What it is, in our own words; never taken from content."""
    text: str


def fenced(blocks: Sequence[Block]) -> list[str]:
    """Return the blocks of one message, each between two lines with a mark.

    The mark is a digest of the block: equal blocks are fenced alike in every message.
    """
    everything = "\n".join(block.text for block in blocks)
    marks = [mark_for([block.name, block.text], [everything]) for block in blocks]
    return [
        f"[begin {block.name} {mark}]\n{block.text}\n[end {block.name} {mark}]"
        for block, mark in zip(blocks, marks, strict=True)
    ]


def mark_for(content: Sequence[Json], texts: Iterable[str], digits: int = MARK_DIGITS) -> str:
    """Return a digest of `content`, repeated until it is in none of `texts`: no content closes a fence.

    Nor does a content with the mark in capitals, or in wide or other digits that are compatible with it.
    """
    known = [(text if text.isascii() else normalize("NFKC", text)).lower() for text in texts]
    marks = (stamp([*content, n])[:digits] for n in count())
    return next(mark for mark in marks if not any(mark in text for text in known))


def places(template: str) -> set[str]:
    """Return the names of the places ``{{name}}`` in a template."""
    return set(_PLACE.findall(template))


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return the template with its places filled in one pass: what fills one is not looked at again."""
    return _PLACE.sub(lambda place: values[place[1]], template)
