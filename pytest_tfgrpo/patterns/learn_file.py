"""The file ``learn.toml`` in the root of a repository, and the variables that override it."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire

LEARN_FILE = "learn.toml"
PREFIX = "TFGRPO_LEARN_"
LARGEST = 1_000_000
SKILL_FOLDERS = (".agents/skills", ".claude/skills")
"""Where coding agents look for skills, in the root of a project."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnSetting:
    """One row of the table of settings; `LearnSettings` has a field of the name of its key."""

    key: str
    parse: Callable[[str], Any]
    """Returns the value of a variable, or raises ValueError with a text that starts with ``must``."""
    default: Any
    help: str

    @property
    def env(self) -> str:
        """The environment variable."""
        return PREFIX + self.key.upper()


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnSettings:
    """What ``learn.toml`` and the variables say."""

    alert_command: tuple[str, ...] = ()
    suite: str = ""
    """Relative to the root of the repository."""
    model: str = ""
    approvers: tuple[str, ...] = ()
    skills: tuple[str, ...] = SKILL_FOLDERS
    """Relative to the root of the repository, as the next one."""
    agents_md: str = ""


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"must be arguments as a shell reads them: {error}") from None


# fmt: off
LEARN_TABLE: Mapping[str, LearnSetting] = {row.key: row for row in (
    LearnSetting(key="alert_command", parse=_words, default=(),
                 help="program that gets each alert as JSON on its standard input; it has 10 seconds"),
    LearnSetting(key="suite", parse=str.strip, default="",
                 help="folder of the suite that proven scenarios join; empty: none"),
    LearnSetting(key="model", parse=str.strip, default="",
                 help="model that writes patterns, openai:<model>; empty: a template writes them"),
    LearnSetting(key="approvers", parse=_words, default=(),
                 help="people who may promote, reject and deprecate patterns; empty: everybody but agents"),
    LearnSetting(key="skills", parse=_words, default=SKILL_FOLDERS,
                 help="folders that get a skill for each active pattern"),
    LearnSetting(key="agents_md", parse=str.strip, default="",
                 help="memory file that gets a line for each active pattern, such as AGENTS.md; empty: none"),
)}
# fmt: on


def load_learn_settings(root: Path, environ: Mapping[str, str]) -> LearnSettings:
    """Return what the file in `root` and the variables amount to; a variable beats the file.

    Raises SettingError naming file and line or variable, key and value.
    """
    known = {row.env for row in LEARN_TABLE.values()}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            raise SettingError(f"unknown environment variable {name}{nearest(name, known) or '; unset it'}")
    values: dict[str, Any] = _read(root / LEARN_FILE)
    for key, row in LEARN_TABLE.items():
        if row.env in environ:
            try:
                values[key] = row.parse(environ[row.env])
            except ValueError as error:
                shown = short(environ[row.env])
                raise SettingError(f"environment {row.env}: {key} {error}, not {shown}") from None
    return from_wire(LearnSettings, {key: to_wire(value) for key, value in values.items()})


def _read(path: Path) -> dict[str, Any]:
    """Return what a file says, nothing where there is none; raises SettingError."""
    try:
        text = read_plain(path, LARGEST).decode()
        data = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise SettingError(f"cannot read {path}: {error}; correct it") from error
    if found := violations("learn-file", data):
        places = [f"{path}:{_line(text, v.path)}: {'.'.join(map(str, v.path))}" for v in found]
        raise SettingError("\n".join(f"{at}: {v.message}" for at, v in zip(places, found, strict=True)))
    return data


def _line(text: str, path: tuple[str | int, ...]) -> int:
    """Return the line on which a key, or its table, stands."""
    name = re.escape(str(path[0]))
    starts = (n for n, row in enumerate(text.splitlines(), 1) if re.match(rf"\s*\[?\s*[\"']?{name}\b", row))
    return next(starts, 1)
