"""The command ``tfgrpo live ingest``: the runs of agents of other frameworks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.production.live.config import load_live_config
from pytest_tfgrpo.production.live.intake.spans import SpanIngest, ingest_lines
from pytest_tfgrpo.production.live.loop import rules_of
from pytest_tfgrpo.production.live.selection.rewards import open_inference
from pytest_tfgrpo.production.live.store.store import open_live_store


def ingest(arguments: Arguments) -> Iterator[str]:
    """Store runs from files of OpenTelemetry spans."""
    config = load_live_config(arguments.config, {"enabled": True}, os.environ)
    path, settings = config.store, config.settings
    if path is None:
        raise StoreError(f"{config.path}: store = 'none' is kept in memory; name a file")
    rules = rules_of(config, open_inference(settings.inference, config.path.parent))
    files = [Path(name) for name in arguments.files]
    for file in files:
        if not file.is_file():
            raise SettingError(f"there is no file {file}")
    with closing(open_live_store(path, settings.namespace)) as store:
        yield from ingest_lines(SpanIngest(store, rules, settings=settings).ingest(files))
