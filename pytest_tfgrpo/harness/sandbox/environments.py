"""Environments: what a workspace's programs run with, by stamp; built beforehand, never while tests run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


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
