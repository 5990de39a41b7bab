"""The command ``tfgrpo harvest init``: a first harvest.toml."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.harvest.job.tools import first_recipe, open_builder, recipe_path


def init(arguments: Arguments) -> Iterator[str]:
    """Write a first harvest.toml, which says how tests run."""
    repository = Path(arguments.repo)
    path = recipe_path(repository)
    if path.exists() and not arguments.force:
        raise SettingError(f"{path} exists; review it, or overwrite it with --force")
    builder = open_builder(os.environ, "none")  # which interpreters there are; nothing is built
    write_text(path, first_recipe(repository, arguments.commit, builder.interpreters))
    yield f"wrote  {path}: review it, then harvest"
