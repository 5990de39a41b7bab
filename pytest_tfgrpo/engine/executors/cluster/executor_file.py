"""``executor.toml``: what a rollout of an agent needs of a node, and what travels to the nodes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.keys.list_values import BYTES
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.schema import violations

EXECUTOR_FILE = "executor.toml"
"""Its name, in the root folder of the project; there need not be one."""
MAX_BYTES = 100_000
EVERY = "*"
"""Stands for every actor that the file does not name."""
PACKAGE_MAX = 100 * 2**20
"""Most bytes that travel, unless the file says otherwise."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """What one rollout takes of its node; 0 and nothing: the cluster does not count it."""

    cpu: float = 0
    gpu: float = 0
    memory: int = 0
    """In bytes."""
    custom: Mapping[str, float] = field(default_factory=dict)
    """Resources that the cluster's own configuration names."""

    @property
    def wanted(self) -> dict[str, float]:
        """Return the resources, by the cluster's names."""
        named = {"CPU": self.cpu, "GPU": self.gpu, "memory": float(self.memory), **self.custom}
        return {name: amount for name, amount in named.items() if amount}

    def fit(self, total: Mapping[str, float], most: int) -> int:
        """Return how many rollouts a node with `total` can hold at once, at most `most`."""
        counts = [int(total.get(name, 0) / amount + 1e-9) for name, amount in self.wanted.items()]
        return min([most, *counts])

    def __str__(self) -> str:
        """Name the resources."""
        shown = ((name, f"{amount:g}") for name, amount in self.wanted.items() if name != "memory")
        parts = [f"{amount} {name}" for name, amount in shown]
        return ", ".join([*parts, *([f"{self.memory / 2**30:.3g} GiB of memory"] if self.memory else [])])


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorFile:
    """What the file says."""

    path: Path
    resources: Mapping[str, Resources] = field(default_factory=dict)
    """By spec of the actor."""
    exclude: tuple[str, ...] = ()
    """Patterns of files that do not travel."""
    package_max: int = PACKAGE_MAX
    """Most bytes that travel, compressed."""

    def of(self, actor: str) -> Resources:
        """Return what a rollout of an actor needs."""
        return self.resources.get(actor) or self.resources.get(EVERY) or Resources()


def load_executor_file(root: Path) -> ExecutorFile:
    """Return what the file in `root` says, of defaults where there is none; raises SettingError."""
    file = root / EXECUTOR_FILE
    try:
        data = tomllib.loads(read_plain(file, MAX_BYTES).decode())
    except FileNotFoundError:
        return ExecutorFile(path=file)
    except (OSError, ValueError, RecursionError) as error:
        raise SettingError(f"cannot read {file}: {error}") from error
    if found := violations("executor-file", data):
        raise SettingError("\n".join(f"{file}: {'.'.join(map(str, v.path))}: {v.message}" for v in found))
    package = data.get("package", {})
    needs = {spec: _resources(file, spec, row) for spec, row in data.get("resources", {}).items()}
    return ExecutorFile(
        path=file,
        resources=needs,
        exclude=tuple(package.get("exclude", ())),
        package_max=_bytes(file, "package.max", package["max"]) if "max" in package else PACKAGE_MAX,
    )


def _resources(file: Path, spec: str, row: Mapping[str, Any]) -> Resources:
    for name, amount in {**row, **row.get("custom", {})}.items():
        if amount != amount:  # TOML knows nan, and no bound of the schema does
            raise SettingError(f"{file}: resources.{spec!r}: {name} = nan is not an amount")
    key = f"resources.{spec!r}.memory"
    memory = _bytes(file, key, row["memory"]) if "memory" in row else 0
    return Resources(
        cpu=row.get("cpu", 0), gpu=row.get("gpu", 0), memory=memory, custom=row.get("custom", {})
    )


def _bytes(file: Path, key: str, text: str) -> int:
    match = re.fullmatch(r"(\d{1,15}) ?([A-Za-z]*)", text)
    if match is None or match[2] not in BYTES or int(match[1]) < 1:
        raise SettingError(f"{file}: {key}: {text!r} is not an amount; write one such as '2GiB'")
    return int(match[1]) * BYTES[match[2]]
