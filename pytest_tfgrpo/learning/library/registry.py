"""The store of experiences, loaded by a run that has some to keep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_tfgrpo.learning.library.experience_store import ExperienceStore


def open_store(path: Path) -> ExperienceStore:
    """Return the store in a file; raises StoreError."""
    from pytest_tfgrpo.learning.library.experience_store import ExperienceStore

    return ExperienceStore.open(path)
