"""A first ``loop.toml`` and its key."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.production.config import KEY_BYTES
from pytest_tfgrpo.production.settings import LOOP_TABLE

KEY_MODE = 0o600


def loop_file_text() -> str:
    """Return a ``loop.toml`` that says what every setting does, and leaves each at its default."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Settings of the feedback loop; what is commented out has its default."
    yield "# A variable TFGRPO_LOOP_<SECTION>_<KEY> beats this file; `tfgrpo loop config` shows what holds."
    for section, rows in groupby(LOOP_TABLE.values(), key=lambda row: row.section):
        yield ""
        yield f"[{section}]"
        for row in rows:
            yield f"# {row.help}"
            yield f"# {row.key} = {spelled(row.default)}"


def spelled(value: object) -> str:
    """Return a value in TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {spelled(one)}" for name, one in value.items()) + "}"
    return json.dumps("" if value is None else value)


def write_loop_file(path: Path) -> None:
    """Write a first ``loop.toml``; raises JournalError."""
    write_text(path, loop_file_text())


def write_key(path: Path) -> bool:
    """Write a new key that only its owner can read; False: there is one, which stays. Raises OSError.

    A key is never replaced: with another one the same person has another pseudonym, so that what was left
    out or forgotten before is no longer known.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, KEY_MODE)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="ascii") as file:
        os.fchmod(handle, KEY_MODE)
        file.write(secrets.token_hex(KEY_BYTES) + "\n")
        file.flush()
        os.fsync(handle)
    return True
