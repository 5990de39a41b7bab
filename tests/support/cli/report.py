"""What the tests of cli/test_report.py share with the slow ones."""

import json
from pathlib import Path


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)


def kill(folder: Path, event: str) -> None:
    """Leave the journal as if the run was killed after the first `event`, before any report."""
    kept = lines_of(folder)
    at = next(n for n, row in enumerate(kept) if json.loads(row)["event"] == event)
    (folder / "journal.jsonl").write_bytes(b"".join(kept[: at + 1]))
    for name in ("report.json", "report.html", "per-epoch.json", "manifest.json"):
        (folder / name).unlink()
