"""The command ``tfgrpo loop init``: a first loop.toml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import cd_to
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.config import LOOP_FILE
from pytest_tfgrpo.production.loop_file import write_key, write_loop_file
from pytest_tfgrpo.production.settings import LOOP_TABLE


def init(arguments: Arguments) -> Iterator[str]:
    """Write a first loop.toml, and the key of its pseudonyms, which only you can read."""
    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    file, key = folder / LOOP_FILE, folder / LOOP_TABLE["privacy.key_file"].default
    if file.exists() and not arguments.force:
        raise SettingError(f"{file} exists; overwrite it with --force")
    write_loop_file(file)
    yield f"wrote  {file}"
    yield f"wrote  {key}" if write_key(key) else f"kept   {key}"
    yield f"next: keep {key.name} out of version control, then {cd_to(folder)}tfgrpo loop serve"
