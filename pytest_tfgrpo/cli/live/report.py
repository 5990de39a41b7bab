"""The command ``tfgrpo live report``: what the selector brings."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.live.live_store import opened
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.live.report import report_lines


def report(arguments: Arguments) -> Iterator[str]:
    """Print what the selector gains over its control, by category, and the last updates."""
    with opened(arguments) as (_, store):
        yield from report_lines(store, arguments.last)
