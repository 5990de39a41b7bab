"""The command ``tfgrpo live init``: a first live.toml and an example."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import cd_to
from pytest_tfgrpo.cli.suite.init import copy_files, example_folder


def init(arguments: Arguments) -> Iterator[str]:
    """Write a first live.toml, and an example service that uses it."""
    folder = Path(arguments.folder)
    yield from copy_files(example_folder("live"), folder, force=arguments.force)
    yield f"next: {cd_to(folder)}TFGRPO_LIVE_RL_ENABLED=1 python service.py 400, then tfgrpo live status"
