"""The file of an arena's plan: what it was begun with, which an arena that is resumed reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pytest_tfgrpo.arena.result import RESULT, read_result
from pytest_tfgrpo.core.errors import JournalError, ResumeError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.wire.strict import load_json

PLAN: Final = "plan.json"
"""In the folder of an arena."""
SCHEMA: Final = "tfgrpo.arena-plan/1"


def read_plan(folder: Path) -> dict[str, Any]:
    """Return what an arena was begun with; raises ResumeError."""
    path = folder / PLAN
    try:
        known = load_json(read_plain(path))
        if known["schema"] != SCHEMA or not {"started_at", "arguments", "identity"} <= known.keys():
            raise ValueError(f"it is no plan of schema {SCHEMA!r}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResumeError(
            f"{path} cannot be read: {error}; leave --resume out to start a new arena"
        ) from error
    return dict(known)


def earlier_arenas(folder: Path, stamp: str) -> int:
    """Return how many arenas beside that in `folder` ended on the eval scenarios of a stamp; no replays."""
    count = 0
    for path in folder.parent.glob(f"*/{RESULT}"):
        if path.parent == folder:
            continue
        try:
            if read_result(path).suite_hash == stamp:
                count += not read_plan(path.parent)["arguments"].get("replay")
        except (JournalError, ResumeError):  # no arena that could have been looked at
            continue
    return count
