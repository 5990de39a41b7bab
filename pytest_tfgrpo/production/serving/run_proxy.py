"""The proxy as one process: a server, what follows the deployments, and what collects."""

from __future__ import annotations

import asyncio
import resource
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.service.limits import ServiceLimits
from pytest_tfgrpo.production.service.server import listen, open_server
from pytest_tfgrpo.production.service.server_run import serve_until
from pytest_tfgrpo.production.serving.collector import ChatCollector
from pytest_tfgrpo.production.serving.follow import ServingFollower
from pytest_tfgrpo.production.serving.policy import VersionChoice
from pytest_tfgrpo.production.serving.proxy import PolicyProxy
from pytest_tfgrpo.production.serving.settings import ProxySettings
from pytest_tfgrpo.production.serving.upstream import Upstream, require_client

LIMITS = ServiceLimits(body_s=120.0, connections=10_000, drain_s=30)
"""Answers of models take long, and are read slowly."""
_SPARE_FILES = 100
"""For the bus, modules that load late, and connections that are to be refused."""


def run_proxy(
    settings: ProxySettings,
    follower: ServingFollower,
    collector: ChatCollector | None,
    *,
    ready: Callable[[str], None],
    stop: threading.Event | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or `stop`; then end the answers that have begun.

    `ready` is called with the URL once it answers. Raises SettingError where the address is taken, or an
    extra is missing.
    """
    require_client()

    def health() -> Mapping[str, Json]:
        state = follower.state
        served = list(state.serving.versions) if state is not None else []
        collected: Mapping[str, Json] = {}
        if collector is not None:
            collected = {"published": collector.published, "dropped": collector.dropped}
        return {"versions": served, "collected": collected}

    limits = replace(LIMITS, connections=connections_within(LIMITS.connections))
    upstream = Upstream(settings.upstream)
    add = None if collector is None else collector.add
    server = open_server(PolicyProxy(upstream.send, VersionChoice(follower), add, health), limits)
    server.config.date_header = False  # the upstream's passes
    with ExitStack() as closing:
        listener = closing.enter_context(listen(settings.host, settings.port))
        closing.callback(follower.close)
        follower.start()
        if collector is not None:
            closing.callback(collector.close)
            collector.start()
        try:
            serve_until(server, listener, ready, stop)
        finally:
            asyncio.run(upstream.close())


def connections_within(most: int) -> int:
    """Return how many clients fit the open files of this process, two each, after raising its soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * most + _SPARE_FILES
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, (soft - _SPARE_FILES) // 2))
