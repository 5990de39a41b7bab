"""Archives of hidden tests: where the one with a digest lies, and whether it is still the same."""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.scenarios import Check, WorkspaceArchive
from pytest_tfgrpo.sandbox.file_digests import digest_of

_places: dict[str, Path] = {}
"""Where the archive of hidden tests with a digest lies: a check has digests alone, the same everywhere."""


def remember(digest: str, path: Path) -> None:
    """Note where the archive with a digest lies."""
    _places[digest] = path


def remembered(digest: str) -> Path | None:
    """Return where the archive with a digest lies; None where no scenario with it was read."""
    return _places.get(digest)


def hidden_archive(check: Check) -> Path:
    """Return where the hidden tests lie; raises CheckError where they are not what the scenario names."""
    digest = check.params["hidden_sha256"]
    path = _places.get(digest)
    try:
        if path is None or digest_of(path) != digest:
            raise CheckError(
                f"{check.params['hidden']!r} was changed since its scenario was read; restore it"
            )
    except OSError as error:
        raise CheckError(f"cannot read {check.params['hidden']!r}: {error.strerror}") from error
    return path


def suite_folder(archive: WorkspaceArchive) -> Path:
    """Return the folder of the scenario file that names an archive."""
    return archive.path.parents[len(Path(archive.archive).parts) - 1]
