"""What the commands of the loop open: configuration, bus, view, and who is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import StoreError

if TYPE_CHECKING:
    from pytest_tfgrpo.production.bus.protocol import Bus
    from pytest_tfgrpo.production.config import LoopConfig
    from pytest_tfgrpo.production.door.scrubber import LoopScrubber
    from pytest_tfgrpo.production.view.view import LoopView


def load_config(path: str | None) -> LoopConfig:
    """Return the configuration of this process; raises SettingError."""
    from pytest_tfgrpo.production.config import load_loop_config

    return load_loop_config(path, os.environ)


def open_configured(config: LoopConfig) -> Bus:
    """Return the bus, which is made where it is a file that is missing; raises BusError and SettingError."""
    from pytest_tfgrpo.production.bus.registry import open_bus

    return open_bus(config.bus_spec, options=config.bus_options())


@contextmanager
def existing_bus(path: str | None) -> Iterator[tuple[LoopConfig, Bus]]:
    """Yield configuration and bus; raises StoreError where no service has made the bus yet, or no loop is."""
    config = load_config(path)
    file = config.bus_file
    if file is not None and not file.exists():
        if not config.path.exists():
            raise StoreError(
                f"there is no {config.path} here, and no bus; go to the folder of your loop, name its file "
                "with --config, or make one with `tfgrpo loop init`"
            )
        raise StoreError(f"there is no bus {file} yet; `tfgrpo loop serve` makes it")
    with closing(open_configured(config)) as bus:
        yield config, bus


@contextmanager
def current_view(config: LoopConfig, bus: Bus) -> Iterator[LoopView]:
    """Yield the view, with all that is on the bus."""
    from pytest_tfgrpo.production.view.view import LoopView

    with closing(LoopView(config.view_path)) as view:
        view.catch_up(bus)
        yield view


def open_scrubber(config: LoopConfig) -> LoopScrubber:
    """Return what takes secrets out, and makes pseudonyms with the key; raises SettingError."""
    from pytest_tfgrpo.production.door.scrubber import LoopScrubber

    privacy = config.settings
    return LoopScrubber(
        config.key(),
        addresses=privacy.privacy_ip_addresses,
        user_attributes=privacy.privacy_user_attributes,
    )
