"""A skill as agents find it in their workspace, for the time of a trial."""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.core.scenarios import Attachment
from pytest_tfgrpo.core.wire.stamp import stamp_bytes

SKILL_FOLDERS = (".agents/skills", ".claude/skills")
"""Where coding agents look for skills, in the root of a project."""
SKILL = "SKILL.md"


def skill_overlay(name: str, text: str, folder: Path) -> tuple[Attachment, ...]:
    """Write the file of a skill into `folder` and return where it lies in workspaces; raises OSError."""
    path, data = folder / f"{name}.{SKILL}", text.encode()
    path.write_bytes(data)
    return tuple(
        Attachment(name=f"{place}/{name}/{SKILL}", path=path, sha256=stamp_bytes(data), overlay=True)
        for place in SKILL_FOLDERS
    )
