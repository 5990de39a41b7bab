"""Provenance: the file that says where a harvested scenario comes from, and how it was proven."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import SPARSE, from_wire, to_wire
from pytest_tfgrpo.harvest.fixes import FixValidation, RecipePart, Statement

SCHEMA = "tfgrpo.provenance/2"
"""Files of the first version have no origin: all were of a history."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FixOrigin:
    """Where a fix was found."""

    source: Literal["history", "capture"] = "history"
    job: str = field(default="", metadata=SPARSE)
    """Of a captured one its job,"""
    approver: str = field(default="", metadata=SPARSE)
    """and who approved it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """All that a scenario was made from: with the repository, enough to write its files again."""

    id: str
    commit: str
    base: str
    committed_at: int
    """Seconds since 1970, UTC."""
    subject: str
    prompt: Statement
    recipe: RecipePart
    validation: FixValidation
    archives: Mapping[str, str] = field(default_factory=dict)
    """sha256 of each archive, by path in the suite."""
    removed: tuple[str, ...] = ()
    """Files that the fix removed, protected ones left out."""
    removed_tests: tuple[str, ...] = ()
    """Protected files that it removed."""
    protected: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    timeout_s: float = 600.0
    """Seconds for the tests in the check."""
    origin: FixOrigin = FixOrigin()


def write_provenance(path: Path, provenance: Provenance) -> None:
    """Write the file, whole or not at all; raises JournalError."""
    write_json(path, {"schema": SCHEMA, **to_wire(provenance)})


def read_provenance(path: Path) -> Provenance:
    """Return what a file of provenance says; raises StoreError naming file and place."""
    try:
        value = json.loads(read_plain(path))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise StoreError(
            f"cannot read {path}: {why}; restore it, or delete it, its scenario and their line in "
            "harvest.jsonl, and harvest again"
        ) from error
    if found := violations("provenance", value):
        raise StoreError(f"{path}: #{found[0].pointer}: {found[0].message}; restore the file")
    try:
        return from_wire(Provenance, {name: one for name, one in value.items() if name != "schema"})
    except ValueError as error:
        raise StoreError(f"{path}: {error}; restore the file") from None
