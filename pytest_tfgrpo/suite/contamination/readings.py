"""Readings: what a text says once its escapes and codes are undone."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterator
from contextlib import suppress

from pytest_tfgrpo.privacy.unescape import unescaped

_CODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{6,}={0,6}(?![A-Za-z0-9+/_=-])")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}){4,}")
_BASE32 = re.compile(r"[A-Z2-7]{8,}={0,6}|[a-z2-7]{8,}={0,6}")
_LEET = (str.maketrans("0134578@$", "oieastbas"), str.maketrans("0134578@$", "oleastbas"))
_SPELLED = re.compile(r"(?<![^\W_])[^\W_]*(?:[0-9@$][^\W0-9_]|[^\W0-9_][0-9@$])[\w@$]*")


def readings(text: str) -> Iterator[str]:
    """Yield a text as it stands, without escapes, and what it has in bytes as hex, in base64 or base32."""
    yield text
    inner = unescaped(text)
    if inner is not None:
        yield inner.text
    for match in _CODED.finditer(text):
        for data in _decoded(match[0]):
            try:
                plain = data.decode()
            except UnicodeDecodeError:
                continue
            if plain.isprintable():
                yield plain


def rotated(text: str) -> str:
    """Return a text with each Latin letter exchanged for that 13 places on."""
    return codecs.encode(text, "rot13")


def without_leet(folded: str) -> Iterator[str]:
    """Yield a folded text with letters for the digits and signs within words; numbers stay what they are."""
    for table in _LEET:
        spelled = _SPELLED.sub(lambda match, table=table: match[0].translate(table), folded)  # type: ignore[misc]
        if spelled != folded:
            yield spelled


def all_leet(folded: str) -> Iterator[str]:
    """Yield a folded text with letters for all digits and signs that look like some."""
    for table in _LEET:
        spelled = folded.translate(table)
        if spelled != folded:
            yield spelled


def _decoded(coded: str) -> Iterator[bytes]:
    if _HEX.fullmatch(coded):
        yield bytes.fromhex(coded)
        return
    bare = coded.rstrip("=")
    if _BASE32.fullmatch(coded):
        with suppress(binascii.Error):
            yield base64.b32decode(bare.upper() + "=" * (-len(bare) % 8))
    plain = bare.replace("-", "+").replace("_", "/")
    if len(plain) % 4 != 1:
        yield base64.b64decode(plain + "=" * (-len(plain) % 4))
