"""The command ``tfgrpo loop report``: what came in and how good it was, and a page of the versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.loop.open_loop import current_view, existing_bus
from pytest_tfgrpo.cli.page_file import write
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.production.report.figure_lines import report_lines
from pytest_tfgrpo.production.report.figures import LoopReport, flat_figures, report_of
from pytest_tfgrpo.production.report.page.page import loop_page, story_of

if TYPE_CHECKING:
    from pytest_tfgrpo.production.bus.protocol import Bus
    from pytest_tfgrpo.production.config import LoopConfig


def report(arguments: Arguments) -> Iterator[str]:
    """Print what came in, what is missing, mean rewards, the worst kinds of task; write a page."""
    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        found = report_of(bus, view, arguments.last)
        page = arguments.html and page_of(config, bus, found)
    yield from [json.dumps(flat_figures(found), indent=1)] if arguments.json else report_lines(found)
    if page:
        yield write(Path(arguments.html), lambda: write_text(Path(arguments.html), page))


def page_of(config: LoopConfig, bus: Bus, found: LoopReport) -> str:
    """Return the page of a loop; raises BusError."""
    return loop_page(config.path.absolute().parent.name, found, story_of(bus, config.store))
