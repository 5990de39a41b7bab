"""The command ``tfgrpo loop import``: traces in files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.loop.loop_arguments import add_config
from pytest_tfgrpo.cli.loop.loop_roles import work_off
from pytest_tfgrpo.cli.loop.open_loop import (
    load_config,
    opened_door,
)
from pytest_tfgrpo.cli.parsers import Arguments, Parser
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.imports.files import import_files


def declare(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls(import_)
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="file or folder; several are taken together"
    )
    command.add_argument(
        "--scale",
        type=_scale,
        action="append",
        default=[],
        metavar="NAME=LOW..HIGH",
        help="range of a score of Langfuse that is not from 0 to 1; repeatable",
    )
    add_config(command)


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


def _scale(text: str) -> tuple[str, tuple[float, float]]:
    """Return a name and two numbers; raises ArgumentTypeError."""
    name, _, bounds = text.rpartition("=")
    low, dots, high = bounds.partition("..")
    try:
        if name and dots:
            return name, (float(low), float(high))
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be NAME=LOW..HIGH such as stars=1..5, not {text!r}")
