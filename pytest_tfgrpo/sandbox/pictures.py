"""Pictures: those in a workspace that an answer names, kept with the rollout for who reads its answer."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pytest_tfgrpo.core.records import Picture
from pytest_tfgrpo.sandbox.paths import read_untrusted

MOST, NAMED_MOST = 3, 20
"""Pictures of one answer that are kept, and names in it that are looked up."""
MAX_BYTES = 128_000
"""Of one picture."""
MAX_PIXELS = 25_000_000
"""A browser needs four bytes for each, however small the file is."""
SEARCHED = 200_000
"""Characters of an answer in which names are looked for."""
_END = re.compile(r"\.(?:png|jpe?g|gif|webp)(?!\w)", re.IGNORECASE)
_NAME = re.compile(r"[\w./-]+\Z")
_NAME_CHARS = 200
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_SIZES_IN_JPEG = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def names_pictures(answer: str) -> bool:
    """Return whether an answer may name a picture."""
    return _END.search(answer, 0, SEARCHED) is not None


def pictures_named(answer: str, folder: Path) -> tuple[Picture, ...]:
    """Return the pictures in a folder that an agent wrote to which its answer names, in that order.

    Of one that cannot be kept there is but the reason. Names of what is not there are passed over.
    """
    kept: list[Picture] = []
    for name in islice(_names(answer[:SEARCHED], str(folder)), NAMED_MOST):
        picture = _picture(folder, name, full=len([one for one in kept if one.data]) >= MOST)
        if picture is not None:
            kept.append(picture)
    return tuple(kept)


def _names(answer: str, folder: str) -> Iterator[str]:
    seen: set[str] = set()
    for end in _END.finditer(answer):
        start = _NAME.search(answer, max(0, end.start() - _NAME_CHARS), end.start())
        if start is None:
            continue
        name = (start[0] + end[0]).removeprefix(f"{folder}/").removeprefix("./")
        if name not in seen:
            seen.add(name)
            yield name


def _picture(folder: Path, name: str, *, full: bool) -> Picture | None:
    try:
        data = read_untrusted(folder, name, MAX_BYTES)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return Picture(name=name, why=f"not kept: {error}")
    if full:
        return Picture(name=name, why=f"not kept: the answer names more than {MOST} pictures")
    try:
        type_, width, height = measured(data)
    except (ValueError, IndexError, struct.error):
        return Picture(name=name, why="not kept: it is no PNG, JPEG, GIF or WebP picture")
    if width * height > MAX_PIXELS:
        return Picture(name=name, why=f"not kept: {width} x {height} pixels are more than {MAX_PIXELS:,}")
    return Picture(name=name, type=type_, data=base64.b64encode(data).decode("ascii"))


def measured(data: bytes) -> tuple[str, int, int]:
    """Return media type, width and height of a picture by its content; raises ValueError, struct.error."""
    if data.startswith(_PNG):
        return "image/png", *struct.unpack(">II", data[16:24])
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif", *struct.unpack("<HH", data[6:10])
    if data.startswith(_JPEG):
        return "image/jpeg", *_size_of_jpeg(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp", *_size_of_webp(data)
    raise ValueError("no picture")


def _size_of_jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while data[at] == 0xFF:
        length = int.from_bytes(data[at + 2 : at + 4])
        if data[at + 1] in _SIZES_IN_JPEG:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + length
    raise ValueError("no size in it")


def _size_of_webp(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            (bits,) = struct.unpack("<I", data[21:25])
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case _:
            raise ValueError("no size in it")
