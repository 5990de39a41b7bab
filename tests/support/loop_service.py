"""The loop's service with an assembler, in a process: ``python -m support.loop_service BUS PORT``."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

TOKEN = "correct-horse-battery"


class LoopProcess(AbstractContextManager["LoopProcess"]):
    """The service in a process, on a port that stays the same from one start to the next."""

    def __init__(self, bus: Path) -> None:
        self._bus = bus
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "support.loop_service", str(self._bus), str(self._port)]
        tests = str(Path(__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline().rpartition(":")[2])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def end(self, number: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        assert self._process is not None
        with contextlib.closing(self._process.stdout):  # type: ignore[type-var]
            self._process.send_signal(number)
            return self._process.wait(100)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.end(signal.SIGKILL)


def main(bus_path: str, port: str) -> None:
    """Serve until a signal comes."""
    from pytest_tfgrpo.production.assembly.assembler import Assembler
    from pytest_tfgrpo.production.bus.registry import open_bus
    from pytest_tfgrpo.production.service.limits import ListeningAddress
    from pytest_tfgrpo.production.service.run import run_service
    from support.services import real_intake, service_apis

    bus = open_bus(f"embedded:{bus_path}")
    run_service(
        bus=bus,
        intake=real_intake(bus),
        apis=service_apis(None),
        roles=[Assembler(bus, f"process-{os.getpid()}", ttl_s=0.1)],
        address=ListeningAddress(port=int(port), token=TOKEN),
        ready=lambda url: print(url, flush=True),
        report=lambda text: print(text, file=sys.stderr),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
