"""The command ``tfgrpo loop dashboards``: what Grafana and Prometheus need to show the loop."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.production.sinks.dashboards.files import observing_files


def dashboards(arguments: Arguments) -> Iterator[str]:
    """Write Grafana dashboards, Prometheus alerts, and routes of Alertmanager.

    Raises StoreError where a file exists, unless --force overwrites it, or its folder cannot be made, and
    JournalError.
    """
    files = {arguments.folder / name: text for name, text in observing_files().items()}
    there = [path for path in files if path.exists()]
    if there and not arguments.force:
        raise StoreError(f"{there[0]} exists; overwrite it with --force, or name another folder")
    try:
        arguments.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make the folder {arguments.folder}: {error.strerror}") from error
    for path, text in files.items():
        write_text(path, text)
        yield f"wrote  {path}"
