"""The command ``tfgrpo loop config``: the value of every setting."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.config import config_lines, load_loop_config


def config(arguments: Arguments) -> Iterator[str]:
    """Print every setting and where it comes from, without secrets."""
    yield from config_lines(load_loop_config(arguments.config, os.environ))
