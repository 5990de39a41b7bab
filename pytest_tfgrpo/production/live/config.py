"""The file ``live.toml``: settings, and the points at which a run chooses, each with its arms and default.

An arm is the stamp of its values and of the content of the files they name: a changed library is a new arm.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

from pytest_tfgrpo.core.errors import PackError, SettingError, StoreError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.keys.setting_parsers import is_task_id
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.settings import Origin, parse
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.wire.stamp import combined_stamp, stamp
from pytest_tfgrpo.core.wire.toml_text import toml_problem
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.library.library import load_library
from pytest_tfgrpo.production.live.settings import PREFIX, TABLE, LiveSettings, resolve_live
from pytest_tfgrpo.suite.packs import MANIFEST, load_pack, load_packs

MAX_ARMS = 32
"""Of a point: each arm is taken now and then, so that more would leave little to learn."""
MAX_BYTES = 1_000_000

_Loaded = TypeVar("_Loaded")


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmSpec:
    """One way to run, as the file has it."""

    name: str
    values: Mapping[str, Json]
    """All its keys and values, `library` and `prompt_pack` included."""
    stamp: str
    """Of its values, with the content of files in place of their names."""
    library: Library | None = None
    packs: Mapping[str, PromptPack] = field(default_factory=dict)
    """By domain; empty: the application's own prompt is used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionPoint:
    """A place in the application where a run takes one of several arms."""

    name: str
    default: str
    arms: Mapping[str, ArmSpec]
    """By name, in the order of the file; while live RL is off, the default alone."""

    @property
    def stamps(self) -> dict[str, str]:
        """Stamp of each arm by name."""
        return {name: arm.stamp for name, arm in self.arms.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveConfig:
    """What a process is configured to do."""

    path: Path
    """The file, whether or not it exists: without it there are no points."""
    settings: LiveSettings
    points: Mapping[str, DecisionPoint]

    @property
    def store(self) -> Path | None:
        """The store's file, relative to the folder of ``live.toml``; None: memory."""
        return None if self.settings.store is None else self.path.parent / self.settings.store


def load_live_config(
    path: str | Path | None, arguments: Mapping[str, Any], environ: Mapping[str, str]
) -> LiveConfig:
    """Return what the file at `path`, the variables and the arguments amount to.

    Without a path, ``TFGRPO_LIVE_RL_CONFIG`` names the file, else ``live.toml`` in the current folder, which
    need not exist. Raises SettingError naming file and key, also for a library or pack that cannot be read.
    """
    named = path if path is not None else environ.get(PREFIX + "CONFIG")
    source = "argument config" if path is not None else f"environment {PREFIX}CONFIG"
    default = str(TABLE["config"].default)
    file = Path(default if named is None else parse(TABLE["config"], Origin(named, source)))
    data = _read(file, must_exist=named is not None)
    _require_keys(file, "", data, ("settings", "points"))
    settings = resolve_live(
        {**arguments, "config": str(file)}, environ, _table(file, "settings", data.get("settings")), str(file)
    )
    points = _table(file, "points", data.get("points"))
    return LiveConfig(
        path=file,
        settings=settings,
        points={name: _point(file, name, value, settings.enabled) for name, value in points.items()},
    )


def _read(file: Path, *, must_exist: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(read_plain(file, MAX_BYTES).decode())
    except FileNotFoundError as error:
        if must_exist:
            raise SettingError(f"{file} does not exist; write one with `tfgrpo live init`") from error
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise SettingError(f"cannot read {file}: {toml_problem(error)}") from error


def _point(file: Path, name: str, value: Any, enabled: bool) -> DecisionPoint:
    key = f"points.{name}"
    _require_name(file, key, name)
    table = _table(file, key, value)
    _require_keys(file, key, table, ("default", "arms"))
    arms = {arm: _table(file, f"{key}.arms.{arm}", v) for arm, v in _arms(file, key, table).items()}
    for arm, values in arms.items():
        _require_name(file, f"{key}.arms.{arm}", arm)
        _require_values(file, f"{key}.arms.{arm}", values)
    default = table.get("default")
    if default not in arms:
        hint = nearest(str(default), arms) or f"; name one of {', '.join(arms)}"
        raise SettingError(f"{file}: {key}.default: {short(default)} is no arm of this point{hint}")
    taken = arms if enabled else {default: arms[default]}
    return DecisionPoint(
        name=name,
        default=default,
        arms={arm: _arm(file, f"{key}.arms.{arm}", arm, values) for arm, values in taken.items()},
    )


def _arms(file: Path, key: str, table: Mapping[str, Any]) -> dict[str, Any]:
    arms = _table(file, f"{key}.arms", table.get("arms"))
    if not 1 <= len(arms) <= MAX_ARMS:
        raise SettingError(f"{file}: {key}.arms: a point has 1 to {MAX_ARMS} arms, not {len(arms)}")
    return arms


def _arm(file: Path, key: str, name: str, values: Mapping[str, Any]) -> ArmSpec:
    """Return an arm with its files loaded."""
    library, packs, content = None, {}, dict(values)
    if "library" in values:
        library = _loaded(file, f"{key}.library", values["library"], _library)
        content["library"] = library.hash
    if "prompt_pack" in values:
        packs = _loaded(file, f"{key}.prompt_pack", values["prompt_pack"], _packs)
        content["prompt_pack"] = combined_stamp(pack.stamp for pack in packs.values())
    return ArmSpec(name=name, values=values, stamp=stamp(content), library=library, packs=packs)


def _loaded(file: Path, key: str, name: Any, load: Callable[[Path], _Loaded]) -> _Loaded:
    """Return what `load` makes of the file that a value names, relative to ``live.toml``."""
    if not isinstance(name, str) or not name:
        raise SettingError(f"{file}: {key}: must be a path, not {short(name)}")
    try:
        return load(file.parent / name)
    except (PackError, StoreError) as error:
        raise SettingError(f"{file}: {key}: {error}") from error


def _library(path: Path) -> Library:
    return load_library(path)


def _packs(path: Path) -> dict[str, PromptPack]:
    """Return the pack in a folder, or the packs in its folders, by domain."""
    if (path / MANIFEST).exists():
        pack = load_pack(path)
        return {pack.domain: pack}
    packs = load_packs(path)
    if not packs:
        raise PackError(f"{path} is neither a prompt pack nor a folder of them")
    return packs


def _table(file: Path, key: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SettingError(f"{file}: {key}: must be a table, not {short(value)}")
    return value


def _require_keys(file: Path, key: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in table:
        if name not in known:
            place = f"{key}.{name}" if key else name
            hint = nearest(name, known) or f"; known: {', '.join(known)}"
            raise SettingError(f"{file}: {place}: unknown key{hint}")


def _require_name(file: Path, key: str, name: str) -> None:
    if not is_task_id(name):
        raise SettingError(f"{file}: {key}: a name must match [A-Za-z0-9][A-Za-z0-9._-]{{0,63}}")


def _require_values(file: Path, key: str, value: Any) -> None:
    """Raise SettingError for a value that JSON cannot hold: a date, NaN."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _require_values(file, f"{key}.{name}", inner)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            _require_values(file, f"{key}.{place}", inner)
    elif not isinstance(value, str | bool | int | float) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise SettingError(f"{file}: {key}: {short(value)} is no text, number or truth value")
