"""Assemblers that die: ``python -m support.assembler_kills BUS SEED KILLS``.

Each kill forks a process that assembles, and ends it with SIGKILL at a random moment; some are stopped first,
so that another takes over, and go on beside that one. The last one works to the end of the stream.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from pytest_tfgrpo.core.errors import BusError
from pytest_tfgrpo.production.assembly import assembly
from pytest_tfgrpo.production.assembly.assembler import Assembler
from pytest_tfgrpo.production.bus.registry import open_bus

TTL_S, IDLE_S = 0.1, 0.5


def work(spec: str, owner: str, *, seconds: float) -> None:
    """Assemble; with `seconds` 0 until nothing is open."""
    bus = open_bus(spec)
    worker = Assembler(bus, owner, idle_s=IDLE_S, ttl_s=TTL_S)
    until = time.monotonic() + (seconds or 3600)
    silent = 0
    while time.monotonic() < until and silent < 200:
        try:
            silent = 0 if worker.step() or seconds else silent + 1
        except BusError:
            if not seconds:
                raise
        if silent:
            time.sleep(0.01)
    worker.close()
    bus.close()


def main() -> None:
    spec, seed, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
    chance = random.Random(seed)
    setattr(assembly, "_STEP_EVENTS", 20)  # noqa: B010 - so that there are many moments
    children: list[int] = []
    for number in range(kills):
        child = os.fork()
        if not child:
            work(spec, f"child {number}", seconds=60)
            os._exit(0)
        children.append(child)
        time.sleep(chance.uniform(TTL_S, 2.5 * TTL_S))
        if chance.random() < 0.3:
            os.kill(child, signal.SIGSTOP)
            continue
        for one in children:
            os.kill(one, signal.SIGCONT)
        time.sleep(chance.uniform(0, 0.02))
        for one in children:
            os.kill(one, signal.SIGKILL)
            os.waitpid(one, 0)
        children.clear()
    for one in children:
        os.kill(one, signal.SIGKILL)
        os.waitpid(one, 0)
    work(spec, "last", seconds=0)


if __name__ == "__main__":
    main()
