"""What was said of the rows in a job's folder, once they are all there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.wire.strict import load_json

SAID = "rows.json"


def say_rows(folder: Path, lines: Sequence[str]) -> None:
    """Keep what was written and left out; raises JournalError."""
    write_json(folder / SAID, {"said": list(lines)})


def said_of_rows(folder: Path) -> Sequence[str]:
    """Return that; empty before the rows are written."""
    try:
        found: Sequence[str] = load_json((folder / SAID).read_bytes())["said"]
    except (OSError, ValueError):
        return ()
    return found
