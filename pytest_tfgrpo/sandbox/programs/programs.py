"""Programs: which files and folders a command line needs to run, links and interpreters included."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

LINKS = 16
SCRIPTS = 4
"""An interpreter can be a script, whose interpreter can be one too."""
PYTHON = ("bin", "lib", "lib64", "ssl", "pyvenv.cfg")
"""What a Python installation or virtual environment needs that shares its folder with a project or a home."""


def needed(argv: Sequence[str], search: str, root: Path) -> tuple[Path, ...]:
    """Return what the program and the files that `argv` names need, each path once, as it is and resolved.

    That is a program's interpreter, a Python's environment and libraries, and the ``node_modules`` folder of
    a script in one. The project `root` is never among it as a whole.
    `search` is the PATH on which the interpreter of a ``#!/usr/bin/env`` line is found.
    """
    found = list(_program(Path(argv[0]), search, SCRIPTS, root))
    for word in argv[1:]:
        if word.startswith("/") and os.path.isfile(word):  # noqa: PTH113 - Path.is_file raises on a long word
            found += _file(Path(word))
    return tuple(dict.fromkeys(found))


def without_shims(search: str, root: Path, version: str = "") -> str:
    """Return a PATH with the programs to which shims of pyenv lead in the place of the shims.

    A shim asks pyenv, which no sandbox shows, for `version`, the value of its variable, else for what is
    chosen in the folder `root`.
    """
    folders: list[str] = []
    for folder in search.split(os.pathsep):
        home = Path(folder).parent
        shims = Path(folder).name == "shims" and (home / "versions").is_dir()
        folders += [str(path) for path in _pyenv_programs(home, root, version)] if shims else [folder]
    return os.pathsep.join(folders)


def _pyenv_programs(home: Path, root: Path, version: str) -> Iterator[Path]:
    """Yield the folders of programs of the versions that pyenv, with its files in `home`, has chosen."""
    places = [*(folder / ".python-version" for folder in (root, *root.parents)), home / "version"]
    chosen = version or next((path.read_text("utf-8", "replace") for path in places if path.is_file()), "")
    for name in chosen.replace(":", " ").split():
        found = home / "versions" / name
        if not found.is_dir():  # 3.12 is the newest 3.12.x
            found = max((home / "versions").glob(f"{name}.*"), key=_numbers, default=found)
        if (found / "bin").is_dir():
            yield found / "bin"


def _numbers(path: Path) -> list[int]:
    return [int(part) for part in path.name.split(".") if part.isdigit()]


def chain(path: Path) -> Iterator[Path]:
    """Yield an absolute path, what it links to, and so on to the file itself."""
    for _ in range(LINKS):
        yield path
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / path.readlink()))
    yield path.resolve()


def _program(path: Path, search: str, depth: int, root: Path) -> Iterator[Path]:
    yield from _file(path)
    for step in chain(path):
        yield from _python(step.parent.parent, root)
    for name in _interpreter(path) if depth else ():
        if found := shutil.which(name, path=search):
            yield from _program(Path(found), search, depth - 1, root)


def _file(path: Path) -> Iterator[Path]:
    for step in chain(path):
        yield step
        if "node_modules" in step.parts:
            yield Path(*step.parts[: step.parts.index("node_modules") + 1])


def _python(prefix: Path, root: Path) -> Iterator[Path]:
    """Yield the parts of the Python installation or virtual environment in the folder `prefix`, if one is."""
    config = prefix / "pyvenv.cfg"
    venv = config.is_file()
    if venv or any(prefix.glob("lib/python3*/os.py")):
        real = prefix.resolve()
        if root.resolve().is_relative_to(real) or Path.home().resolve().is_relative_to(real):
            yield from (prefix / name for name in PYTHON if (prefix / name).exists())
        else:
            yield prefix  # a mount less
    if venv:
        for line in config.read_text("utf-8", "replace").splitlines():
            key, _, value = (part.strip() for part in line.partition("="))
            if key == "home" and Path(value).is_absolute() and Path(value).parent != prefix:
                yield from _python(Path(value).parent, root)


def started(program: str, search: str) -> tuple[str, ...]:
    """Return the words that start a program whatever its PATH is: an ``env NAME`` script by its interpreter.

    An agent's own interpreter is the machine's, also where its PATH begins with a project's environment.
    """
    named = _interpreter(Path(program))
    found = shutil.which(named[1], path=search) if len(named) == 2 and _is_bare(Path(program)) else None
    return (program,) if found is None else (found, program)


def _is_bare(path: Path) -> bool:
    """Return whether a script's ``#!`` line gives its interpreter no options."""
    with path.open("rb") as file:
        return len(file.readline(256).split()) == 2


def _interpreter(path: Path) -> tuple[str, ...]:
    """Return the programs that the ``#!`` line of a script names; none for another file."""
    try:
        with path.open("rb") as file:
            line = file.readline(256)
    except OSError:
        return ()
    if not line.startswith(b"#!"):
        return ()
    words = os.fsdecode(line[2:]).split()
    if words and Path(words[0]).name == "env":
        named = (w for w in words[1:] if not w.startswith("-") and "=" not in w)
        return (words[0], *(name for name in [next(named, "")] if name))
    return tuple(words[:1])
