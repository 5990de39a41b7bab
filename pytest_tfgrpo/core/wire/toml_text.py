"""Values as TOML: the standard library reads it, does not write it, and is hard to read where it fails."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from pytest_tfgrpo.core.wire.wire import Json

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TWICE = re.compile(r"Cannot declare \((.*)\) twice \(at line ([0-9]+), .*")


def toml_text(value: Json) -> str:
    """Return a text, number, truth value, list or object as TOML; raises ValueError for null."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        pairs = (f"{toml_text(name)} = {toml_text(item)}" for name, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if value is None:
        raise ValueError("TOML has no null")
    items = [toml_text(item) for item in value]
    if sum(map(len, items)) < 90:
        return "[" + ", ".join(items) + "]"
    return "[\n" + "".join(f"  {item},\n" for item in items) + "]"


def toml_table(name: str, values: Mapping[str, Json]) -> Iterator[str]:
    """Yield the lines of a table, objects and lists of objects below it as tables of their own.

    `name` stands in its head as it is. Raises ValueError for null.
    """
    tables = {key: value for key, value in values.items() if _holds_tables(value)}
    yield f"[{name}]"
    yield from _pairs({key: value for key, value in values.items() if key not in tables})
    for key, value in tables.items():
        below = f"{name}.{_key(key)}"
        if isinstance(value, Mapping):
            yield ""
            yield from toml_table(below, value)
            continue
        for item in value:
            yield ""
            yield f"[[{below}]]"
            yield from _pairs(item)


def toml_problem(error: Exception) -> str:
    """Return what tomllib says, or what to do about a section that is there twice."""
    twice = _TWICE.fullmatch(str(error))
    if twice is None:
        return str(error)
    section = ".".join(re.findall(r"'([^']*)'", twice[1]))
    return f"line {twice[2]} begins the section [{section}] again; write its keys where it begins first"


def _holds_tables(value: Json) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _pairs(values: Mapping[str, Json]) -> Iterator[str]:
    for key, value in values.items():
        yield f"{_key(key)} = {toml_text(value)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml_text(name)
