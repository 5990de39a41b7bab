"""The service as one process: a server, the roles beside it, and an orderly end."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.intake import Intake
from pytest_tfgrpo.production.service.apis import ServiceApis
from pytest_tfgrpo.production.service.app import LoopService, open_app
from pytest_tfgrpo.production.service.limits import ListeningAddress, ServiceLimits, check_reach
from pytest_tfgrpo.production.service.readers import READERS
from pytest_tfgrpo.production.service.reports import FirstReports
from pytest_tfgrpo.production.service.server import address_of, listen, open_server
from pytest_tfgrpo.production.service.workers import LoopRole, Workers

if TYPE_CHECKING:
    from uvicorn import Server

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_S = 0.05


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
        with _signals_end(server):
            _serve(server, listener, ready, stop or threading.Event())


def _serve(
    server: Server, listener: socket.socket, ready: Callable[[str], None], stop: threading.Event
) -> None:
    """Run the server in a thread, so that it leaves signals alone, until it ends or is to."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            server.run([listener])
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            failures.append(error)

    address = address_of(listener)
    thread = threading.Thread(target=run, name="tfgrpo-service", daemon=True)
    thread.start()
    try:
        while thread.is_alive() and not (server.started or server.should_exit):
            thread.join(_LOOK_S)
        if server.started:
            ready(address)
        while thread.is_alive() and not stop.is_set():
            thread.join(_LOOK_S)
    finally:
        server.should_exit = True
        thread.join()
    if failures:
        raise failures[0]


@contextmanager
def _signals_end(server: Server) -> Iterator[None]:
    """Let the first signal stop the server, and give the second one back what it did before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - it is a handler
        server.should_exit = True
        restore()

    for number in _SIGNALS:
        signal.signal(number, end)
    try:
        yield
    finally:
        restore()
