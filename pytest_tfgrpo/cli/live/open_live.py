"""Open live RL in an application: the only reader of its environment and files, without pytest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pytest_tfgrpo.production.live.config import load_live_config
from pytest_tfgrpo.production.live.session import Live


def open_live(config: str | Path | None = None, **settings: Any) -> Live:
    """Return live RL as ``live.toml``, ``TFGRPO_LIVE_RL_*`` and `settings` say; open it once per process.

    `config` is the file (default: the variable ``TFGRPO_LIVE_RL_CONFIG``, else ``live.toml`` in the current
    folder); `settings` are given by name and beat the variables, which beat the file. Unless it is enabled,
    each choice is the default arm, nothing is collected or written, and neither store nor selector is loaded.
    Raises SettingError naming file and key of what is wrong, and StoreError where the store cannot be used.
    """
    found = load_live_config(config, settings, os.environ)
    if not found.settings.enabled:
        return Live(found, None)
    from pytest_tfgrpo.production.live.loop import open_loop

    return Live(found, open_loop(found))
