"""The command ``tfgrpo live status``: gate, runs, probabilities and the last update."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pytest_tfgrpo.cli.live.live_store import opened
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.live.report import status_lines, status_of


def status(arguments: Arguments) -> Iterator[str]:
    """Print gate, runs, probabilities and the last update."""
    with opened(arguments) as (config, store):
        found = status_of(config, store)
    yield from [json.dumps(found, indent=1)] if arguments.json else status_lines(found)
