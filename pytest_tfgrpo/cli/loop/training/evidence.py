"""The command ``tfgrpo loop evidence``: a dataset cut by hand."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.loop.loop_arguments import add_config
from pytest_tfgrpo.cli.loop.open_loop import current_view, existing_bus
from pytest_tfgrpo.cli.parsers import Arguments, Parser, positive, whole
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.production.report.dataset_lines import dataset_lines
from pytest_tfgrpo.production.training.dataset.cut import cut
from pytest_tfgrpo.production.training.dataset.request import DatasetRequest


def declare(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls(evidence)
    command.add_argument("--to", type=Path, required=True, metavar="FILE", help="file to write, new")
    command.add_argument(
        "--min-reward", type=_share, metavar="R", help="reward of the best attempt at a task, at least"
    )
    command.add_argument(
        "--since", type=_time, metavar="TIME", help="attempts that ended at this date or time (UTC) or later"
    )
    command.add_argument(
        "--sample-size", type=positive, metavar="N", help="attempts at most, drawn by the seed (default: all)"
    )
    command.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of the draw (default: 0)")
    add_config(command)


def evidence(arguments: Arguments) -> Iterator[str]:
    """Write attempts of production to a file that a run learns from."""
    path: Path = arguments.to
    if path.exists():
        raise StoreError(f"{path} exists; name another file, or remove it")
    asked = DatasetRequest(
        min_reward=arguments.min_reward,
        start=arguments.since,
        sample_size=arguments.sample_size,
        seed=arguments.seed,
    )
    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        header = cut(bus, view, asked, path, domains=config.settings.training.domains)
    yield from dataset_lines(header)
    if header.counts["groups"]:
        yield f"wrote      {path}"
        yield f"next: pytest --tfgrpo --tfgrpo-evidence {shlex.quote(str(path))}"
    else:
        path.unlink()
        yield "wrote      nothing: no task has good and bad attempts that fit"
        yield "next: tfgrpo loop report"


def _share(text: str) -> float:
    """Return a number from 0 to 1; raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")
    return number


def _time(text: str) -> str:
    """Return a date or time in UTC; raises ArgumentTypeError."""
    found = utc_time(text) or utc_time(f"{text}T00:00:00Z") or utc_time(f"{text}Z")
    if found is None:
        raise argparse.ArgumentTypeError(f"must be a date or time such as 2026-11-01, not {text!r}")
    return found
