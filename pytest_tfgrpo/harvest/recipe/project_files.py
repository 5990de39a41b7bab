"""Files of a project as a recipe reads them: parsed and never run; what cannot be parsed says nothing."""

from __future__ import annotations

import ast
import configparser
import tomllib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import field

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json

LARGEST = 2_000_000
"""Characters of a manifest; a longer one says nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectFiles:
    """The files of one folder of a tree, by path relative to that folder."""

    read: Callable[[str], bytes | None]
    """Returns the content of a file by its path in the tree; None where there is none."""
    names: frozenset[str]
    """Paths of all files, relative to the tree."""
    folder: str = "."
    _parsed: dict[tuple[str, str], Json] = field(default_factory=dict, repr=False, compare=False)

    def path(self, name: str) -> str:
        """Return the path in the tree of a file of this folder."""
        return name if self.folder == "." else f"{self.folder}/{name}"

    def has(self, name: str) -> bool:
        """Return whether this folder has the file."""
        return self.path(name) in self.names

    def inside(self) -> Iterator[str]:
        """Yield the files of this folder and of those below it, relative to it, sorted."""
        start = "" if self.folder == "." else self.folder + "/"
        return (name.removeprefix(start) for name in sorted(self.names) if name.startswith(start))

    def text(self, name: str) -> str:
        """Return the text of a file; empty where there is none, or it is too large."""
        path = self.path(name)
        data = self.read(path) if path in self.names else None
        if data is None or len(data) > LARGEST:
            return ""
        return data.decode("utf-8-sig", "replace")

    def toml(self, name: str) -> dict[str, Json]:
        """Return what a TOML file says; nothing where it is broken."""
        return table(self._once("toml", name, lambda text: tomllib.loads(text)))

    def json(self, name: str) -> dict[str, Json]:
        """Return the object of a JSON file; nothing where it is broken."""
        return table(self._once("json", name, lambda text: load_json(text or "{}")))

    def ini(self, name: str) -> dict[str, dict[str, str]]:
        """Return the sections of an INI file, values as they stand; nothing where it is broken."""

        def parse(text: str) -> dict[str, dict[str, str]]:
            parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
            parser.read_string(text)
            return {
                section: {key: value or "" for key, value in parser.items(section)}
                for section in parser.sections()
            }

        return self._once("ini", name, parse) or {}

    def python(self, name: str) -> ast.Module:
        """Return the syntax tree of a Python file; an empty one where it is broken."""
        found = self._once("python", name, _syntax)
        return found if isinstance(found, ast.Module) else ast.Module(body=[], type_ignores=[])

    def _once(self, kind: str, name: str, parse: Callable[[str], Json]) -> Json:
        key = kind, self.path(name)  # folders of one tree share what was parsed
        if key not in self._parsed:
            try:
                found = parse(self.text(name))
            except (ValueError, configparser.Error, SyntaxError, RecursionError, MemoryError):
                found = None
            self._parsed[key] = found
        return self._parsed[key]


def _syntax(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an old file has escapes that this Python warns of
        return ast.parse(text)


def table(value: Json) -> dict[str, Json]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def within(value: Json, *keys: str) -> dict[str, Json]:
    """Return the object that lies in `value` below `keys`; an empty one where there is none."""
    for key in keys:
        value = table(value).get(key)
    return table(value)


def words(value: Json) -> list[str]:
    """Return the texts of a list; of a text its lines; nothing of anything else."""
    if isinstance(value, str):
        return [line.strip() for line in value.splitlines() if line.strip()]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
