"""What takes events to the sinks of ``loop.toml``."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.loop.open_loop import open_scrubber
from pytest_tfgrpo.core.errors import TfgrpoError
from pytest_tfgrpo.production.sinks.archive import Archive
from pytest_tfgrpo.production.sinks.figures import sinks_status
from pytest_tfgrpo.production.sinks.follower import Sink, SinkFollower
from pytest_tfgrpo.production.sinks.log_lines import LogLines
from pytest_tfgrpo.production.sinks.warehouse.clickhouse import open_clickhouse
from pytest_tfgrpo.production.sinks.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pytest_tfgrpo.production.bus.protocol import Bus
    from pytest_tfgrpo.production.config import LoopConfig

PATIENCE_S = 5.0
"""How much longer than a lease lasts a command waits for the service that has that of a sink."""
NOBODY = "this loop.toml does not name it"
_REST_S = 0.2


def sink_roles(bus: Bus, config: LoopConfig, owner: str) -> list[SinkFollower]:
    """Return a role for each sink that the configuration names; `owner` names this process alone."""
    settings, scrubber = config.settings, open_scrubber(config)
    sinks: list[Sink] = []
    if settings.warehouse.url:
        sinks.append(Warehouse(partial(open_clickhouse, settings.warehouse.url)))
    if settings.archive.folder:
        sinks.append(Archive(config.path.parent / settings.archive.folder))
    if settings.logs.path == "-":
        sinks.append(LogLines(sys.stderr.buffer))
    elif settings.logs.path:
        sinks.append(LogLines(config.path.parent / settings.logs.path))
    ttl_s = settings.evaluator.lease_s
    return [SinkFollower(bus, sink, scrubber, owner, ttl_s=ttl_s) for sink in sinks]


def forget_in_sinks(bus: Bus, config: LoopConfig, owner: str) -> tuple[list[str], dict[str, str]]:
    """Have every sink there ever was remove whom RL_AUDIT says to forget.

    Returns those that have, and why the others have not. What no service does just now this process does.
    """
    before = {name: sink for name, sink in sinks_status(bus).items() if sink.to_forget}
    failed: dict[str, str] = {}
    until = time.monotonic() + config.settings.evaluator.lease_s + PATIENCE_S
    with ExitStack() as closing:
        roles = [role for role in sink_roles(bus, config, owner) if role.name in before]
        for role in roles:
            closing.callback(role.close)
        while waiting := [
            name for name in before if name not in failed and sinks_status(bus)[name].to_forget
        ]:
            able = [role for role in roles if role.name in waiting]
            for role in able:
                try:
                    role.step()
                except TfgrpoError as error:
                    failed[role.name] = str(error)
            if not able or time.monotonic() > until:
                break
            time.sleep(_REST_S)
    after = sinks_status(bus)
    left = {name: sink for name, sink in after.items() if sink.to_forget and name in before}
    ours = {role.name for role in roles}
    reasons = {
        name: failed.get(name) or sink.error or ("another service has its lease" if name in ours else NOBODY)
        for name, sink in left.items()
    }
    return [name for name in before if name not in left], reasons
