"""Texts within a text that are written in base64, each with its place."""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from typing import NamedTuple

from pytest_tfgrpo.privacy.byte_runs import RANDOM, one_byte, runs

_SHORTEST = 11
"""Characters of base64 that hold eight bytes, as the shortest telephone number has."""
_LONGEST = 1_000_000


class Base64Text(NamedTuple):
    """What a run of base64 says."""

    start: int
    end: int
    text: str


def base64_texts(text: str) -> Iterator[Base64Text]:
    """Yield the runs of base64 in `text`, with their padding, that hold readable text."""
    for start, end in runs(one_byte(text).translate(RANDOM), _SHORTEST):
        last = end
        while last < len(text) and last - end < 2 and text[last] == "=":
            last += 1
        slash = text.rfind("/", start, end)
        for first in (start, slash + 1) if slash >= 0 else (start,):  # the run may go on from a path
            if found := _decoded(text[first : min(end, first + _LONGEST)]):
                yield Base64Text(first, last, found)
                break


def _decoded(run: str) -> str:
    """Return what a run of base64 without padding holds, where that is printable text; else nothing."""
    if len(run) < _SHORTEST or len(run) % 4 == 1 or not _may_be_text(run):
        return ""
    try:
        found = binascii.a2b_base64(run + "=" * (-len(run) % 4)).decode()
    except ValueError:  # also of UTF-8
        return ""
    return found if found.replace("\n", " ").replace("\r", " ").replace("\t", " ").isprintable() else ""


def _may_be_text(run: str) -> bool:
    """Return whether the first bytes can be those of a text: most words of a language fail here."""
    try:
        return all(byte >= 32 or byte in b"\t\n\r" for byte in binascii.a2b_base64(run[:8]))
    except ValueError:
        return False
