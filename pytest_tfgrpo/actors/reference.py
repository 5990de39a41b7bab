"""The actors ``reference`` and ``nothing``: a suite of fixes scores 1 with the true fix, 0 without."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ActorError, ProviderError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.core.scenarios import Scenario, WorkspaceArchive
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.archives import check_member, lay, read_archive
from pytest_tfgrpo.sandbox.tree_writer import TreeWriter

REFERENCES, PROVENANCE = "references", "provenance"
"""Folders beside the one that holds the archive of a workspace."""
VERSION = 1


class NothingActor:
    """Does nothing and answers nothing: what scores with it needs no agent."""

    name = "nothing"
    paid = False
    identity: Mapping[str, Json] = {"actor": "nothing", "version": VERSION}

    converses = True

    async def __call__(self, call: ActorCall) -> Trajectory:  # noqa: ARG002 - part of the Protocol
        """Return an empty answer."""
        return Trajectory(answer="")

    def open_session(self, call: ActorCall) -> NothingActor:  # noqa: ARG002 - part of the Protocol
        """Return itself: there is nothing to remember."""
        return self

    async def answer(self, message: str) -> Trajectory:  # noqa: ARG002 - part of the Protocol
        """Return an empty answer to every message."""
        return Trajectory(answer="")

    def bound(self, call_count: int) -> Mapping[str, float | None]:  # noqa: ARG002 - part of the Protocol
        """Nothing is spent."""
        return {"usd": 0.0, "tokens": 0.0}

    async def aclose(self) -> None:
        """Nothing is held."""


class ReferenceActor:
    """Does what the true fix did, as the suite's ``references/`` has it."""

    name = "reference"
    paid = False
    identity: Mapping[str, Json] = {"actor": "reference", "version": VERSION}

    def require_references(self, scenarios: Iterable[Scenario]) -> None:
        """Raise ActorError naming the first scenario without a reference."""
        for scenario in scenarios:
            if scenario.workspace is None:
                raise ActorError(
                    f"scenario {scenario.id!r} ({scenario.source}) has no workspace, and so no reference; "
                    "the actor 'reference' applies the fix of a harvested scenario"
                )
            path = _reference(scenario.workspace, scenario.id)
            if not path.is_file():
                raise ActorError(
                    f"scenario {scenario.id!r} ({scenario.source}) has no reference: there is no "
                    f"{str(path)!r}; restore it, or choose another actor"
                )

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Write the fix into the workspace; raises ProviderError where the reference cannot be used."""
        archive = call.workspace.archive
        if archive is None:
            raise ProviderError(
                f"scenario {call.task.id!r} has no workspace, and so no reference", "reference"
            )
        try:
            await asyncio.to_thread(_apply, archive, call.task.id, call.workspace.path)
        except (OSError, ValueError) as error:
            raise ProviderError(
                f"cannot use the reference of {call.task.id!r}: {error}", "reference"
            ) from error
        return Trajectory(answer="")

    def bound(self, call_count: int) -> Mapping[str, float | None]:  # noqa: ARG002 - part of the Protocol
        """Nothing is spent."""
        return {"usd": 0.0, "tokens": 0.0}

    async def aclose(self) -> None:
        """Nothing is held."""


def _reference(archive: WorkspaceArchive, id_: str) -> Path:
    return archive.path.parent.parent / REFERENCES / f"{id_}.tar.gz"


def _apply(archive: WorkspaceArchive, id_: str, folder: Path) -> None:
    """Write what the fix added or changed, and delete what it removed; raises OSError, ValueError."""
    removed = removed_files(archive.path.parent.parent / PROVENANCE / f"{id_}.json")
    entries = list(read_archive(_reference(archive, id_)))
    with TreeWriter(folder) as writer:
        for name in removed:
            check_member(name)
            writer.delete(name)
    lay(entries, folder)


def removed_files(path: Path) -> list[str]:
    """Return the files that a fix removed; none where a suite made by hand has no provenance."""
    try:
        value = load_json(read_plain(path))
    except FileNotFoundError:
        return []
    removed = value.get("removed", []) if isinstance(value, dict) else None
    if not isinstance(removed, list) or not all(isinstance(name, str) for name in removed):
        raise ValueError(f"{path}: removed must be a list of names; restore the file")
    return removed
