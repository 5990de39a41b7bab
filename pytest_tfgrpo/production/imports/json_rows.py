"""Rows of a file: JSON lines, or one JSON array, read piece by piece."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import BinaryIO

from pytest_tfgrpo.core.wire.strict import finite
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace

ROW_BYTES = 64 * 2**20
"""Largest row."""
_PIECE = 2**20
_GAP, _END = re.compile(r"[ \t\r\n,]*"), re.compile(r"[ \t\r\n]*[,\]]")
"""What is between the rows of an array, and what follows a row that is whole."""
_DECODER = json.JSONDecoder(parse_constant=finite, parse_float=finite)


def json_rows(file: BinaryIO, name: str) -> Iterator[tuple[str, Json] | RefusedSpan]:
    """Yield each row of a file called `name` with its place, as ``file:line`` or, in an array, ``file[row]``.

    What is no JSON is refused; of an array nothing is read after it. Raises OSError.
    """
    start = file.read(1)
    while start.isspace():
        start = file.read(1)
    if start == b"[":
        yield from _of_array(file, name)
    else:
        yield from _of_lines(file, name, start)


def _of_lines(file: BinaryIO, name: str, start: bytes) -> Iterator[tuple[str, Json] | RefusedSpan]:
    number = 0
    while line := start + file.readline(ROW_BYTES):
        start = b""
        number += 1
        place = f"{name}:{number}"
        if len(line) >= ROW_BYTES and not line.endswith(b"\n"):
            while (rest := file.readline(ROW_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield RefusedSpan(RefusedTrace.TOO_LARGE, place)
        elif line.strip():
            try:
                yield place, _DECODER.decode(line.decode().strip())
            except (ValueError, RecursionError):
                yield RefusedSpan(RefusedTrace.NOT_JSON, place)


def _of_array(file: BinaryIO, name: str) -> Iterator[tuple[str, Json] | RefusedSpan]:
    held, at, torn = "", 0, b""
    whole, number, piece = False, 0, _PIECE
    while True:
        gap = _GAP.match(held, at)
        at = at if gap is None else gap.end()
        if held.startswith("]", at):
            return
        found: tuple[Json, int] | None = None
        try:
            found = _DECODER.raw_decode(held, at) if at < len(held) else None
        except RecursionError:
            whole = True
        except ValueError:
            pass
        if found is not None and (_END.match(held, found[1]) or (whole and found[1] == len(held))):
            number += 1
            yield f"{name}[{number}]", found[0]
            at, piece = found[1], _PIECE
            continue
        if whole or len(held) - at > ROW_BYTES:
            reason = RefusedTrace.NOT_JSON if whole else RefusedTrace.TOO_LARGE
            yield RefusedSpan(reason, f"{name}[{number + 1}]")
            return
        data = torn + file.read(piece)
        piece = min(2 * piece, ROW_BYTES)  # so that a long row is tried a few times only
        whole = len(data) == len(torn)
        text, torn = _decoded(data, whole)
        held, at = held[at:] + text, 0


def _decoded(data: bytes, whole: bool) -> tuple[str, bytes]:
    """Return the text of `data`, and the bytes at its end that are a part of a character."""
    for cut in range(0 if whole else 4):
        try:
            end = len(data) - cut
            return data[:end].decode(), data[end:]
        except UnicodeDecodeError:
            continue
    return data.decode(errors="replace"), b""
