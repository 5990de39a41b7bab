"""A server that runs in a thread until a signal, or whoever started it, ends it."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from pytest_tfgrpo.production.service.server import address_of

if TYPE_CHECKING:
    from uvicorn import Server

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_S = 0.05


def serve_until(
    server: Server,
    listener: socket.socket,
    ready: Callable[[str], None],
    stop: threading.Event | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or `stop`, and then answer what has begun.

    `ready` is called with the URL once it answers. A second signal ends the process as it would without us.
    Signals are only taken in the main thread.
    """
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
