"""Changes: what an agent did to the files of its workspace, kept with a rollout and restored in a replay."""

from __future__ import annotations

import os
import stat

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.records import FileChange
from pytest_tfgrpo.core.stamp import stamp_bytes
from pytest_tfgrpo.harness.sandbox.paths import check_name, open_untrusted, walk
from pytest_tfgrpo.harness.sandbox.workspace import Workspace

MAX_FILES = 1000
MAX_BYTES = 4_000_000
"""Bytes of all files that one rollout changed."""
CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
"""Folders that programs make again."""


def changes_in(workspace: Workspace) -> tuple[FileChange, ...] | None:
    """Return how a workspace differs from its attachments, sorted by name.

    None: it cannot be kept, because it is too large or holds links, pipes or unprintable names.
    """
    given = {attachment.name: attachment.sha256 for attachment in workspace.attachments}
    changes: list[FileChange] = []
    room, seen = MAX_BYTES, set()
    try:
        for name in walk(workspace.path, CACHES):
            seen.add(name)
            with open_untrusted(workspace.path, name, MAX_BYTES) as file:
                data = file.read(MAX_BYTES)
                executable = bool(os.fstat(file.fileno()).st_mode & stat.S_IXUSR)
            if given.get(name) == stamp_bytes(data):
                continue
            changes.append(_change(name, data, executable))
            room -= len(data)
            if room < 0 or len(changes) > MAX_FILES:
                return None
    except (OSError, ValueError):
        return None
    gone = [FileChange(name=name) for name in given if name not in seen]
    return tuple(sorted([*changes, *gone], key=lambda change: change.name))


def _change(name: str, data: bytes, executable: bool) -> FileChange:
    try:
        return FileChange(name=name, text=data.decode(), executable=executable)
    except UnicodeDecodeError:
        return FileChange(name=name, hex=data.hex(), executable=executable)


def make_again(workspace: Workspace, changes: tuple[FileChange, ...]) -> None:
    """Do to a fresh workspace what an agent did to one like it; raises ProviderError."""
    folder = workspace.path
    for change in changes:
        try:
            check_name(change.name)
            path = folder / change.name
            if change.text is None and change.hex is None:
                path.unlink(missing_ok=True)
                continue
            data = bytes.fromhex(change.hex) if change.hex is not None else (change.text or "").encode()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            if change.executable:
                path.chmod(path.stat().st_mode | stat.S_IXUSR)
        except (OSError, ValueError) as error:
            raise ProviderError(
                f"cannot restore the file {change.name!r} of a recording: {error}", "workspace"
            ) from error
