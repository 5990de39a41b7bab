"""Patterns and shelves for tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternBody, PatternEvidence, PatternStatus
from pytest_tfgrpo.patterns.shelf.pattern_file import stamped, write_pattern
from pytest_tfgrpo.patterns.shelf.shelf import Shelf

EXCERPT = "def total(rows):\n    return sum(row.price for row in rows)"


def make_evidence(**changes: Any) -> PatternEvidence:
    """Return evidence, digests by number."""
    known: dict[str, Any] = {
        "job": "6f1c0d9e-0000-4000-8000-000000000001",
        "scenario": "count-once-000000000001",
        "scenario_stamp": "1" * 64,
        "commit": "2" * 40,
        "tarball_sha256": "3" * 64,
        "diff_sha256": "4" * 64,
    }
    return PatternEvidence(**{**known, **changes})


def make_body(**changes: Any) -> PatternBody:
    """Return sections with an excerpt of shop.py."""
    known: dict[str, Any] = {
        "problem": "The total of a cart was read row by row, once for each of its parts.",
        "solution": "Read all rows at once, and sum their prices.",
        "rationale": "One query costs less than many, and cannot see two states of the cart.",
        "when_not": "Where a cart does not fit into memory.",
        "files": ("shop.py",),
        "excerpt": EXCERPT,
    }
    return PatternBody(**{**known, **changes})


def make_pattern(name: str = "read-rows-at-once", **changes: Any) -> Pattern:
    """Return a stamped candidate."""
    known: dict[str, Any] = {
        "id": "p-" + "0123456789ab",
        "name": name,
        "title": "Read rows at once",
        "domain": "shop",
        "tags": ("queries",),
        "lesson": "Read all rows of a cart in one query, and sum them in memory.",
        "description": "How the shop reads rows. Use it when a loop reads one row at a time.",
        "body": make_body(),
        "evidence": make_evidence(),
    }
    return stamped(Pattern(**{**known, **changes}))


def put(root: Path, *patterns: Pattern) -> Shelf:
    """Lay patterns into the folders of their status, with the file of their excerpt, and return the shelf."""
    shelf = Shelf(root)
    (root / "shop.py").write_text(f"{EXCERPT}\n")
    for pattern in patterns:
        path = shelf.place(pattern.status, pattern.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write_pattern(pattern))
    return shelf


def moved(pattern: Pattern, status: PatternStatus) -> Pattern:
    """Return a pattern with another status."""
    return replace(pattern, status=status)
