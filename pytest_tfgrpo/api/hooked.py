"""Optimizers by hook, for a command that runs outside pytest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import SettingError, describe
from pytest_tfgrpo.protocols import Optimizer


class _Asking:
    """Has pytest start only as far as its hooks are there."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.found: dict[str, Optimizer] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> int:
        supply = getattr(config.hook, "pytest_tfgrpo_optimizer", lambda **_: None)  # without the plugin
        for name in self._names:
            if (one := supply(config=config, spec=name)) is not None:
                self.found[name] = one
        return 0


def hooked_optimizers(root: Path, names: Sequence[str]) -> dict[str, Optimizer]:
    """Return the optimizers that the plugins of the project in `root` supply; raises SettingError."""
    asking = _Asking(names)
    try:
        if names:
            pytest.main([f"--rootdir={root}", str(root)], plugins=[asking])
    except Exception as error:
        raise SettingError(f"the hook pytest_tfgrpo_optimizer broke: {describe(error)}") from error
    return asking.found
