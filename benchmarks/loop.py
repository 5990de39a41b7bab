"""The parts of the feedback loop against what they are made of, in one run.

    python benchmarks/loop.py [--quick] [--events N]

Bus: the embedded one against appending and syncing the same bytes (in batches of 1,000, and by 64 threads
that wait for one event each), its last tenth of N events against its first, and NATS against nats-py with the
same ids. Rounds alternate with their peer's; each line has medians and the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.nats_server import NatsServer

from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.bus.nats.bus import open_nats
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.storage.event_store import BusEvent

BATCH, PUBLISHERS, SIZE = 1000, 64, 2000
SUBJECT = "agent.rl.reward.v1"
CHANCE = random.Random(0)
DATA = CHANCE.randbytes(SIZE // 2).hex().encode()


def made(count: int) -> list[BusEvent]:
    """Return new events of `SIZE` bytes."""
    return [
        BusEvent(
            id=str(uuid.UUID(int=CHANCE.getrandbits(128))),
            subject=SUBJECT,
            time="2026-01-01T00:00:00Z",
            data=DATA,
        )
        for _ in range(count)
    ]


class BareFile:
    """A file that is appended to and synced; threads that wait together share a sync, as the bus's do."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._waiting: deque[tuple[bytes, threading.Event]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def batch(self, events: Sequence[BusEvent]) -> None:
        """Append the data of events and sync."""
        os.write(self._fd, b"".join([event.data for event in events]))
        os.fsync(self._fd)

    def one(self, event: BusEvent) -> None:
        """Append one event's data, with those of other threads, and wait for the sync."""
        done = threading.Event()
        with self._changed:
            self._waiting.append((event.data, done))
            self._changed.notify()
        done.wait()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
            os.write(self._fd, b"".join([data for data, _ in taken]))
            os.fsync(self._fd)
            for _, done in taken:
                done.set()

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        os.close(self._fd)


def rate(count: int, work: Callable[[], object]) -> float:
    """Return how many of `count` things per second `work` does."""
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


def batches(publish: Callable[[Sequence[BusEvent]], object], events: Sequence[BusEvent]) -> float:
    """Return events per second in batches of `BATCH`."""

    def work() -> None:
        for start in range(0, len(events), BATCH):
            publish(events[start : start + BATCH])

    return rate(len(events), work)


def waiting(publish: Callable[[BusEvent], object], events: Sequence[BusEvent]) -> float:
    """Return events per second of `PUBLISHERS` threads that wait for each of theirs."""

    def each(number: int) -> None:
        for event in events[number::PUBLISHERS]:
            publish(event)

    threads = [threading.Thread(target=each, args=(number,)) for number in range(PUBLISHERS)]

    def work() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return rate(len(events), work)


def show(title: str, ours: Sequence[float], theirs: Sequence[float], bar: float) -> None:
    """Print medians, the median ratio of the rounds, and the bar."""
    ratios = sorted(mine / other for mine, other in zip(ours, theirs, strict=True))
    ratio = statistics.median(ratios)
    passed = "ok" if ratio >= bar else "MISSED"
    print(
        f"{title:<44}{statistics.median(ours):>10,.0f}/s{statistics.median(theirs):>10,.0f}/s"
        f"   {ratio:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})  bar {bar:.2f} {passed}",
        flush=True,
    )


def embedded(folder: Path, rounds: int, per_round: int) -> None:
    """Measure publishing to a file."""
    bus, bare = open_embedded(folder / "bus.db"), BareFile(folder / "bare")
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        events = made(per_round)
        theirs.append(batches(bare.batch, events))
        ours.append(batches(bus.publish, events))
    show("embedded, batches of 1,000 / append and fsync", ours, theirs, 0.25)
    ours, theirs = [], []
    for _ in range(rounds):
        events = made(per_round // 4)
        theirs.append(waiting(bare.one, events))
        ours.append(waiting(lambda event: bus.publish([event]), events))
    show("embedded, 64 waiting publishers / the same", ours, theirs, 0.25)
    bare.close()
    bus.close()


def growth(folder: Path, count: int) -> None:
    """Measure the last tenth of many events against the first, beside a bare file at the same times."""
    bus, bare = open_embedded(folder / "grown.db"), BareFile(folder / "bare")
    parts: list[tuple[float, float]] = []
    processor: list[float] = []
    tenth = count // 10
    for part in range(10):
        ours = theirs = used = 0.0
        for _ in range(tenth // BATCH):
            events = made(BATCH)
            before = time.process_time()
            ours += 1 / rate(1, lambda events=events: bus.publish(events))  # type: ignore[misc]
            used += time.process_time() - before
            if part in (0, 9):
                theirs += 1 / rate(1, lambda events=events: bare.batch(events))  # type: ignore[misc]
        parts.append((ours, theirs))
        processor.append(used)
    (first, first_bare), (last, last_bare) = parts[0], parts[-1]
    ratio, steady = first / last, first / last * last_bare / first_bare
    print(
        f"embedded, last tenth of {count:,} / first     {tenth / last:>10,.0f}/s{tenth / first:>10,.0f}/s   "
        f"{ratio:.2f}, relative to the bare file {steady:.2f}  bar 0.80 {'ok' if ratio >= 0.8 else 'MISSED'}",
        flush=True,
    )
    print("    tenths, s: " + " ".join(f"{ours:.2f}" for ours, _ in parts))
    print("    of the processor, s: " + " ".join(f"{used:.2f}" for used in processor))
    bare.close()
    bus.close()


def nats_py(url: str, batch: Callable[[], list[BusEvent]], rounds: int, ours: Bus) -> None:
    """Measure NATS through us and through nats-py."""
    import nats

    async def peer() -> tuple[list[float], list[float]]:
        client = await nats.connect(url)
        stream = client.jetstream(publish_async_max_pending=2 * BATCH)

        async def publish(events: Sequence[BusEvent]) -> None:
            for start in range(0, len(events), BATCH):
                futures = [
                    await stream.publish_async(
                        event.subject,
                        event.data,
                        headers={"Nats-Msg-Id": event.id, "Tfgrpo-Time": event.time},
                    )
                    for event in events[start : start + BATCH]
                ]
                await asyncio.gather(*futures)

        mine, theirs = [], []
        for _ in range(rounds):
            events = batch()
            began = time.perf_counter()
            await publish(events)
            theirs.append(len(events) / (time.perf_counter() - began))
            events = batch()
            mine.append(await asyncio.to_thread(batches, ours.publish, events))
        await client.close()
        return mine, theirs

    show("NATS, batches of 1,000 / nats-py", *asyncio.run(peer()), 0.8)


def on_nats(folder: Path, rounds: int, per_round: int) -> None:
    """Start a server, and measure publishing to it."""
    if shutil.which("nats-server") is None:
        print("NATS: not measured, there is no nats-server")
        return
    server = NatsServer(folder)
    server.start()
    bus = open_nats(server.url)
    try:
        nats_py(server.url, lambda: made(per_round), rounds, bus)
    finally:
        bus.close()
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few events")
    parser.add_argument("--events", type=int, help="for the comparison of tenths")
    options = parser.parse_args()
    rounds, per_round = (3, 5_000) if options.quick else (9, 20_000)
    count = options.events or (50_000 if options.quick else 1_000_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{SIZE} bytes of data an event; ours, theirs, ratio")
        embedded(folder, rounds, per_round)
        on_nats(folder, rounds, per_round)
        growth(folder, count)


if __name__ == "__main__":
    main()
