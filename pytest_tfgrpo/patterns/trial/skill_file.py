"""A skill as agents find it in their workspace, for the time of a trial."""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.core.scenarios import Attachment
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.patterns.learn_file import SKILL_FOLDERS
from pytest_tfgrpo.patterns.shelf.pattern import Pattern
from pytest_tfgrpo.patterns.shelf.skill_text import skill_text
from pytest_tfgrpo.patterns.shelf.sync import SKILL


def skill_overlay(pattern: Pattern, folder: Path) -> tuple[Attachment, ...]:
    """Write the skill of a pattern into `folder` and return where it lies in workspaces; raises OSError."""
    name = pattern.name
    path, data = folder / SKILL, skill_text(pattern).encode()
    path.write_bytes(data)
    return tuple(
        Attachment(name=f"{place}/{name}/{SKILL}", path=path, sha256=stamp_bytes(data), overlay=True)
        for place in SKILL_FOLDERS
    )
