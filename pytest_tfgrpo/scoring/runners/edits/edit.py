"""An edit of a file in Python: other text in the place of a node."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass

Spot: TypeAlias = tuple[int, int]
"""A row from 0, and a column in bytes, as `ast` counts them."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Other text from one place of a file to another."""

    start: Spot
    end: Spot
    text: bytes

    def moved(self, rows: int) -> Edit:
        """Return the edit as many rows further down."""
        start, end = self.start, self.end
        return Edit((start[0] + rows, start[1]), (end[0] + rows, end[1]), self.text)


def edited(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Return a file with edits that do not overlap."""
    lines = [*data.splitlines(keepends=True), b""]
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        (row, column), (last, last_column) = edit.start, edit.end
        lines[row : last + 1] = [lines[row][:column] + edit.text + lines[last][last_column:]]
    return b"".join(lines)


@lru_cache(maxsize=16)
def lines_of(data: bytes) -> tuple[bytes, ...]:
    """Return the rows of a file with their ends, and an empty one; kept for its next test."""
    return (*data.splitlines(keepends=True), b"")


def start_of(node: ast.expr) -> Spot:
    return node.lineno - 1, node.col_offset


def end_of(node: ast.expr) -> Spot:
    return (node.end_lineno or 0) - 1, node.end_col_offset or 0


def replaced(node: ast.expr, text: str) -> Edit:
    """Return other text in the place of a node."""
    return Edit(start_of(node), end_of(node), text.encode())
