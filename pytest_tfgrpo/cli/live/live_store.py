"""What the commands of live RL share: which configuration and store, and how many runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.live.config import LiveConfig, load_live_config
from pytest_tfgrpo.production.live.store.store import LiveStore, open_live_store


@contextmanager
def opened(arguments: Arguments) -> Iterator[tuple[LiveConfig, LiveStore]]:
    """Yield configuration and store; raises StoreError where there is no store yet."""
    config = load_live_config(arguments.config, {}, os.environ)
    path = config.store
    if path is None:
        raise StoreError(
            f"{config.path}: store = 'none' is kept in memory; call live.status() in the process"
        )
    if not path.exists():
        raise StoreError(
            f"there is no live store {path} yet; it is made by the first run with enabled = true"
        )
    with closing(open_live_store(path, config.settings.namespace)) as store:
        yield config, store
