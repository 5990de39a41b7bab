"""The command ``tfgrpo live export``: each choice as a line."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.live.live_store import opened
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.live.choices_export import choice_lines


def export(arguments: Arguments) -> Iterator[str]:
    """Print each choice as a line of JSON."""
    with opened(arguments) as (_, store):
        yield from choice_lines(store.rollouts())
