"""Environments: what a workspace's programs run with, by stamp; built beforehand, never while tests run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from shlex import quote

from pytest_tfgrpo.core.errors import ScenarioError, SettingError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.strict import finite, unique
from pytest_tfgrpo.core.wire.wire import SPARSE, Json, from_wire, to_wire
from pytest_tfgrpo.sandbox.programs.programs import needed

SCHEMA = "tfgrpo.environment/1"
ENVIRONMENTS = "environments"
"""Folder of a suite with a file per environment, ``<stamp>.json``; and of the cache, with a folder each."""
LARGEST = 100_000_000
"""Bytes of the file of an environment."""
BUILT = "built.json"
"""In an environment's folder, written last: without it the folder is what a killed build left."""
VENV = "python"
"""In an environment's folder, the virtual environment."""
SETUP = "folder"
"""In an environment's folder, where set-up commands run; links of the workspace lead in here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """What ``environments/<stamp>.json`` of a suite says: enough to build the same again."""

    python: str | None = None
    """Version of the interpreter, ``3.11``; None: there is none (JavaScript alone)."""
    lock: tuple[str, ...] = ()
    """Requirements with versions and hashes, one package each, sorted."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that set-up commands need, by relative path: ``package.json``, ``package-lock.json``."""
    setup: tuple[tuple[str, ...], ...] = ()
    """Commands run in the environment's own folder, in order."""
    imports: tuple[str, ...] = ()
    """Folders of the workspace from which modules are imported: ``src``."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the tests."""
    links: tuple[str, ...] = ()
    """Names in the workspace that lead into the environment's folder: ``node_modules``."""
    distributions: Mapping[str, str] = field(default_factory=dict)
    """The project's own packages, name to version, so that ``importlib.metadata`` finds them."""
    entry_points: Mapping[str, str] = field(default_factory=dict, metadata=SPARSE)
    """The text of ``entry_points.txt`` of the project's own packages, by name."""
    until: str | None = field(default=None, metadata=SPARSE)
    """What builds packages from source is older than this time (RFC 3339); None: it may be of any time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltEnvironment:
    """An environment that is on this machine."""

    stamp: str
    folder: Path
    """Its folder in the cache; all that it needs beside the system lies in `readable`."""
    python: Path | None
    """Its interpreter."""
    programs: tuple[Path, ...]
    """Folders that come first on PATH."""
    imports: tuple[str, ...]
    """As in `Environment`: folders of the workspace, for PYTHONPATH."""
    variables: Mapping[str, str]
    links: Mapping[str, Path]
    """Names in the workspace, and where they lead."""
    readable: tuple[Path, ...]
    """What a sandbox must show."""


def to_file(environment: Environment) -> dict[str, Json]:
    """Return the content of the environment's file; its stamp is the file's name."""
    return {"schema": SCHEMA, **to_wire(environment)}


def stamp_of(environment: Environment) -> str:
    """Return the stamp of an environment: of the content of its file (decision 8)."""
    return stamp(to_file(environment))


def read_environment(path: Path) -> Environment:
    """Return the environment of the file ``<stamp>.json``; raises ScenarioError naming file and place."""
    try:
        data = json.loads(
            read_plain(path, LARGEST), parse_constant=finite, parse_float=finite, object_pairs_hook=unique
        )
    except FileNotFoundError:
        raise ScenarioError(
            f"{path}: there is no such file, which describes an environment; restore it from your version "
            "control, or harvest the change again"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: cannot read the environment: {error}") from error
    if found := violations("environment", data):
        lines = (f"{path}: {violation.pointer or '/'}: {violation.message}" for violation in found)
        raise ScenarioError("\n".join(lines))
    if stamp(data) != path.stem:
        raise ScenarioError(
            f"{path}: its content has the stamp {stamp(data)!r}, not the one in its name; restore the file: "
            "scenarios name an environment by its stamp"
        )
    del data["schema"]
    return from_wire(Environment, data)


def cache_folder() -> Path:
    """Return the folder of built environments: in ``XDG_CACHE_HOME``, else in ``~/.cache``."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(home) if os.path.isabs(home) else Path.home() / ".cache"  # noqa: PTH117 - "" is no path
    return folder / "pytest-tfgrpo" / ENVIRONMENTS


def find_built(suite: Path, wanted: str, cache: Path | None = None) -> BuiltEnvironment:
    """Return the environment `wanted` (a stamp) of the suite in the folder `suite`; it builds none.

    `cache` defaults to `cache_folder`. Raises ScenarioError where the suite has no such environment, and
    SettingError where this machine lacks it.
    """
    if not re.fullmatch("[0-9a-f]{64}", wanted):
        raise ScenarioError(f"environment {short(wanted)} is not a stamp; write 64 hex digits")
    environment = read_environment(suite / ENVIRONMENTS / f"{wanted}.json")
    built = open_built(environment, wanted, (cache or cache_folder()) / wanted)
    if built is None:
        raise SettingError(
            f"environment {wanted[:12]} of the suite {str(suite)!r} is not on this machine; "
            f"build it with `tfgrpo harvest env {quote(str(suite))}`"
        )
    return built


def open_built(environment: Environment, wanted: str, folder: Path) -> BuiltEnvironment | None:
    """Return the environment that was built in `folder`; None where none was, or its interpreter is gone."""
    python = folder / VENV / "bin" / "python" if environment.python else None
    if not (folder / BUILT).is_file() or (python and not os.access(python, os.X_OK)):
        return None
    inner = folder / SETUP
    programs = (folder / VENV / "bin",) if python else ()
    readable: tuple[Path, ...] = (folder,)
    if python:
        readable += tuple(
            path for path in needed([str(python)], "", folder) if not path.is_relative_to(folder)
        )
    return BuiltEnvironment(
        stamp=wanted,
        folder=folder,
        python=python,
        programs=(*programs, inner / "node_modules" / ".bin"),
        imports=environment.imports,
        variables=environment.variables,
        links={name: inner / Path(name).name for name in environment.links},
        readable=readable,
    )
