"""The roles that count for Prometheus, and that call the command of alerts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.loop.open_loop import open_scrubber
from pytest_tfgrpo.production.loop_setting import PREFIX
from pytest_tfgrpo.production.sinks.alerts.alert_caller import AlertCaller
from pytest_tfgrpo.production.sinks.alerts.command import CommandProcess
from pytest_tfgrpo.production.sinks.prometheus.metrics import LoopMetrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_tfgrpo.production.bus.protocol import Bus
    from pytest_tfgrpo.production.config import LoopConfig
    from pytest_tfgrpo.production.service.workers import LoopRole
    from pytest_tfgrpo.production.view.view import LoopView


def metrics_role(bus: Bus, view: LoopView, config: LoopConfig, owner: str) -> LoopMetrics:
    """Return what counts for a scrape."""
    return LoopMetrics(bus, view, owner, ttl_s=config.settings.evaluator.lease_s)


def alert_roles(
    bus: Bus, view: LoopView, config: LoopConfig, environ: Mapping[str, str], owner: str
) -> list[LoopRole]:
    """Return what calls the command of alerts, if there is one; it has the variables but the loop's own."""
    command = config.settings.alerts.command
    if not command:
        return []
    passed = {name: value for name, value in environ.items() if not name.startswith(PREFIX)}
    return [
        AlertCaller(
            bus,
            view,
            owner,
            call=partial(CommandProcess(config.path.absolute().parent, passed), command),
            scrub=open_scrubber(config).text,
            ttl_s=config.settings.evaluator.lease_s,
        )
    ]
