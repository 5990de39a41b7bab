"""Contents of objects, requested ahead: git unpacks the next ones while the reader works on those before."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import IO

from pytest_tfgrpo.harvest.history.git_answers import AskGit, GitAnswers

CONTENT = ("cat-file", "--buffer", "--batch=%(objectsize)")
PIECE = 1 << 16


class ContentQueue:
    """Contents of objects in the order in which they were wanted."""

    def __init__(self, ask: AskGit, most: int, *, cut: bool = False) -> None:
        """Objects of more than `most` bytes are left out, or `cut` to them."""
        self._ask = ask
        self._most, self._cut = most, cut
        self._batches: deque[tuple[GitAnswers, deque[str]]] = deque()

    def want(self, ids: Sequence[str]) -> None:
        """Request objects."""
        if ids:
            self._batches.append((self._ask(CONTENT, ids), deque(ids)))

    def take(self) -> bytes | None:
        """Return the next content; None for an object that is missing, damaged or too large."""
        answers, ids = self._batches[0]
        ids.popleft()
        try:
            content = _content(answers.output, self._most, cut=self._cut)
        except EOFError:  # it ended over a damaged object, and took the others with it
            answers.end()
            content = None
            if ids:
                self._batches[0] = (self._ask(CONTENT, tuple(ids)), ids)
        if not ids:
            self._batches.popleft()[0].end()
        return content

    def close(self) -> None:
        """Drop what nobody has taken."""
        while self._batches:
            self._batches.popleft()[0].end()


def _content(output: IO[bytes], most: int, *, cut: bool) -> bytes | None:
    head = output.readline()
    if not head.endswith(b"\n"):
        raise EOFError
    if head.endswith(b" missing\n"):
        return None
    size = int(head)
    if size > most:
        start = output.read(most) if cut else b""
        size -= len(start)
        while size > 0 and (piece := output.read(min(size, PIECE))):
            size -= len(piece)
        output.read(1)
        return start if cut else None
    content = output.read(size + 1)
    if len(content) <= size:
        raise EOFError
    return content[:-1]
