"""What the commands of the loop open: configuration, bus, view, and who is left out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.config import load_loop_config
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.view.view import LoopView

if TYPE_CHECKING:
    from pytest_tfgrpo.production.bus.protocol import Bus
    from pytest_tfgrpo.production.config import LoopConfig


def load_config(path: str | None) -> LoopConfig:
    """Return the configuration of this process; raises SettingError."""
    return load_loop_config(path, os.environ)


def open_configured(config: LoopConfig) -> Bus:
    """Return the bus, which is made where it is a file that is missing; raises BusError and SettingError."""
    return open_bus(config.bus_spec, options=config.bus_options())


def warn(text: str) -> None:
    """Print what a process outlives, on a line."""
    print(f"tfgrpo: {line(text, 2000)}", file=sys.stderr, flush=True)


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
    with closing(LoopView(config.view_path)) as view:
        view.catch_up(bus)
        yield view


def open_scrubber(config: LoopConfig) -> LoopScrubber:
    """Return what takes secrets out, and makes pseudonyms with the key; raises SettingError."""
    privacy = config.settings.privacy
    return LoopScrubber(config.key(), addresses=privacy.ip_addresses, user_attributes=privacy.user_attributes)


def operator_name() -> str:
    """Return the name of who runs this, as far as it is known."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


@contextmanager
def opened_door(arguments: Arguments) -> Iterator[tuple[Bus, LoopScrubber, OptOuts]]:
    """Yield the bus, what scrubs, and who opted out; raises BusError and SettingError."""
    config = load_config(arguments.config)
    scrubber = open_scrubber(config)
    with closing(open_configured(config)) as bus, closing(OptOuts(bus, scrubber)) as rows:
        yield bus, scrubber, rows
