"""What keeps a change from being captured: secrets, and files that are too large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import SnapshotError
from pytest_tfgrpo.core.texts.text import few, line
from pytest_tfgrpo.harvest.history.tree_files import SUBMODULE
from pytest_tfgrpo.harvest.prompt.secrets_found import SecretSearch
from pytest_tfgrpo.sandbox.archives import ArchiveEntry

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.fixes import ChangedFile
    from pytest_tfgrpo.harvest.history.git_objects import GitObjects

LARGEST = 50_000_000
"""Bytes of a changed file."""


class RefusedChange(ValueError):
    """A change that is not captured, with the place; a secret is named by its kind alone."""


def too_large(name: str, size: int) -> str:
    """Return why a changed file is refused."""
    return (
        f"{line(name, 200)!r} has {size} bytes, more than {LARGEST}; ignore or remove it, then capture again"
    )


def screen(objects: GitObjects, files: Sequence[ChangedFile]) -> None:
    """Raise RefusedChange on a changed file that is too large, or brings a secret; SnapshotError."""
    after = [one for one in files if one.new_id and one.new_mode != SUBMODULE]
    for one, size in zip(after, objects.sizes([one.new_id for one in after]), strict=True):
        if size is not None and size > LARGEST:
            raise RefusedChange(too_large(one.path, size))
    before = ["" if one.old_mode == SUBMODULE else one.old_id for one in after]
    old = objects.contents([id_ for id_ in before if id_], LARGEST)
    new = objects.contents([one.new_id for one in after], LARGEST)
    search, found = SecretSearch(), list[str]()
    for one, old_id in zip(after, before, strict=True):
        known = _entry(one.path, next(old)) if old_id else None
        content = _entry(one.path, next(new))
        if content is None:
            raise SnapshotError(f"the object {one.new_id} of {one.path!r} is missing or damaged; fetch it")
        found += search.added({one.path: known} if known else {}, {one.path: content})
    if found:
        raise RefusedChange(
            f"secrets: {few([line(one, 300) for one in found])}; take them out, and renew them"
        )


def _entry(path: str, content: bytes | None) -> ArchiveEntry | None:
    return None if content is None else ArchiveEntry(name=path, data=content)
