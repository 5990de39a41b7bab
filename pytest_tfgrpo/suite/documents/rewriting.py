"""Change one value in the text of a document, and leave comments and layout around it as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.nodes import Node
from pytest_tfgrpo.suite.documents.yaml_text import CONSTANTS, REAL

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[ -][A-Za-z0-9_]+)*")
"""Texts that need no quotes in YAML, constants left out."""


class Splice(NamedTuple):
    """A part of a text, and what takes its place."""

    start: int
    end: int
    new: str


def spliced(text: str, splices: list[Splice]) -> str:
    """Return the text with its parts replaced; those that start at one index follow each other."""
    parts, last = [], 0
    for start, end, new in sorted(splices, key=lambda one: one.start):
        parts += [text[last:start], new]
        last = end
    return "".join([*parts, text[last:]])


def yaml_block(value: Mapping[str, Json]) -> str:
    """Return an object as YAML, with a line for each key."""
    return Rewriter("", yaml=True).block(value, 0) + "\n"


class Rewriter:
    """Finds the smallest splices that make one value of a text another."""

    def __init__(self, text: str, *, yaml: bool) -> None:
        self._text = text
        self._yaml = yaml
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def splices(self, node: Node, old: Json, new: Json) -> Iterator[Splice]:
        """Yield what makes the value `old`, which stands at `node`, the value `new`."""
        if old == new and type(old) is type(new):
            return
        if (
            isinstance(old, dict)
            and isinstance(new, dict)
            and node.kind == "object"
            and old.keys() <= new.keys()
        ):
            for key, item in zip(node.keys, node.items, strict=True):
                yield from self.splices(item, old[key], new[key])
            added = {key: new[key] for key in new if key not in old}
            if added:
                yield self._insert(node, added)
        elif (
            isinstance(old, list) and isinstance(new, list) and node.kind == "array" and len(old) <= len(new)
        ):
            for item, before, after in zip(node.items, old, new, strict=False):
                yield from self.splices(item, before, after)
            if len(new) > len(old):
                yield self._insert(node, new[len(old) :])
        else:
            yield Splice(node.start, node.end, self._in_place(node, new))

    def _in_place(self, node: Node, value: Json) -> str:
        """Return a value that stands where `node` did, in its style."""
        if not node.flow and isinstance(value, dict):
            return self.block(value, node.column)
        return self.flow(value)

    def _insert(self, node: Node, added: Json) -> Splice:
        """Return the splice that adds items to a list, or keys to an object."""
        if node.flow:
            return self._insert_flow(node, added)
        indent = " " * node.column
        if isinstance(added, dict):
            lines = [self.block(added, node.column)]
        else:
            blocks = any(item.kind == "object" and not item.flow for item in node.items)
            lines = [
                "- "
                + (
                    self.block(item, node.column + 2)
                    if blocks and isinstance(item, dict)
                    else self.flow(item)
                )
                for item in added
            ]
        end = self._text.find("\n", node.end)
        place = len(self._text) if end < 0 else end - (self._text[end - 1 : end] == "\r")
        return Splice(place, place, "".join(self._newline + indent + line for line in lines))

    def _insert_flow(self, node: Node, added: Json) -> Splice:
        last = node.items[-1] if node.items else None
        spread = last is not None and "\n" in self._text[last.end : node.end]
        place = last.end if last is not None else node.start + 1
        if isinstance(added, dict):
            parts = [f"{self._key(key)}: {self.flow(value)}" for key, value in added.items()]
        else:
            deep = last is not None and "\n" in self._text[last.start : last.end]
            margin = self._margin(place) if spread else ""
            parts = [self._deep(item, margin) if deep else self.flow(item) for item in added]
        gap = self._newline + self._margin(place) if spread else " "
        return Splice(place, place, "".join("," + gap + part for part in parts) if last else ", ".join(parts))

    def _margin(self, place: int) -> str:
        """Return the white space that the line around `place` starts with."""
        line = self._text[self._text.rfind("\n", 0, place) + 1 : place]
        return line[: len(line) - len(line.lstrip())]

    def _deep(self, value: Json, margin: str) -> str:
        return json.dumps(value, indent=2, ensure_ascii=True).replace("\n", self._newline + margin)

    def block(self, value: Mapping[str, Json], column: int) -> str:
        """Return an object of YAML that starts at `column`, with a line for each key."""
        return (self._newline + " " * column).join(
            f"{self._key(k)}: {self.flow(v)}" for k, v in value.items()
        )

    def flow(self, value: Json) -> str:
        """Return a value on one line."""
        if not self._yaml:
            return json.dumps(value, ensure_ascii=not _is_shown(value))
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self._key(k)}: {self.flow(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.flow, value)) + "]"
        return _yaml_text(value) if isinstance(value, str) else json.dumps(value, allow_nan=False)

    def _key(self, key: str) -> str:
        return _yaml_text(key) if self._yaml else json.dumps(key)


def _is_shown(value: Json) -> bool:
    """Return whether all texts of a value can be printed as they are."""
    return json.dumps(value, ensure_ascii=False).isprintable()


def _yaml_text(text: str) -> str:
    if (
        PLAIN.fullmatch(text)
        and text not in CONSTANTS
        and not REAL.fullmatch(text)
        and text.lower() not in OLD
    ):
        return text
    if text.isprintable() and text:
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, text)) + '"'


OLD = ("y", "n", "yes", "no", "on", "off")
"""Words that other readers of YAML take for true and false."""


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    known = {"\n": "\\n", "\t": "\\t"}.get(character)
    return known or (
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )
