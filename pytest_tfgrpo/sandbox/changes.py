"""Changes: what an agent did to the files of its workspace, kept with a rollout and restored in a replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.records import FileChange
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, check_link
from pytest_tfgrpo.sandbox.bases import open_base
from pytest_tfgrpo.sandbox.differences import CACHES, FileDifference, differences, is_left_out
from pytest_tfgrpo.sandbox.paths import check_name
from pytest_tfgrpo.sandbox.tree_writer import TreeWriter
from pytest_tfgrpo.sandbox.workspace import Workspace

MAX_FILES = 1000
MAX_BYTES = 4_000_000
"""Bytes of all files that one rollout changed."""


def changes_in(workspace: Workspace) -> tuple[FileChange, ...] | None:
    """Return how a workspace differs from what it was made of, sorted by name.

    None: it cannot be kept, because it is too large or holds pipes, unprintable names or links that leave it.
    """
    changes: list[FileChange] = []
    room = MAX_BYTES
    try:
        given, skipped = given_files(workspace)
        for found in differences(workspace.path, given, skipped, MAX_BYTES):
            changes.append(_change(found))
            room -= 0 if found.entry is None else len(found.entry.data)
            if room < 0 or len(changes) > MAX_FILES:
                return None
    except (OSError, ValueError):
        return None
    return tuple(sorted(changes, key=lambda change: change.name))


def given_files(workspace: Workspace) -> tuple[Mapping[str, ArchiveEntry], Callable[[str], bool]]:
    """Return what a workspace was made of, and what of it is left out; raises OSError, ValueError."""
    base = {} if workspace.archive is None else open_base(workspace.archive).entries
    attached = {
        attachment.name: ArchiveEntry(name=attachment.name, data=attachment.path.read_bytes())
        for attachment in workspace.attachments
        if not attachment.overlay
    }
    if workspace.archive is None:
        return attached, lambda name: name.rpartition("/")[2] in CACHES
    return {**base, **attached}, is_left_out(base, workspace.links)


def _change(found: FileDifference) -> FileChange:
    """Return a difference as it is kept; raises ValueError where it cannot be."""
    check_name(found.name)
    if found.problem:
        raise ValueError(found.problem)
    entry = found.entry
    if entry is None:
        return FileChange(name=found.name)
    if entry.link is not None:
        entry.link.encode()
        return FileChange(name=found.name, link=entry.link)
    try:
        return FileChange(name=found.name, text=entry.data.decode(), executable=entry.executable)
    except UnicodeDecodeError:
        return FileChange(name=found.name, hex=entry.data.hex(), executable=entry.executable)


def make_again(workspace: Workspace, changes: tuple[FileChange, ...]) -> None:
    """Do to a fresh workspace what an agent did to one like it; raises ProviderError.

    Changes come sorted by name, so a file that is gone goes before what stands below its name.
    """
    with _writer(workspace.path) as writer:
        for change in changes:
            try:
                check_name(change.name)
                if change.link is not None:
                    check_link(change.name, change.link)
                    writer.link(change.name, change.link)
                elif change.text is not None:
                    writer.file(change.name, change.text.encode(), executable=change.executable)
                elif change.hex is not None:
                    writer.file(change.name, bytes.fromhex(change.hex), executable=change.executable)
                else:
                    writer.delete(change.name)
            except (OSError, ValueError) as error:
                raise ProviderError(
                    f"cannot restore the file {change.name!r} of a recording: {error}", "workspace"
                ) from error


def _writer(folder: Path) -> TreeWriter:
    try:
        return TreeWriter(folder)
    except OSError as error:
        raise ProviderError(f"cannot write to the workspace {folder}: {error}", "workspace") from error
