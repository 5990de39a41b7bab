"""The command ``tfgrpo live drafts``: surprising runs as drafts of scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.live.live_store import opened
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.live.drafts import drafts_of, write_drafts
from pytest_tfgrpo.production.live.report import newest


def drafts(arguments: Arguments) -> Iterator[str]:
    """Write the most unusual runs as drafts of scenarios."""
    with opened(arguments) as (config, store):
        found = drafts_of(newest(store, arguments.last), arguments.most)
    written = write_drafts(found, Path(arguments.into))
    yield from (f"wrote  {path}" for path in written)
    if not found:
        yield f"no run has a prompt and a reward unlike others (text = {config.settings.text!r})"
    elif len(written) < len(found):
        yield f"kept   {len(found) - len(written)} that exist"
    if written:
        yield "next: add checks to a draft and rename it to NAME.scenario.yaml; before, it is not collected"
