"""The command ``tfgrpo loop status``: how far the loop is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from pytest_tfgrpo.cli.loop.open_loop import current_view, existing_bus
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.monitor_state import monitor_state
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.report.serving_lines import serving_lines
from pytest_tfgrpo.production.report.status import status_lines, status_of
from pytest_tfgrpo.production.report.training_lines import training_figures, training_lines
from pytest_tfgrpo.production.sinks.alerts.alert_lines import alert_lines
from pytest_tfgrpo.production.sinks.alerts.alert_state import alert_state
from pytest_tfgrpo.production.sinks.figures import sink_lines, sinks_status
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.storage.event_store import STATE


def status(arguments: Arguments) -> Iterator[str]:
    """Print what is stored, what waits, and who does which job."""
    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        found = status_of(bus, view, config.public_bus)
        chosen = config.settings.training
        runs_here = bool(chosen.project or chosen.command)
        alerts = alert_state(bus.table(STATE))
        serving, monitor = Deployments(bus).serving(), monitor_state(bus)
        sinks = sinks_status(bus)
        training = training_figures(TrainingJobs(bus, "").listed(), runs_here=runs_here)
    if arguments.json:
        served = {"live": serving.live, "ramp": to_wire(serving.ramp), "waits_for": monitor.waits}
        served["skipped"] = monitor.skipped
        called = {"ok": alerts.ok, "failed": alerts.failed, "last_failure": alerts.last_failure}
        filled = {name: asdict(sink) for name, sink in sinks.items()}
        more = {"training": training, "serving": served, "alerts": called, "sinks": filled}
        yield json.dumps({**asdict(found), **more}, indent=1)
        return
    yield from status_lines(found)
    yield from sink_lines(sinks)
    yield from training_lines(training)
    if serving != Serving() or monitor.skipped:
        yield from serving_lines(serving, monitor)
    yield from alert_lines(alerts)
