"""Open the deployed policy in an application: the only reader of its environment, without pytest."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.config import load_loop_config
from pytest_tfgrpo.production.service.reports import FirstReports
from pytest_tfgrpo.production.serving.follow import ServingFollower
from pytest_tfgrpo.production.serving.policy import ServedPolicy
from pytest_tfgrpo.production.serving.version_files import load_version
from pytest_tfgrpo.production.training.versions.artifacts import open_artifacts
from pytest_tfgrpo.production.training.versions.policies import Policies

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tfgrpo.production.bus.protocol import Bus
    from pytest_tfgrpo.production.config import LoopConfig

LAST_KNOWN = "loop-serving.json"
"""Beside ``loop.toml``."""


def open_policy(config: str | Path | None = None) -> ServedPolicy:
    """Return what serves the deployed version in this process; open it once, and close it at the end.

    `config` is ``loop.toml`` (default: the variable ``TFGRPO_LOOP_CONFIG``, else ``loop.toml`` in the current
    folder); variables ``TFGRPO_LOOP_*`` override it. It needs the bus and the store of versions. Without the
    bus it serves what was served last, and warns. Raises SettingError.
    """
    found = load_loop_config(config, os.environ)
    found.bus_options()  # raises at once what the first look would
    return ServedPolicy(lambda: open_follower(found, warnings.warn))


def open_follower(config: LoopConfig, report: Callable[[str], None]) -> ServingFollower:
    """Return what follows the deployments of a configured loop, and reports each kind of error once."""

    def existing() -> Bus:
        file = config.bus_file
        if file is not None and not file.exists():
            raise BusError(f"there is no bus {file}; `tfgrpo loop serve` makes it")
        return open_bus(config.bus_spec, options=config.bus_options())

    def identity() -> object:
        """Return which file the bus is: one that was put back from a copy is another one."""
        if config.bus_file is None:
            return None
        try:
            found = config.bus_file.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    return ServingFollower(
        existing,
        lambda bus, name: load_version(Policies(bus, open_artifacts(config.store)), name),
        config.path.parent / LAST_KNOWN,
        FirstReports(report).say,
        identity,
    )
