"""A file of gzip members that grows by one with each batch, so that `zcat` reads it whole.

A process that is killed leaves at most one member that is not whole, at the end: the next one cuts it off,
and its events come again.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import remove_leftovers, sync_folder, write_atomic

_CHUNK = 1 << 20
_GZIP = 16 + zlib.MAX_WBITS


def append(path: Path, lines: Sequence[bytes]) -> int:
    """Add lines, durable when this returns, and return the size of the file; raises OSError.

    Where that fails, the file is as it was, as far as the disk lets it.
    """
    new = not path.exists()
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(handle).st_size
        try:
            with open(handle, "ab", closefd=False) as file:
                file.write(gzip.compress(b"".join(lines), 6, mtime=0))
            os.fsync(handle)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(handle, size)
            raise
        if new:
            sync_folder(path.parent)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def members(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Yield where each whole member ends, and its lines, up to one that a killed process left unfinished.

    Raises OSError, and StoreError for what is no gzip.
    """
    end = read = 0
    with path.open("rb") as file:
        chunk = b""
        while True:
            unpack, parts = zlib.decompressobj(_GZIP), []
            while not unpack.eof:
                if not chunk:
                    chunk = file.read(_CHUNK)
                    read += len(chunk)
                if not chunk or (end == read - len(chunk) and _is_blank(chunk)):
                    return
                try:
                    parts.append(unpack.decompress(chunk))
                except zlib.error as error:
                    raise StoreError(
                        f"archive {path}: what begins at byte {end:,} is damaged ({error}); move the file "
                        "away, and what comes goes to a new one"
                    ) from None
                chunk = unpack.unused_data
            end = read - len(chunk)
            yield end, b"".join(parts).splitlines(keepends=True)


def _is_blank(chunk: bytes) -> bool:
    """Return whether a chunk holds zeros alone: room that a file system gave, which a crash left empty."""
    return chunk[:1] == b"\0" and not chunk.strip(b"\0")


def repair(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, and cut off what is not whole at its end; raises OSError and StoreError."""
    end = 0
    for end, lines in members(path):  # noqa: B007 - where the last one ended
        yield from lines
    if end < path.stat().st_size:
        os.truncate(path, end)


def rewrite(path: Path, stays: Callable[[bytes], bool]) -> int:
    """Write a file again without some lines, whole or not at all; return how many those were.

    Raises OSError and StoreError.
    """
    gone = sum(not stays(line) for _, lines in members(path) for line in lines)
    if not gone:
        return 0
    kept = ([line for line in lines if stays(line)] for _, lines in members(path))
    if any(stays(line) for _, lines in members(path) for line in lines):
        write_atomic(path, (gzip.compress(b"".join(lines), 6, mtime=0) for lines in kept if lines))
    else:
        drop(path)
    return gone


def drop(path: Path) -> None:
    """Remove a file with what a killed process left of it, and empty what a link names; raises OSError."""
    remove_leftovers(path.resolve())
    with suppress(FileNotFoundError):
        os.truncate(path, 0)
    path.unlink()
    sync_folder(path.parent)
