"""The file ``manifest.json`` of a job; once the job is in the queue, a copy of the queue's row."""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError, StoreError
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import MANIFEST, read_plain
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest

LARGEST = 100_000_000


def write_manifest(folder: Path, manifest: JobManifest) -> None:
    """Write the manifest of a job into its folder, whole or not at all; raises StoreError."""
    path = folder / MANIFEST
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():  # what it leads to is not ours
            path.unlink()
        write_json(path, to_wire(manifest))
    except (OSError, JournalError) as error:
        raise StoreError(f"cannot write {path}: {error.__cause__ or error}; make room") from error


def read_manifest(folder: Path) -> JobManifest:
    """Return what the manifest in a job's folder says; raises StoreError naming file and place."""
    path = folder / MANIFEST
    try:
        data = read_plain(path, LARGEST)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    return parse_manifest(data, str(path))


def parse_manifest(data: bytes | str, source: str) -> JobManifest:
    """Return what the text of a manifest says; raises StoreError naming source and place."""
    try:
        value = load_json(data)
    except ValueError as error:
        raise StoreError(f"{source}: {error}; restore it") from None
    if found := violations("learning-job", value):
        raise StoreError(f"{source}: #{found[0].pointer}: {found[0].message}; restore it")
    try:
        return from_wire(JobManifest, value)
    except ValueError as error:
        raise StoreError(f"{source}: {error}; restore it") from None
