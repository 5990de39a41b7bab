"""YAML from hostile text, read as JSON values; the only file that imports ``yaml``.

Built on the parser's events alone, so that nothing is converted but null, true, false and decimal numbers:
``no``, dates, octal and sexagesimal numbers, ``.inf`` and ``<<`` stay texts. Tags and second documents are
refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.document import Builder, Document, Refused
from pytest_tfgrpo.suite.documents.nodes import Node, NodeBuilder

if TYPE_CHECKING:
    from yaml.error import YAMLError

CONSTANTS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
REAL = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def parse_yaml(text: str, *, plain: Callable[[str], Json] | None = None) -> Document:
    """Return the document that `text` is; raises Refused.

    `plain` returns what an unquoted scalar stands for, where that is not what it is here.
    """
    import yaml

    reader = _Reader(plain)
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            reader.take(event)
    except yaml.YAMLError as error:
        raise _explain(error, text) from None
    except Refused:
        raise
    except (OverflowError, ValueError):  # the parser without C, at an escape beyond Unicode
        raise Refused(1, "not YAML: an escape names no character") from None
    return Document(reader.builder.root, reader.builder.lines)


def yaml_nodes(text: str) -> Node | None:
    """Return where the parts of a text stand, which `parse_yaml` has accepted."""
    import yaml

    builder = NodeBuilder()
    event: Any
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        name, start, end = type(event).__name__, event.start_mark, event.end_mark.index
        if name in ("MappingStartEvent", "SequenceStartEvent"):
            kind: Literal["object", "array"] = "object" if name == "MappingStartEvent" else "array"
            builder.begin(
                Node(kind=kind, start=start.index, column=start.column, flow=bool(event.flow_style))
            )
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            builder.end(end)
        elif name in ("ScalarEvent", "AliasEvent"):
            end = start.index + len(text[start.index : end].rstrip())  # a block text ends with its lines
            builder.leaf(Node(kind="leaf", start=start.index, end=end), getattr(event, "value", ""))
    return builder.root


def _explain(error: YAMLError, text: str) -> Refused:
    from yaml.error import MarkedYAMLError
    from yaml.reader import ReaderError

    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        return Refused(error.problem_mark.line + 1, f"not YAML: {error.problem}")
    if isinstance(error, ReaderError) and isinstance(error.character, int):
        before = text.partition(chr(error.character))[0]
        return Refused(before.count("\n") + 1, f"not YAML: character U+{error.character:04X}; escape it")
    return Refused(1, f"not YAML: {error}")


class _Reader:
    """Takes the events of one YAML document."""

    def __init__(self, plain: Callable[[str], Json] | None) -> None:
        self.builder = Builder()
        self._other = plain
        self._anchors: dict[str, Json] = {}
        self._open: list[str | None] = []
        self._documents = 0

    def take(self, event: Any) -> None:
        name, line = type(event).__name__, event.start_mark.line + 1
        if name in ("MappingStartEvent", "SequenceStartEvent"):
            self._check_tag(event, line)
            self.builder.begin({} if name == "MappingStartEvent" else [], line)
            self._open.append(event.anchor)
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            self._anchor(self._open.pop(), self.builder.end())
        elif name == "ScalarEvent":
            self._check_tag(event, line)
            value = self._plain(event.value, line) if event.implicit[0] else event.value
            self.builder.scalar(value, line)
            self._anchor(event.anchor, value)
        elif name == "AliasEvent":
            if event.anchor not in self._anchors:
                raise Refused(line, f"alias {short(event.anchor)} refers to no anchor before it")
            self.builder.alias(self._anchors[event.anchor], line)
        elif name == "DocumentStartEvent":
            self._documents += 1
            if self._documents > 1:
                raise Refused(line, "a second document; write one list instead")

    def _anchor(self, name: str | None, value: Json) -> None:
        if name is not None:
            self._anchors[name] = value

    def _check_tag(self, event: Any, line: int) -> None:
        if event.tag is not None:
            raise Refused(line, f"tag {short(event.tag)} is not supported; quote a text that starts with '!'")

    def _plain(self, text: str, line: int) -> Json:
        """Return what an unquoted scalar stands for."""
        if self._other is not None:
            return self._other(text)
        if text in CONSTANTS:
            return CONSTANTS[text]
        if not REAL.fullmatch(text):
            return text
        number = float(text)
        if not math.isfinite(number):
            raise Refused(line, f"{short(text)} is not a finite number; quote it", self.builder.here())
        return int(text) if INTEGER.fullmatch(text) else number
