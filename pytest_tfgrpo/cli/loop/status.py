"""The command ``tfgrpo loop status``: how far the loop is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from pytest_tfgrpo.cli.loop.loop_arguments import add_config
from pytest_tfgrpo.cli.loop.open_loop import (
    current_view,
    existing_bus,
)
from pytest_tfgrpo.cli.parsers import Arguments, Parser
from pytest_tfgrpo.production.report.status import status_lines, status_of
from pytest_tfgrpo.production.report.training_lines import training_figures, training_lines
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs


def declare(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls(status)
    command.add_argument("--json", action="store_true", help="print JSON")
    add_config(command)


def status(arguments: Arguments) -> Iterator[str]:
    """Print how far the loop is: what is stored, what waits, and who does which job."""
    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        found = status_of(bus, view, config.public_bus)
        chosen = config.settings.training
        runs_here = bool(chosen.project or chosen.command)
        training = training_figures(TrainingJobs(bus, "").listed(), runs_here=runs_here)
    if arguments.json:
        yield json.dumps({**asdict(found), "training": training}, indent=1)
        return
    yield from status_lines(found)
    yield from training_lines(training)
