"""Documents: JSON values from hostile text, with the line of every part."""

from __future__ import annotations

import errno
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from pytest_tfgrpo.core.files import open_plain, read_plain
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.schema import Path, extent
from pytest_tfgrpo.core.wire.wire import Json

MAX_DEPTH = 64
MAX_NODES = 1_000_000
"""Aliases count as often as they are used, so that a few lines cannot stand for billions of values."""


class Problem(NamedTuple):
    """One thing that is wrong with a file."""

    line: int
    path: Path
    message: str


class Refused(ValueError):
    """A text that is not a document."""

    def __init__(self, line: int, message: str, path: Path = ()) -> None:
        super().__init__(message)
        self.problem = Problem(line, path, message)


class Document(NamedTuple):
    """A JSON value and where its parts stand."""

    value: Json
    lines: Mapping[Path, int]
    """Line of each part by its path; of a value in an object, the line of its key."""

    def line(self, path: Path) -> int:
        """Return the line of the innermost part around `path` whose line is known."""
        return next((self.lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.lines), 1)


@dataclass(slots=True)
class _Open:
    container: Any
    path: Path
    key: str | None = None
    """Key that waits for its value."""


@dataclass(slots=True)
class Builder:
    """Puts a document together from the events of a parser; raises Refused."""

    lines: dict[Path, int] = field(default_factory=dict)
    root: Json = None
    _stack: list[_Open] = field(default_factory=list)
    _nodes: int = 0

    def begin(self, container: Json, line: int) -> None:
        """Start an object or array."""
        path = self._place(container, line)
        if len(self._stack) >= MAX_DEPTH:
            raise Refused(line, f"nested more than {MAX_DEPTH} levels deep", path)
        self._stack.append(_Open(container, path))

    def end(self) -> Json:
        """End the innermost object or array, and return it."""
        return self._stack.pop().container

    def scalar(self, value: Json, line: int) -> None:
        """Add a key or a scalar value."""
        if isinstance(value, str) and not value.isascii():
            self._check_text(value, line)
        if self._stack and self._stack[-1].key is None and isinstance(self._stack[-1].container, dict):
            self._key(value, line)
        else:
            self._place(value, line)

    def alias(self, value: Json, line: int) -> None:
        """Add a value that stands elsewhere in the document, too."""
        nodes, depth = extent(value)
        path = self._place(value, line, nodes)
        if len(self._stack) + depth > MAX_DEPTH:
            raise Refused(line, f"nested more than {MAX_DEPTH} levels deep", path)

    def _check_text(self, text: str, line: int) -> None:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Refused(line, f"{short(text)} holds half a surrogate pair", self.here()) from None

    def here(self) -> Path:
        """Return the path of the value that comes next."""
        if not self._stack:
            return ()
        top = self._stack[-1]
        if isinstance(top.container, list):
            return (*top.path, len(top.container))
        return top.path if top.key is None else (*top.path, top.key)

    def _key(self, key: Json, line: int) -> None:
        top = self._stack[-1]
        if not isinstance(key, str):
            raise Refused(line, f"key {short(key)} is not a string; quote it", top.path)
        path = (*top.path, key)
        if key in top.container:
            raise Refused(line, f"duplicate key {short(key)}; first on line {self.lines[path]}", path)
        top.key = key
        self.lines[path] = line

    def _place(self, value: Json, line: int, nodes: int = 1) -> Path:
        path = self.here()
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise Refused(line, f"holds more than {MAX_NODES} values", path)
        if not self._stack:
            self.root = value
        elif isinstance((top := self._stack[-1]).container, list):
            top.container.append(value)
        elif top.key is None:
            raise Refused(line, "a key must be a string", path)
        else:
            top.container[top.key] = value
            top.key = None
        self.lines.setdefault(path, line)
        return path


def read_text(path: FilePath, max_bytes: int) -> str:
    """Return the text of the file `path`, which is UTF-8 with or without byte order mark; raises Refused."""
    try:
        data = read_plain(path, max_bytes)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise Refused(1, f"larger than {max_bytes} bytes; split the file") from None
        raise _unreadable(error) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise Refused(1, "not UTF-8 but UTF-16; save the file as UTF-8") from None
        # with a byte order mark the position is that of the text after it
        raise _not_utf8(error, data.count(b"\n", 0, error.start) + 1) from None


def read_lines(path: FilePath, max_bytes: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of the text of the file `path` with their numbers, as they are read; raises Refused.

    A line has at most `max_bytes`, the file any number.
    """
    number = 0
    try:
        with open_plain(path) as file:
            while data := file.readline(max_bytes + 1):
                number += 1
                data = data.removesuffix(b"\n")
                if len(data) > max_bytes:
                    raise Refused(number, f"the line is longer than {max_bytes} bytes")
                yield number, (data.removeprefix(BOM_UTF8) if number == 1 else data).decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(error, number) from None
    except OSError as error:
        raise _unreadable(error) from None


def _unreadable(error: OSError) -> Refused:
    return Refused(1, f"cannot be read: {error.strerror}")


def _not_utf8(error: UnicodeDecodeError, line: int) -> Refused:
    return Refused(line, f"not UTF-8: byte 0x{error.object[error.start]:02x}; save the file as UTF-8")
