"""Flags, ini keys and environment variables, and the resulting settings."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

import pytest

from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.settings import BY_NAME, TABLE, Settings, resolve, unknown_key
from pytest_tfgrpo.core.settings.agents import ACTOR, JUDGE, OPTIMIZER, TEACHER, TOOLS
from pytest_tfgrpo.core.settings.learning import EPOCHS, GROUP_SIZE
from pytest_tfgrpo.core.settings.permissions import ALLOW_PAID
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.texts.named_values import nearest

SETTINGS = pytest.StashKey[Settings]()
SECTIONS = ("pytest", "tool:pytest", "tool.pytest", "tool.pytest.ini_options")
_SECTION = re.compile(r"\[(?P<name>[\w:. -]+)\]\s*(?:[#;].*)?$")
_KEY = re.compile(r"""["']?(?P<name>tfgrpo[_-][\w-]+)["']?\s*[=:]""")
FLAGS = ("resume", "dry-run", *(setting.name.replace("_", "-") for setting in TABLE))
"""Names of the flags, after ``--tfgrpo-``."""


def declare(parser: pytest.Parser) -> None:
    """Declare a flag and an ini key for every setting, and the flag to resume."""
    group = parser.getgroup("tfgrpo")
    group.addoption(
        "--tfgrpo-resume",
        nargs="?",
        const="latest",
        default=None,
        metavar="RUN",
        help="continue an interrupted run: its id (default: the latest)",
    )
    for setting in TABLE:
        default = "" if setting.default is None else f" (default: {setting.default})"
        text = (setting.help + default).replace("%", "%%")
        group.addoption(setting.flag, dest=setting.ini, default=None, metavar="X", help=text)
        parser.addini(setting.ini, f"as {setting.flag}", type=setting.ini_type, default=None)  # type: ignore[arg-type]


def words(config: pytest.Config) -> list[str]:
    """Return the words of the command line and of PYTEST_ADDOPTS, from which pytest finds its rootdir."""
    return [
        *shlex.split(os.environ.get("PYTEST_ADDOPTS", "")),
        *(os.fspath(word) for word in config.invocation_params.args),
    ]


def read(config: pytest.Config) -> Settings:
    """Return the settings; raises pytest.UsageError naming key, value and source of a bad one."""
    _require_known(config)
    flags = {s.name: value for s in TABLE if (value := config.getoption(s.ini, None)) is not None}
    if config.getoption("tfgrpo_dry_run", False):
        flags[ALLOW_PAID.name] = True  # nothing is called
    try:
        return resolve(flags, os.environ, _ini(config), learning_flag=config.getoption("tfgrpo", False))
    except ValueError as error:  # a SettingError is one
        raise pytest.UsageError(str(error)) from error


def refuse_misspelt(args: list[str]) -> None:
    """Raise pytest.UsageError on a flag that is nearly one of this plugin; others may be a conftest.py's."""
    for word in args:
        start, _, name = word.partition("=")[0].partition("--tfgrpo-")
        if start.startswith("--tfg") and start != "--tfgrpo":  # no other plugin's
            raise pytest.UsageError(f"unknown flag {start!r}; did you mean '--tfgrpo'?")
        unknown = not start and name and name not in FLAGS
        if unknown and (hint := nearest(name, FLAGS).replace("'", "'--tfgrpo-", 1)):
            raise pytest.UsageError(f"unknown flag '--tfgrpo-{name}'{hint}")


def refuse_repeated(args: Iterable[str]) -> None:
    """Raise pytest.UsageError on two values of a flag that takes several in one: pytest uses the last."""
    given: dict[str, list[str]] = {setting.flag: [] for setting in (ACTOR, TOOLS)}
    ours = [*takewhile(lambda word: word != "--", map(str, args))]
    for word, after in zip(ours, [*ours, ""][1:], strict=True):
        flag, equals, value = word.partition("=")
        if flag in given:
            given[flag].append(value if equals else after)
    for flag, values in given.items():
        if len(set(values)) > 1:
            one = repr("\n".join(values)) if flag == TOOLS.flag else shlex.quote(",".join(values))
            raise pytest.UsageError(
                f"{flag} is given {len(values)} times, and pytest would use the last alone; write one: "
                f"{flag}={'$' * (flag == TOOLS.flag)}{one}"
            )


def _require_known(config: pytest.Config) -> None:
    """Raise pytest.UsageError on an ini key that starts like one of this plugin, and that nobody declared."""
    path = config.inipath
    keys = [] if path is None else [*_keys(path.read_text(encoding="utf-8"))]
    keys += [given.partition("=")[0] for given in config.getoption("override_ini", None) or ()]
    for key in keys:
        if key.startswith(("tfgrpo_", "tfgrpo-")) and key.removeprefix("tfgrpo_") not in BY_NAME:
            try:
                config.getini(key)  # another plugin may have declared it
            except ValueError:
                raise pytest.UsageError(str(unknown_key(key, str(config.inipath)))) from None


def _keys(text: str) -> Iterator[str]:
    """Yield our keys in pytest's sections of an ini or TOML file, declared or not: pytest lists none."""
    inside = False
    for row in text.splitlines():
        if header := _SECTION.match(row):
            inside = header["name"] in SECTIONS
        elif inside and (key := _KEY.match(row)):
            yield key["name"]


def _ini(config: pytest.Config) -> dict[str, Any]:
    found = {}
    for setting in TABLE:
        try:
            value = config.getini(setting.ini)
        except (TypeError, ValueError, pytest.UsageError) as error:
            rule = _rule(setting)
            given = re.search(r"'[^']*'$", str(error)) if rule and isinstance(error, ValueError) else None
            why = f", not {given[0]}" if given else f": {error}"  # int() speaks of literals and bases
            raise pytest.UsageError(f"{setting.name}{rule}{why} (ini key {setting.ini})") from None
        if value is not None:
            found[setting.name] = value
    return found


def _rule(setting: Setting[Any]) -> str:
    """Return the rule of a setting, for ini values that pytest itself fails to convert."""
    try:
        setting.parse(None)
    except ValueError as rule:
        return f" {rule}"
    return ""


def settings_of(config: pytest.Config) -> Settings:
    """Return the settings of an invocation; those that nobody sets where nothing is."""
    if SETTINGS not in config.stash:
        config.stash[SETTINGS] = resolve({}, os.environ, {})
    return config.stash[SETTINGS]


def headline(settings: Settings) -> str | None:
    """Return the line of the report header, in learning mode."""
    if not settings.learning:
        return None
    from pytest_tfgrpo.core.keys.agent_list import listed_agents
    from pytest_tfgrpo.core.texts.text import plural

    agents = ", ".join(agent.name for agent in listed_agents(ACTOR.of(settings)))
    others = [
        f"{role.name} {of}, "
        for role in (OPTIMIZER, TEACHER, JUDGE)
        if role.name in settings.origins and (of := role.of(settings))
    ]
    return (
        "tfgrpo: "
        + (f"agents {agents}, " if agents else f"actor {ACTOR.of(settings) or 'of each test'}, ")
        + "".join(others)
        + f"group size {GROUP_SIZE.of(settings)}, "
        f"{plural(EPOCHS.of(settings), 'epoch')}, seed {SEED.of(settings)}"
    )
