"""The project as the command line finds it: pytest's ini file, the root folder, the settings."""

from __future__ import annotations

import configparser
import os
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from shlex import quote
from typing import Any, TypeAlias

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.files import INI_FILES
from pytest_tfgrpo.core.keys.setting_parsers import default_task_id
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.settings import BY_NAME, Settings, resolve, unknown_key
from pytest_tfgrpo.core.settings.runs import OUT, TASK_ID
from pytest_tfgrpo.privacy.redact import let_pass


@dataclass(frozen=True, kw_only=True, slots=True)
class IniFile:
    """The file that pytest reads its ini keys from."""

    path: Path
    section: str
    """Header of pytest's section, without brackets."""
    keys: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """Where a command works."""

    root: Path
    settings: Settings
    flags: Collection[str] = ()
    """Names of the settings on the command line."""

    @property
    def out(self) -> Path:
        """The output folder."""
        return self.root / (OUT.of(self.settings) or "out")

    @property
    def task_id(self) -> str:
        """The task id: as set, or the name of the root folder."""
        return TASK_ID.of(self.settings) or default_task_id(self.root.name)

    def resume(self, run_id: str) -> str:
        """Return the command that finishes a run, with the flags that find it."""
        named = [
            " " + quote(f"{row.flag}={row.of(self.settings)}")
            for row in (TASK_ID, OUT)
            if row.name in self.flags
        ]
        return f"pytest --tfgrpo{''.join(named)} --tfgrpo-resume={quote(run_id)}"


def cd_to(folder: Path) -> str:
    """Return the start of a command that works in a folder; empty where that is the current one."""
    return "" if folder.resolve() == Path.cwd() else f"cd {quote(str(folder))} && "


def project_of(arguments: Arguments) -> Project:
    """Return the project in the current folder; raises SettingError."""
    flags = {name: value for name in ("out", "task_id") if (value := getattr(arguments, name, None))}
    return open_project(Path.cwd(), flags, os.environ)


def open_project(start: Path, flags: Mapping[str, Any], environ: Mapping[str, str]) -> Project:
    """Return the project that the folder `start` is part of; raises SettingError.

    `flags` maps setting names to the values given on the command line.
    """
    ini = find_ini(start)
    prefix = "tfgrpo_"
    keys = ini.keys if ini else {}
    values = {key.removeprefix(prefix): value for key, value in keys.items() if key.startswith(prefix)}
    for name in values:
        if name not in BY_NAME and ini is not None:
            raise unknown_key(prefix + name, str(ini.path))
    root = ini.path.parent if ini else _root(start)
    project = Project(root=root, settings=resolve(flags, environ, values), flags=tuple(flags))
    let_pass(str(root), str(project.out), project.task_id)
    return project


def find_ini(start: Path) -> IniFile | None:
    """Return the ini file that pytest uses in the folder `start`; raises SettingError on a malformed one."""
    found = (ini_in(folder) for folder in (start, *start.parents))
    return next((ini for ini in found if ini is not None), None)


def ini_in(folder: Path) -> IniFile | None:
    """Return the ini file in one folder; raises SettingError when it is malformed."""
    for path in (folder / name for name in INI_FILES):
        if path.is_file() and (found := parse_ini(path, read_ini(path))):
            return found
    return None


def read_ini(path: Path) -> str:
    """Return the text of an ini file; raises SettingError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path}: cannot be read: {error}") from error


def parse_ini(path: Path, text: str) -> IniFile | None:
    """Return pytest's settings in the file `path` with this `text`; None if pytest ignores the file."""
    try:
        section, keys = _toml(path, text) if path.suffix == ".toml" else _ini(path, text)
    except (tomllib.TOMLDecodeError, configparser.Error) as error:
        raise SettingError(f"{path}: cannot be read: {error}") from error
    if keys is None and path.name.removeprefix(".") in ("pytest.toml", "pytest.ini"):
        keys = {}  # pytest takes these also without its section
    return None if keys is None else IniFile(path=path, section=section, keys=keys)


Section: TypeAlias = tuple[str, Mapping[str, Any] | None]
"""Header of pytest's section and its keys; None where there is none."""


def _toml(path: Path, text: str) -> Section:
    data = tomllib.loads(text)
    if path.name != "pyproject.toml":
        return "pytest", _table(data, "pytest")
    table = _table(_table(data, "tool") or {}, "pytest") or {}
    if table.keys() - {"ini_options"}:
        return "tool.pytest", table
    return "tool.pytest.ini_options", _table(table, "ini_options")


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = data.get(key)
    return value if isinstance(value, dict) else None


def _ini(path: Path, text: str) -> Section:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    parser.read_string(text, source=str(path))
    section = "tool:pytest" if path.name == "setup.cfg" else "pytest"
    return section, dict(parser.items(section)) if parser.has_section(section) else None


def _root(start: Path) -> Path:
    """Return pytest's root folder when there is no ini file."""
    marked = (folder for folder in (start, *start.parents) if (folder / "pyproject.toml").is_file())
    return next(marked, start)
