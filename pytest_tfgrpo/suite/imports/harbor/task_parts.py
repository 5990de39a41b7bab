"""What a task becomes: a scenario, and the files that it names."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskParts:
    """One task as parts of a suite."""

    scenario: Mapping[str, Json]
    """As a scenario file has it, without its id."""
    files: Mapping[str, bytes]
    """By their path beside the scenario file."""
    lost: tuple[str, ...]
    """What of the task has no counterpart here."""


def archive_names(id_: str) -> tuple[str, str]:
    """Return where a suite has the archives of a scenario: of its workspace, and of its hidden tests."""
    return f"archives/{id_}.base.tar.gz", f"archives/{id_}.hidden.tar.gz"
