"""The command ``tfgrpo loop report``: what came in and how good it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from pytest_tfgrpo.cli.loop.open_loop import (
    current_view,
    existing_bus,
)
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.report.figure_lines import report_lines
from pytest_tfgrpo.production.report.figures import report_of


def report(arguments: Arguments) -> Iterator[str]:
    """Print what came in, what is missing, mean rewards, and the worst kinds of task."""
    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        found = report_of(bus, view, arguments.last)
    yield from [json.dumps(asdict(found), indent=1)] if arguments.json else report_lines(found)
