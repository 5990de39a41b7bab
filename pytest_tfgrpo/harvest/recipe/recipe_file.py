"""The recipe file ``harvest.toml``: how tests run, reviewed by a person; what it says beats every guess."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.schema import Violation, violations
from pytest_tfgrpo.core.wire.wire import Json, from_wire
from pytest_tfgrpo.harvest.recipe.requirement_text import REQUIREMENT
from pytest_tfgrpo.scoring.runners.javascript.flags import node_flags

RECIPE_FILE = "harvest.toml"
LARGEST = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderRecipe:
    """What ``harvest.toml`` says of one folder; None where it leaves a value to be guessed."""

    folder: str
    runner: str | None = None
    run: tuple[str, ...] | None = None
    python: str | None = None
    setup: tuple[tuple[str, ...], ...] | None = None
    dependencies: tuple[str, ...] | None = None
    files: tuple[str, ...] | None = None
    paths: tuple[str, ...] | None = None
    """Relative to the folder."""
    env: Mapping[str, str] | None = None
    tests: tuple[str, ...] | None = None
    protected: tuple[str, ...] | None = None


def read_recipes(path: Path) -> tuple[FolderRecipe, ...]:
    """Return the recipes of a file; raises SettingError naming file, line, key and value."""
    try:
        text = read_plain(path, LARGEST).decode("utf-8")
    except (OSError, ValueError) as error:
        raise SettingError(f"{path}: cannot read the recipe: {error}") from error
    return parse_recipes(text, str(path))


def parse_recipes(text: str, source: str = RECIPE_FILE) -> tuple[FolderRecipe, ...]:
    """Return the recipes of a file's text; raises SettingError naming file, line, key and value."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingError(f"{source}: not TOML: {error}; correct it") from None
    found = list(_misplaced(data)) or violations("harvest-file", data) or list(_faults(data))
    if found:
        lines = (f"{source}:{_line(text, v.path)}: {v.pointer or '/'}: {v.message}" for v in found)
        raise SettingError("\n".join(lines))
    folders = data["folder"]
    return tuple(from_wire(FolderRecipe, {"folder": name, **folders[name]}) for name in sorted(folders))


def _misplaced(data: Json) -> Iterator[Violation]:
    """Find what the schema would name less plainly: keys above all folders, and folders that are none."""
    for key in data:
        if key in FolderRecipe.__dataclass_fields__ and key != "folder":
            yield Violation((key,), f'the key {key!r} belongs below a folder\'s line such as [folder."."]')
    folders = data.get("folder")
    for name in folders if isinstance(folders, dict) else ():
        if name != "." and (name.startswith("/") or "\\" in name or {"", ".", ".."} & {*name.split("/")}):
            yield Violation(
                ("folder", name),
                f"{name!r} is not a folder of the repository; write '.' or a path such as 'web/api'",
            )


def _faults(data: Json) -> Iterator[Violation]:
    for name, recipe in data["folder"].items():
        place = ("folder", name)
        run, runner = recipe.get("run"), recipe.get("runner")
        if runner == "command" and not any("{report}" in word for word in run or ()):
            yield Violation(
                (*place, "run" if run else "runner"),
                f"the runner 'command' needs a key run whose words name {{report}}, got {run!r}",
            )
        if run and runner == "node-test":
            try:
                node_flags(run)
            except ValueError as error:
                yield Violation((*place, "run"), str(error))
        elif run and runner != "command":
            yield Violation(
                (*place, "run"), f"{run!r} is only for the runners 'command' and 'node-test'; remove it"
            )
        for number, item in enumerate(recipe.get("dependencies", ())):
            if not REQUIREMENT.fullmatch(item.strip()) or "\n" in item:
                yield Violation(
                    (*place, "dependencies", number),
                    f"{item!r} is not a requirement by name; write 'attrs>=22', or a setup command",
                )


def _line(text: str, path: tuple[str | int, ...]) -> int:
    """Return the line on which a key stands, or that of its table."""
    names = [part for part in path if isinstance(part, str)]
    table: list[str] = []
    best, depth = 1, 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?$", line):
            table = _keys(header[1])
            here = table
        elif assigned := re.match(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*'|\s*\.\s*)+)\s*=""", line):
            here = [*table, *_keys(assigned[1])]
        else:
            continue
        if len(here) > depth and here == names[: len(here)]:
            best, depth = number, len(here)
    return best


def _keys(text: str) -> list[str]:
    found = re.findall(r"""([\w-]+)|"([^"]*)"|'([^']*)'""", text)
    return [bare or double or single for bare, double, single in found]
