"""The service as one process: a server, the roles beside it, and an orderly end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.service.apis import ServiceApis
from pytest_tfgrpo.production.service.app import LoopService, open_app
from pytest_tfgrpo.production.service.limits import ListeningAddress, ServiceLimits, check_reach
from pytest_tfgrpo.production.service.readers import READERS
from pytest_tfgrpo.production.service.reports import FirstReports
from pytest_tfgrpo.production.service.server import listen, open_server
from pytest_tfgrpo.production.service.server_run import serve_until
from pytest_tfgrpo.production.service.workers import LoopRole, Workers


def run_service(
    *,
    bus: Bus,
    intake: Intake,
    apis: ServiceApis,
    roles: Sequence[LoopRole] = (),
    address: ListeningAddress,
    limits: ServiceLimits | None = None,
    ready: Callable[[str], None],
    report: Callable[[str], None],
    stop: threading.Event | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or `stop`; then answer what has begun, and close the roles and the bus.

    `ready` is called with the service's URL once it answers, and `report` from any
    thread with each distinct error that the service outlives. A second signal ends the process as it would
    without us. Signals are only taken in the main thread. `roles`, `intake` and `bus` are the service's
    from here on: the bus is closed at last, also where this raises SettingError: others reach the address
    and there is no token, or it is taken, or the extra ``serve`` is missing.
    """
    limits = limits or ServiceLimits()
    reports = FirstReports(report)
    with ExitStack() as closing:
        closing.callback(bus.close)
        workers = Workers(roles, reports.say)
        closing.callback(workers.close)
        check_reach(address.host, address.token)
        for read in READERS.values():
            read(b"", form="protobuf", place="")  # raises at once what the first request would
        service = LoopService(
            intake,
            READERS,
            token=address.token,
            limits=limits,
            roles=workers.states,
            apis=apis,
            report=reports.say,
        )
        closing.callback(service.close)
        server = open_server(open_app(service), limits)
        listener = closing.enter_context(listen(address.host, address.port))
        workers.start()
        serve_until(server, listener, ready, stop)
