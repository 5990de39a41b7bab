"""The command ``tfgrpo loop serve``: the service that takes what comes in and scores it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

from pytest_tfgrpo.cli.loop.loop_roles import (
    deployment_role,
    flag_roles,
    open_roles,
    owner_name,
    training_roles,
)
from pytest_tfgrpo.cli.loop.observe.observing_roles import alert_roles, metrics_role
from pytest_tfgrpo.cli.loop.observe.sink_roles import sink_roles
from pytest_tfgrpo.cli.loop.open_loop import load_config, open_configured, open_scrubber, warn
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.service.apis import ServiceApis
from pytest_tfgrpo.production.service.limits import ListeningAddress, ServiceLimits, check_reach
from pytest_tfgrpo.production.service.run import run_service
from pytest_tfgrpo.production.service.training import TrainingApi
from pytest_tfgrpo.production.sinks.prometheus.exposition import metrics_page
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.view.view import LoopView


def serve(arguments: Arguments) -> Iterator[str]:
    """Take traces and feedback over HTTP, and score them, until SIGTERM or Ctrl-C.

    Prints a line once the service answers, and yields one when it has stopped.
    """
    config = load_config(arguments.config)
    settings, scrubber = config.settings, open_scrubber(config)
    check_reach(settings.service.host, settings.service.token or "")
    largest = settings.service.max_body_mb << 20
    with ExitStack() as closing:
        view = LoopView(config.view_path)
        closing.callback(view.close)
        bus = open_configured(config)
        with ExitStack() as unused:
            unused.callback(bus.close)
            opt_outs = OptOuts(bus, scrubber)
            roles = open_roles(bus, view, config, opt_outs, settle_s=settings.assembler.settle_s)
            jobs = TrainingJobs(bus, owner_name())
            roles += training_roles(bus, view, config, jobs, os.environ)
            roles += [deployment_role(bus, view, config), *flag_roles(bus, config)]
            metrics = metrics_role(bus, view, config, owner_name())
            roles += [metrics, *alert_roles(bus, view, config, os.environ, owner_name())]
            page = metrics_page(metrics.samples)
            roles += sink_roles(bus, config, owner_name())
            unused.pop_all()  # the service closes them
        run_service(
            bus=bus,
            intake=Intake(bus, scrubber, opt_outs),
            apis=ServiceApis(TrainingApi(jobs, scrubber), page),
            roles=roles,
            address=ListeningAddress(
                host=settings.service.host, port=settings.service.port, token=settings.service.token or ""
            ),
            limits=ServiceLimits(body_bytes=largest, held_bytes=max(4 * largest, 128 << 20)),
            ready=lambda url: print(f"serving    {url}, bus {config.public_bus}", flush=True),
            report=lambda text: warn(scrubber.text(text)),  # an error may quote what came in
        )
    yield "stopped    what was accepted is on the bus"
