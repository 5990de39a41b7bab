"""Fences: blocks of data in a prompt, between marks that no text in them can contain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

from pytest_tfgrpo.core.stamp import stamp

MARK_DIGITS = 16
_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")


class Block(NamedTuple):
    """Data in a prompt."""

    name: str
    """What it is, in our own words; never taken from content."""
    text: str


def fenced(blocks: Sequence[Block]) -> list[str]:
    """Return the blocks of one message, each between two lines with a mark.

    The mark is a digest of the block, made anew until no block of the message contains it: equal blocks are
    fenced alike in every message, and no content, whoever wrote it, can close a fence.
    """
    everything = "\n".join(block.text for block in blocks).lower()
    return [_fence(block, everything) for block in blocks]


def _fence(block: Block, everything: str) -> str:
    marks = (stamp([block.name, block.text, n])[:MARK_DIGITS] for n in count())
    mark = next(mark for mark in marks if mark not in everything)
    return f"[begin {block.name} {mark}]\n{block.text}\n[end {block.name} {mark}]"


def places(template: str) -> set[str]:
    """Return the names of the places ``{{name}}`` in a template."""
    return set(_PLACE.findall(template))


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return the template with its places filled in one pass: what fills one is not looked at again."""
    return _PLACE.sub(lambda place: values[place[1]], template)
