"""What a rollout has in its workspace, on the way to a node of a cluster and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, check_link, check_member
from pytest_tfgrpo.sandbox.changes import given_files
from pytest_tfgrpo.sandbox.differences import FileDifference, differences
from pytest_tfgrpo.sandbox.tree_writer import TreeWriter
from pytest_tfgrpo.sandbox.workspace import Workspace

MAX_BYTES = 64 * 2**20
"""Bytes of all files of one rollout that travel."""
MAX_FILES = 20_000

LeftFile: TypeAlias = tuple[str, ArchiveEntry | None]
"""A name, and what is there now; None: nothing."""


def left_in(workspace: Workspace) -> list[LeftFile]:
    """Return how a workspace differs from what it is made of; pipes and links that leave it are left out.

    Raises AgentFailure where it is too much, and ProviderError where the folder cannot be read.
    """
    found: list[LeftFile] = []
    room = MAX_BYTES
    try:
        given, skipped = given_files(workspace)
        for one in differences(workspace.path, given, skipped, MAX_BYTES):
            if one.problem:
                _require_small(one)
                continue
            found.append((one.name, one.entry))
            room -= 0 if one.entry is None else len(one.entry.data)
            if room < 0 or len(found) > MAX_FILES:
                raise AgentFailure(
                    f"the workspace has more than {MAX_BYTES >> 20} MiB or {MAX_FILES} files of changes, "
                    "too much to bring back from its node",
                    "oversize",
                )
    except ValueError as error:
        raise AgentFailure(f"the workspace cannot be brought back: {error}", "oversize") from error
    except OSError as error:
        raise ProviderError(f"cannot read the workspace: {error}", "workspace") from error
    return found


def _require_small(one: FileDifference) -> None:
    if one.problem.endswith(f"more than {MAX_BYTES}"):
        raise AgentFailure(f"the workspace cannot be brought back: {one.problem}", "oversize")


def put_into(workspace: Workspace, now: Sequence[LeftFile], before: Sequence[LeftFile] = ()) -> None:
    """Make a workspace, which has the differences `before`, one with the differences `now`.

    Raises ProviderError.
    """
    names = {name for name, _ in now}
    given = given_files(workspace)[0] if any(name not in names for name, _ in before) else {}
    undone = [(name, given.get(name)) for name, _ in before if name not in names]
    try:
        with TreeWriter(workspace.path) as writer:
            for name, entry in sorted((*now, *undone), key=lambda one: one[1] is not None):
                check_member(name)
                if entry is None:  # first, as a folder may stand where a file was
                    writer.delete(name)
                elif entry.link is not None:
                    check_link(name, entry.link)
                    writer.link(name, entry.link)
                else:
                    writer.file(name, entry.data, executable=entry.executable)
    except (OSError, ValueError) as error:
        raise ProviderError(
            f"cannot write to the workspace {workspace.path}: {error}", "workspace"
        ) from error
