"""The archive of a scenario's workspace: found beside the scenario, and compared with its digest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.scenarios import WorkspaceArchive
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.file_digests import digest_of
from pytest_tfgrpo.sandbox.paths import confined

ARCHIVE_MAX_BYTES = 1_000_000_000
"""Of the archive itself, compressed."""


class WrongDigest(ValueError):
    """An archive that is not the one that its scenario names."""


def find_archive(data: Mapping[str, Json], folder: Path) -> WorkspaceArchive:
    """Return the archive that `data` of a scenario in `folder` names.

    Raises WrongDigest where its bytes are others, and ValueError or OSError where it cannot be read.
    """
    path = confined(folder, data["archive"], ARCHIVE_MAX_BYTES)
    archive = WorkspaceArchive(archive=data["archive"], path=path, sha256=data["sha256"])
    found = digest_of(path)
    if found != archive.sha256:
        raise WrongDigest(
            f"{archive.archive!r} has the sha256 {found}, not {archive.sha256}; restore the file, or write "
            "the digest that it has"
        )
    return archive
