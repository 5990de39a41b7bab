"""Contents of objects, asked for ahead: git unpacks the next ones while the reader works on those before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import IO

from pytest_tfgrpo.patterns.git_process import CHUNK, GitProcess

CONTENT = ("cat-file", "--batch=%(objectsize)")
PIECE = 1 << 16


class ContentQueue:
    """Contents of objects in the order in which they were wanted."""

    def __init__(self, process: GitProcess, most: int) -> None:
        """`process` runs CONTENT, for this queue alone; objects of more than `most` bytes are left out."""
        self._process = process
        self._most = most
        self._wanted: deque[str] = deque()
        self._under_way: deque[str] = deque()

    def want(self, ids: Iterable[str]) -> None:
        """Ask for objects."""
        self._wanted.extend(ids)
        self._send()

    def take(self) -> bytes | None:
        """Return the next content; None for an object that is missing, damaged or too large."""
        self._under_way.popleft()
        try:
            content = _content(self._process.output, self._most)
        except EOFError:  # it ended over a damaged object, and took the others with it
            self.close()
            content = None
        self._send()
        return content

    def close(self) -> None:
        """Drop the answers that are under way; what was asked for is asked for again."""
        self._process.end()
        self._wanted.extendleft(reversed(self._under_way))
        self._under_way.clear()

    def _send(self) -> None:
        while self._wanted and len(self._under_way) <= CHUNK:
            chunk = [self._wanted.popleft() for _ in range(min(CHUNK, len(self._wanted)))]
            self._under_way.extend(chunk)
            self._process.send("\n".join((*chunk, "")).encode())


def _content(output: IO[bytes], most: int) -> bytes | None:
    head = output.readline()
    if not head.endswith(b"\n"):
        raise EOFError
    if head.endswith(b" missing\n"):
        return None
    size = int(head)
    if size > most:
        while size > 0 and (piece := output.read(min(size, PIECE))):
            size -= len(piece)
        output.read(1)
        return None
    content = output.read(size + 1)
    if len(content) <= size:
        raise EOFError
    return content[:-1]
