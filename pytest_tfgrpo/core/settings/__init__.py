"""Settings: one table, one rule for names, guards that hold whenever a value is set (decision 20).

A setting ``x_y`` is the flag ``--tfgrpo-x-y``, the environment variable ``TFGRPO_X_Y`` and the ini key
``tfgrpo_x_y``; a flag beats the environment, which beats the ini file, which beats the default.
Each start that sets something imports this module: it must stay free of heavy imports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import NoChoice, parse_bool
from pytest_tfgrpo.core.settings import agents, gate, learning, permissions, runs, telemetry
from pytest_tfgrpo.core.settings.gate import BASELINE, GATE_EXTEND, GATE_SEQUENTIAL
from pytest_tfgrpo.core.settings.learning import (
    BASELINE_SWEEP,
    EPOCHS,
    EVAL_MODE,
    EVAL_ROLLOUTS,
    PLACEBO_SWEEP,
)
from pytest_tfgrpo.core.settings.permissions import SANDBOX_ENV
from pytest_tfgrpo.core.texts.named_values import nearest

TABLE: tuple[Setting[Any], ...] = tuple(
    row
    for rows in (agents, learning, runs, permissions, gate, telemetry)
    for row in vars(rows).values()
    if isinstance(row, Setting)
)
"""All settings, in the order of their files."""
BY_NAME: Mapping[str, Setting[Any]] = {s.name: s for s in TABLE}
HIDDEN = SANDBOX_ENV
"""The setting whose wrong value no message shows: it may be a key instead of a key's name."""
SWEEP_ROLLOUTS = 5
"""Of each scenario in the sweeps of a learning run, unless set."""
GROUP_FLAG_ENV = "FEATURE_TFGRPO_GROUP"


class Origin:
    """A configured value with its source."""

    __slots__ = ("source", "value")

    def __init__(self, value: Any, source: str) -> None:
        """`source` is for example ``flag --tfgrpo-seed`` or ``environment TFGRPO_SEED``."""
        self.value = value
        self.source = source


class Settings:
    """All settings of an invocation, parsed; not to be changed."""

    __slots__ = ("learning", "origins", "values")

    def __init__(self, learning: bool, values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
        """`origins` has the source of each configured setting."""
        self.learning = learning
        self.values = values
        self.origins = origins

    def __getitem__(self, name: str) -> Any:
        """Return the value of the setting called `name`."""
        return self.values[name]

    def with_values(self, **values: Any) -> Settings:
        """Return these settings with other values of some, already parsed."""
        return Settings(self.learning, {**self.values, **values}, self.origins)

    @property
    def eval_rollouts(self) -> int:
        """Rollouts per scenario in a sweep: as set, else 5 when learning, else those of the first look."""
        if (chosen := EVAL_ROLLOUTS.of(self)) is not None:
            return chosen
        if self.learning:
            return SWEEP_ROLLOUTS
        stored = BASELINE.of(self) is not None and not GATE_SEQUENTIAL.of(self)
        return max(GATE_EXTEND.of(self), 1) if stored else 1


def shaping(*what: str) -> tuple[str, ...]:
    """Return the names of the settings that shape `what`: ``prompts``, ``answers`` or ``gate``."""
    return tuple(setting.name for setting in TABLE if not set(what).isdisjoint(setting.shapes))


def sets_gate(values: Mapping[str, object]) -> bool:
    """Return whether a gate is set: a plain run has one where a gate setting without default is set."""
    return any(BY_NAME[name].default is None and values.get(name) is not None for name in shaping("gate"))


def is_gated(settings: Settings) -> bool:
    """Return whether a gate judges a run: always when it learns, else where one of its rules is set."""
    return settings.learning or sets_gate(settings.values)


def parse(setting: Setting[Any], origin: Origin) -> Any:
    """Return the parsed value; raises SettingError naming key, value and source."""
    try:
        return setting.parse(origin.value)
    except ValueError as error:
        hint = nearest(str(origin.value), error.names) if isinstance(error, NoChoice) else ""
        shown = "" if setting is HIDDEN else f", not {origin.value!r}"
        raise SettingError(f"{setting.name} {error}{shown} ({origin.source}){hint}") from None


def unknown_key(key: str, file: str) -> SettingError:
    """Return the error of an ini key that starts with ``tfgrpo_`` and is no setting."""
    hint = nearest(key.replace("-", "_").removeprefix("tfgrpo_"), BY_NAME).replace("'", "'tfgrpo_", 1)
    return SettingError(f"{file}: unknown ini key {key!r}{hint or '; remove it'}")


def resolve(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    ini: Mapping[str, Any],
    *,
    learning_flag: bool = False,
) -> Settings:
    """Return the settings that flags, environment and ini file amount to.

    `flags` and `ini` map setting names to raw values and hold only what was set. Every value set anywhere is
    checked, also one that a stronger source overrides. Raises SettingError.
    """

    def found(setting: Setting[Any]) -> list[Origin]:
        return [*_flag(setting, flags), *_environment(setting, environ), *_ini(setting, ini)]

    return _settings(found, learning=learning_flag or _group_feature(environ))


def _settings(found: Callable[[Setting[Any]], list[Origin]], *, learning: bool) -> Settings:
    """Return all settings; `found` has the values that a setting was set to, the strongest first."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for setting in TABLE:
        given = found(setting)
        parsed = [parse(setting, origin) for origin in given]
        values[setting.name] = parsed[0] if parsed else setting.default
        if given:
            origins[setting.name] = given[0].source
    if EVAL_MODE.of(values) == "last_epoch" and EPOCHS.of(values) < 2:
        raise SettingError(
            f"epochs must be >= 2 with eval_mode=last_epoch, not {EPOCHS.of(values)} "
            f"({origins.get('epochs', 'default')}); use eval_mode=separate to train in a single epoch"
        )
    settings = Settings(learning, values, origins)
    if learning and BASELINE_SWEEP.of(settings) == "both" and settings.eval_rollouts < 4:
        raise SettingError(
            f"baseline_sweep = 'both' runs a quarter of the {settings.eval_rollouts} rollouts early "
            f"({origins['baseline_sweep']}); set eval_rollouts to at least 4, or choose concurrent"
        )
    if learning and PLACEBO_SWEEP.of(settings) and BASELINE_SWEEP.of(settings) == "off":
        raise SettingError(
            f"placebo_sweep ({origins['placebo_sweep']}) needs a baseline sweep, and baseline_sweep is 'off' "
            f"({origins['baseline_sweep']}); set baseline_sweep to concurrent, or placebo_sweep to false"
        )
    return settings


def from_arguments(arguments: Mapping[str, Any], *, learning: bool) -> Settings:
    """Return the settings that keyword arguments of a call amount to; None stands for the default.

    Nothing is read from the environment or an ini file. Raises SettingError, also on an unknown name.
    """
    for name in arguments:
        if name not in BY_NAME:
            hint = nearest(name, [*BY_NAME, "scenarios"])
            raise SettingError(f"unknown setting {name!r}{hint}")

    def found(setting: Setting[Any]) -> list[Origin]:
        value = arguments.get(setting.name)
        return [] if value is None else [Origin(value, f"argument {setting.name}")]

    return _settings(found, learning=learning)


def _flag(setting: Setting[Any], flags: Mapping[str, Any]) -> list[Origin]:
    return [Origin(flags[setting.name], f"flag {setting.flag}")] if setting.name in flags else []


def _ini(setting: Setting[Any], ini: Mapping[str, Any]) -> list[Origin]:
    return [Origin(ini[setting.name], f"ini key {setting.ini}")] if setting.name in ini else []


def _environment(setting: Setting[Any], environ: Mapping[str, str]) -> list[Origin]:
    names = [name for name in (setting.env, *setting.aliases) if name in environ]
    found = [Origin(environ[name], f"environment {name}") for name in names]
    if len({parse(setting, origin) for origin in found}) > 1:
        pairs = " and ".join(f"{name}={environ[name]!r}" for name in names)
        raise SettingError(f"{pairs} contradict each other; unset one of them")
    return found


def _group_feature(environ: Mapping[str, str]) -> bool:
    if GROUP_FLAG_ENV not in environ:
        return False
    try:
        return parse_bool(environ[GROUP_FLAG_ENV])
    except ValueError as error:
        raise SettingError(
            f"{GROUP_FLAG_ENV} {error}, not {environ[GROUP_FLAG_ENV]!r} (environment)"
        ) from None


RESERVED_PREFIXES = ("TFGRPO_LIVE_RL_", "TFGRPO_LOOP_", "TFGRPO_LEARN_")
"""Environment variables that other parts of the project read."""


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the ``TFGRPO_*`` variables that no setting answers to, sorted."""
    known = {name for s in TABLE for name in (s.env, *s.aliases)}
    return sorted(
        name
        for name in environ
        if name.startswith("TFGRPO_") and name not in known and not name.startswith(RESERVED_PREFIXES)
    )
