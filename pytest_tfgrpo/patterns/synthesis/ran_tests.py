"""Commands that run tests, as people and agents write them: read as words, and never run as they stand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import PurePosixPath

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.harvest.recipe.requirement_text import beside
from pytest_tfgrpo.scoring.runners.javascript.flags import kept_flags

LONGEST = 2000
"""Characters of a command that is looked at."""
SHELL = re.compile(r"[;|&`$<>\n\r\0]")
"""What a shell would do more with than run one program."""
VARIABLES = frozenset({"CI", "LANG", "LC_ALL", "NODE_ENV", "PYTHONHASHSEED", "TZ"})
"""What a command may set: nothing that names a program or a module."""
ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>[\w./:+-]*)")
LAUNCHERS = (("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("pnpm", "exec"), ("npx",))
"""Programs that run another one."""
RUNNERS: Mapping[tuple[str, ...], str] = {
    ("pytest",): "pytest",
    ("py.test",): "pytest",
    ("python", "-m", "pytest"): "pytest",
    ("python", "-m", "unittest"): "pytest",
    ("tox",): "pytest",
    ("nox",): "pytest",
    ("vitest",): "vitest",
    ("jest",): "jest",
    ("node", "--test"): "node-test",
    **{(program, *verb): "" for program in ("npm", "pnpm", "yarn") for verb in (("test",), ("run", "test"))},
}
"""Programs and verbs that run tests, with the runner in their place; "": the manifest names it."""
BLOCK = re.compile(r"^```(?:sh|bash|shell|console)[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, kw_only=True, slots=True)
class TestCommand:
    """What counts of a command that runs tests."""

    __test__ = False  # no class of tests

    runner: str
    """In the table of runners; empty: what the manifest of its folder names."""
    folder: str = "."
    """Where it ran, relative to the repository."""
    names: tuple[str, ...] = ()
    """Paths that its words may name, relative to the repository."""
    flags: tuple[str, ...] = ()
    """Of node."""
    variables: Mapping[str, str] = field(default_factory=dict)


def read_command(text: str, folder: str = "") -> TestCommand | None:
    """Return what counts of a command; None where it is not one program that runs tests."""
    place = beside("", folder) or "."
    if len(text) > LONGEST or SHELL.search(text.strip()) or (folder not in ("", ".") and place == "."):
        return None
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    variables: dict[str, str] = {}
    while words and (found := ASSIGNED.fullmatch(words[0])):
        if found["name"] not in VARIABLES:
            return None
        variables[found["name"]] = found["value"]
        words.pop(0)
    words = [_program(word) if n == 0 else word for n, word in enumerate(words)]
    for launcher in LAUNCHERS:
        if (*words[: len(launcher)],) == launcher:
            words = words[len(launcher) :]
    start = next((start for start in RUNNERS if (*words[: len(start)],) == start), None)
    if start is None:
        return None
    rest = words[len(start) :]
    return TestCommand(
        runner=RUNNERS[start],
        folder=place,
        names=tuple(_names(rest, place)),
        flags=tuple(kept_flags(rest)) if start[0] == "node" else (),
        variables=variables,
    )


def written_commands(text: str) -> Iterator[str]:
    """Yield what may be commands in a Markdown text: lines of its shell blocks, then what is in backticks."""
    for block in BLOCK.finditer(text):
        yield from (row.strip().removeprefix("$ ") for row in block[1].splitlines() if row.strip())
    yield from (span[1].strip() for span in SPAN.finditer(BLOCK.sub("", text)))


def _program(word: str) -> str:
    """Return a program's name without its folder; every Python is ``python``."""
    name = PurePosixPath(word).name
    return "python" if re.fullmatch(r"python(?:3(?:\.\d+)?)?", name) else name


def _names(words: Iterable[str], folder: str) -> Iterator[str]:
    """Yield the paths that words may name; a module of unittest is one too."""
    start = "" if folder == "." else f"{folder}/"
    for word in words:
        name = word.partition("::")[0]
        if not name or name.startswith("-"):
            continue
        if path := beside(start, name):
            yield path
        parts = name.split(".")
        if "/" not in name and all(map(str.isidentifier, parts)):
            yield from (start + "/".join(parts[:n]) + ".py" for n in range(len(parts), 0, -1))
