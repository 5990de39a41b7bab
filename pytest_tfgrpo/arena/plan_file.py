"""The file of an arena's plan: what it was begun with, which an arena that is resumed reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pytest_tfgrpo.core.errors import ResumeError
from pytest_tfgrpo.core.files import ARENA_PLAN, read_plain
from pytest_tfgrpo.core.wire.strict import load_json

SCHEMA: Final = "tfgrpo.arena-plan/1"


def read_plan(folder: Path) -> dict[str, Any]:
    """Return what an arena was begun with; raises ResumeError."""
    path = folder / ARENA_PLAN
    try:
        known = load_json(read_plain(path))
        if known["schema"] != SCHEMA or not {"started_at", "arguments", "identity"} <= known.keys():
            raise ValueError(f"it is no plan of schema {SCHEMA!r}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResumeError(
            f"{path} cannot be read: {error}; leave --resume out to start a new arena"
        ) from error
    return dict(known)
