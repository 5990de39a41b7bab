"""Where the parts of a document stand in its text, so that one can be changed and the rest left as it is."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

from pytest_tfgrpo.core.wire.schema import Path
from pytest_tfgrpo.suite.documents.json_text import TOKEN


@dataclass(kw_only=True, slots=True)
class Node:
    """A value in a text."""

    kind: Literal["object", "array", "leaf"]
    """A leaf is a scalar, or an alias of YAML."""
    start: int
    end: int = 0
    """Index after its last character, comments and line ends after it left out."""
    column: int = 0
    """Characters before it on its line."""
    flow: bool = True
    """Whether brackets are around it, as everywhere in JSON."""
    keys: list[str] = field(default_factory=list)
    """Of an object, in order."""
    items: list[Node] = field(default_factory=list)
    """Values of an object or array, in order."""

    def at(self, path: Path) -> Node | None:
        """Return the value at a path; None where the text has an alias instead, or nothing."""
        node = self
        for part in path:
            place = node.keys.index(str(part)) if node.kind == "object" and part in node.keys else part
            if not isinstance(place, int) or not place < len(node.items):
                return None
            node = node.items[place]
        return node


@dataclass(slots=True)
class NodeBuilder:
    """Puts nodes together from the events of a parser."""

    root: Node | None = None
    _open: list[Node] = field(default_factory=list)
    _key: list[bool] = field(default_factory=list)
    """For each open node, whether a key comes next."""

    def begin(self, node: Node) -> None:
        """Start an object or array."""
        self._put(node)
        self._open.append(node)
        self._key.append(node.kind == "object")

    def end(self, end: int) -> None:
        """End the innermost object or array, which ends with its last value where no bracket closes it."""
        node = self._open.pop()
        self._key.pop()
        node.end = end if node.flow else max((item.end for item in node.items), default=node.start)

    def leaf(self, node: Node, text: str) -> None:
        """Add a key, whose text counts, or a scalar value."""
        if self._open and self._key[-1]:
            self._open[-1].keys.append(text)
            self._key[-1] = False
        else:
            self._put(node)

    def _put(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        self._open[-1].items.append(node)
        self._key[-1] = self._open[-1].kind == "object"


def json_nodes(text: str, offset: int = 0) -> Node | None:
    """Return the nodes of a text that is JSON from `offset` on."""
    builder = NodeBuilder()
    for match in TOKEN.finditer(text, offset):
        token = match[0]
        if token in "{[":
            builder.begin(Node(kind="object" if token == "{" else "array", start=match.start()))
        elif token in "}]":
            builder.end(match.end())
        elif token != "\n":
            leaf = Node(kind="leaf", start=match.start(), end=match.end())
            builder.leaf(leaf, json.loads(token) if token[0] == '"' else token)
    return builder.root
