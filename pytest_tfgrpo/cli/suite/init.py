"""A first project: the files that ``tfgrpo init`` writes, and its lines in pytest's ini file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import IniFile, cd_to, ini_in, parse_ini, read_ini
from pytest_tfgrpo.cli.suite.example_repository import STREAM, make_repository, require_git
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.runs.output_folder import make_output

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

STARTER_KEYS = {"tfgrpo_actor": "offline", "tfgrpo_group_size": "5", "tfgrpo_acceptance": "off"}
"""Acceptance takes 20 dev scenarios, more than so small a suite has; with any, a run says that it is off."""
EXAMPLES = ("coding", "history")
"""Examples besides the starter: folders of ``docs/examples``, which the wheel holds in ``examples``."""
EXAMPLE_INI = "pytest.ini"
LEFT_OUT = frozenset({EXAMPLE_INI, "__pycache__", "out"})
"""What is not copied: keys go into the ini file in use, and what a run leaves behind stays there."""
NEW_SECTION = "tool.pytest.ini_options"


def init(arguments: Arguments) -> Iterator[str]:
    """Write a first project: scenarios, a prompt pack, and lines in pytest's ini file."""
    yield from start(Path(arguments.folder), force=arguments.force, example=arguments.example)


def start(folder: Path, *, force: bool, example: str | None = None) -> Iterator[str]:
    """Write a small project, or the named `example`, into `folder`; yields what was done.

    Files that exist are kept, or overwritten with `force`; the ini file is only added to. Raises
    SettingError, before anything is written, when the ini lines cannot be added or there is no such example.
    """
    templates, keys = (_files() / "init_templates", STARTER_KEYS) if example is None else _example(example)
    if any(STREAM in name.name for _, name in _walk(templates, Path())):
        require_git()
    ini, text = _with_keys(folder, keys)
    yield from copy_files(templates, folder, force=force)
    if text is None:
        yield f"kept   {ini.path.name}, which already sets tfgrpo_actor"
    else:
        ini.path.write_text(text, encoding="utf-8")
        yield f"set    {', '.join(keys)} in {ini.path.name}"
    out = str(ini.keys.get("tfgrpo_out") or "out")
    if make_output(folder / out):
        yield f"wrote  {out}/.gitignore, as runs hold prompts and answers"
    yield f"next: {_next(folder, ini, example)}"


def copy_files(templates: Traversable, folder: Path, *, force: bool) -> Iterator[str]:
    """Copy files into `folder`; those that exist are kept, or overwritten with `force`."""
    for source, name in _walk(templates, Path()):
        target = folder / _target(name)
        if target.exists() and not force:
            yield f"kept   {_target(name)}, which already exists"
            continue
        if target != folder / name:
            if target.exists():
                yield f"kept   {_target(name)}, a repository; remove it to make it again"
                continue
            make_repository(source.read_bytes(), target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
        yield f"wrote  {_target(name)}"


def _target(name: Path) -> Path:
    """Return what a file of an example becomes: a stream of commits the repository that it names."""
    return name.with_name(name.name.removesuffix(STREAM))


def _files() -> Traversable:
    from importlib.resources import files

    return files("pytest_tfgrpo")


def _example(name: str) -> tuple[Traversable, Mapping[str, str]]:
    """Return the files of an example and the keys of its ini file; raises SettingError."""
    if name not in EXAMPLES:
        raise SettingError(f"unknown example {name!r}; known: {', '.join(EXAMPLES)}{nearest(name, EXAMPLES)}")
    found = example_folder(name)
    ini = parse_ini(Path(EXAMPLE_INI), (found / EXAMPLE_INI).read_text(encoding="utf-8"))
    return found, ini.keys if ini else {}


def example_folder(name: str) -> Traversable:
    """Return the folder of an example, as the wheel or the checkout holds it; raises SettingError."""
    packaged: Traversable = _files() / "examples" / name
    checkout = Path(__file__).resolve().parents[3] / "docs" / "examples" / name
    found = packaged if packaged.is_dir() else checkout
    if not found.is_dir():
        raise SettingError(f"the example {name!r} is neither in the package nor at {checkout}")
    return found


def _walk(folder: Traversable, name: Path) -> Iterator[tuple[Traversable, Path]]:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.name in LEFT_OUT or entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _walk(entry, name / entry.name)
        else:
            yield entry, name / entry.name


def _with_keys(folder: Path, keys: Mapping[str, str]) -> tuple[IniFile, str | None]:
    """Return pytest's ini file in `folder` and its text with `keys`; None when it has an actor already."""
    ini = ini_in(folder)
    if ini is not None and "tfgrpo_actor" in ini.keys:
        return ini, None
    path = ini.path if ini else folder / "pyproject.toml"
    text = read_ini(path) if path.exists() else ""
    lines = "".join(f"{key} = {_spell(path, value)}\n" for key, value in keys.items())
    section = ini.section if ini else NEW_SECTION
    header = re.compile(rf"^\[{re.escape(section)}\][ \t]*([#;].*)?$", re.MULTILINE)
    if header.search(text):
        text = header.sub(lambda match: f"{match[0]}\n{lines}".rstrip("\n"), text, count=1)
    else:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        text = f"{text}{gap}[{section}]\n{lines}"
    try:
        made = parse_ini(path, text)
    except SettingError:
        made = None
    if made is None or made.section != section or not keys.keys() <= made.keys.keys():
        raise SettingError(f"{path}: cannot add to [{section}]; add these lines by hand:\n{lines.rstrip()}")
    return made, text


def _spell(path: Path, value: str) -> str:
    return value if path.suffix != ".toml" or value.isdecimal() else json.dumps(value)


def _next(folder: Path, ini: IniFile, example: str | None) -> str:
    where = cd_to(folder)
    if example == "history":
        return f"{where}tfgrpo harvest --repo shop --from-git FIRST..main --into suite"
    return f"{where}pytest --tfgrpo" + (" fixtures" if "testpaths" in ini.keys else "")
