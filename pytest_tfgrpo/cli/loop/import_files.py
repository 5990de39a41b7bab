"""The command ``tfgrpo loop import``: traces in files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.loop.loop_roles import work_off
from pytest_tfgrpo.cli.loop.open_loop import load_config, opened_door
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.imports.files import import_files


def import_(arguments: Arguments) -> Iterator[str]:
    """Import files of OTLP JSON lines, and exports of Langfuse."""
    with opened_door(arguments) as (bus, scrubber, rows):
        paths = [Path(name) for name in arguments.files]
        found = import_files(paths, Intake(bus, scrubber, rows), dict(arguments.scale))
        yield from found.lines()
        if work_off(bus, load_config(arguments.config), rows):
            yield "next: tfgrpo loop report; traces without their root are completed by tfgrpo loop serve"
        else:
            yield "next: the service that runs makes trajectories of them; see tfgrpo loop status"
