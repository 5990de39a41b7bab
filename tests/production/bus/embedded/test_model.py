"""The embedded bus does what a plain model of it says, whatever the order of calls."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.buses import STREAM, Clock, EmbeddedPlace, event

from pytest_tfgrpo.production.bus.protocol import ACK_WAIT_S, DEDUPE_S, MAX_DELIVERIES
from pytest_tfgrpo.production.bus.streams import DEAD
from pytest_tfgrpo.storage.event_store import BusEvent

NUMBERS = st.integers(0, 12)
SIZES = st.sampled_from([1, 500, 20_000, 70_000])


@dataclass
class Delivery:
    """Of one event to the consumer."""

    attempts: int
    due_at: float


class BusMachine(RuleBasedStateMachine):
    """Two openings of one file, one consumer, and a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.place = EmbeddedPlace(Path(self.folder.name))
        self.place.clock = self.clock = Clock()
        self.buses = [self.place.open(), self.place.open()]
        self.consumers = [bus.consumer(STREAM, "one") for bus in self.buses]
        self.stored: list[tuple[int, bytes | None, float]] = []
        self.cursor = 0
        self.pending: dict[int, Delivery] = {}
        self.dead = 0
        self.held: dict[int, BusEvent] = {}

    @rule(which=st.integers(0, 1), numbers=st.lists(NUMBERS, min_size=1, max_size=6), size=SIZES)
    def publish(self, which: int, numbers: list[int], size: int) -> None:
        expected = []
        for number in numbers:
            known = [
                n
                for n, (has, _, at) in enumerate(self.stored, 1)
                if has == number and at > self.clock.now - DEDUPE_S
            ]
            if not known:
                self.stored.append((number, b"%d" % number * size, self.clock.now))
            expected.append(known[-1] if known else len(self.stored))
        sent = [event(number, b"%d" % number * size) for number in numbers]
        assert self.buses[which].publish(sent) == expected

    @rule(which=st.integers(0, 1), limit=st.integers(1, 5))
    def fetch(self, which: int, limit: int) -> None:
        due = sorted(n for n, one in self.pending.items() if one.due_at <= self.clock.now)[:limit]
        fresh = list(range(self.cursor + 1, len(self.stored) + 1))[: limit - len(due)]
        expected = []
        for sequence in due + fresh:
            attempts = self.pending[sequence].attempts + 1 if sequence in self.pending else 1
            if self.stored[sequence - 1][1] is None:
                self.pending.pop(sequence, None)
            elif attempts > MAX_DELIVERIES:
                del self.pending[sequence]
                self.dead += 1
            else:
                self.pending[sequence] = Delivery(attempts, self.clock.now + ACK_WAIT_S)
                expected.append((sequence, attempts))
        self.cursor = max([self.cursor, *fresh])
        got = self.consumers[which].fetch(limit, 0)
        assert [(e.sequence, e.attempts) for e in got] == expected
        assert [e.data for e in got] == [self.stored[n - 1][1] for n, _ in expected]
        self.held |= {e.sequence: e for e in got}

    @rule(which=st.integers(0, 1), pick=st.integers(0, 20))
    def ack(self, which: int, pick: int) -> None:
        if self.held:
            sequence = sorted(self.held)[pick % len(self.held)]
            self.consumers[which].ack([self.held.pop(sequence)])
            self.pending.pop(sequence, None)

    @rule(which=st.integers(0, 1), pick=st.integers(0, 20), delay=st.sampled_from([0.0, 10.0, 100.0]))
    def nak(self, which: int, pick: int, delay: float) -> None:
        if self.held:
            sequence = sorted(self.held)[pick % len(self.held)]
            self.consumers[which].nak([self.held.pop(sequence)], delay)
            if sequence in self.pending:
                self.pending[sequence].due_at = self.clock.now + delay

    @rule(which=st.integers(0, 1), number=NUMBERS)
    def delete(self, which: int, number: int) -> None:
        there = [n for n, (has, data, _) in enumerate(self.stored) if has == number and data is not None]
        assert self.buses[which].delete(STREAM, [event(number).id]) == len(there)
        for place in there:
            self.stored[place] = (number, None, self.stored[place][2])

    @rule(seconds=st.sampled_from([1.0, 31.0, 1000.0, DEDUPE_S]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.buses[which].close()
        self.buses[which] = self.place.open()
        self.consumers[which] = self.buses[which].consumer(STREAM, "one")

    @invariant()
    def all_that_is_stored_is_replayed(self) -> None:
        expected = [(n, data) for n, (_, data, _) in enumerate(self.stored, 1) if data is not None]
        assert [(e.sequence, e.data) for e in self.buses[0].replay(STREAM)] == expected
        assert self.buses[1].last(DEAD) == self.dead
        assert self.consumers[1].lag() == len(self.pending) + len(self.stored) - self.cursor

    def teardown(self) -> None:
        self.place.close()
        self.folder.cleanup()


TestEmbeddedBus = BusMachine.TestCase
TestEmbeddedBus.settings = settings(max_examples=12, stateful_step_count=30, deadline=None)
