"""Spans of rollouts, where garbage collection ends spans and rollouts in the middle of a change."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import set_span_in_context
from support.abandoned import abandon, repeat_among_collections

from pytest_tfgrpo.telemetry.traces import rollout_spans
from pytest_tfgrpo.telemetry.traces.rollout_spans import RolloutSpans, open_rollout_spans
from pytest_tfgrpo.telemetry.traces.span_counts import SpanCounts

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


class Bench:
    """Rollouts whose agents trace with a provider of their own."""

    def __init__(self) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.tracer = self.provider.get_tracer("toy")
        self.counts = SpanCounts()

    def open(self) -> RolloutSpans:
        found = open_rollout_spans(self.counts)
        assert found is not None
        return found

    def begin(self) -> Callable[[], None]:
        """Start a turn, and return what ends it."""
        return self.tracer.start_span("chat", attributes=CHAT).end


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    plain = isinstance(rollout_spans._LOCK, type(threading.Lock()))
    lock = threading.Lock() if plain else threading.RLock()  # one that hangs is this test's own
    monkeypatch.setattr(rollout_spans, "_LOCK", lock)
    monkeypatch.setattr(rollout_spans, "installed_provider", lambda: made.provider)
    return made


def test_turns_that_garbage_collection_ends_are_kept_or_counted_once(bench: Bench) -> None:
    spans = bench.open()

    def step() -> None:
        abandon(bench.begin)  # of no rollout
        with spans.around():
            abandon(bench.begin)
            bench.begin()()

    repeat_among_collections(step, times=150, places=75)
    assert len(spans.take()) == 300
    assert (dict(spans.unused), bench.counts.counted) == ({}, {"lost": 150})


def test_turns_are_kept_or_late_when_garbage_collection_ends_them_while_they_are_taken(bench: Bench) -> None:
    kept = late = 0

    def step() -> None:
        nonlocal kept, late
        spans = bench.open()
        with spans.around():
            for _ in range(3):
                abandon(bench.begin)
        kept += len(spans.take())
        late += spans.unused["late"]

    repeat_among_collections(step, times=100, places=50)
    assert (kept + late, bench.counts.counted.get("late", 0)) == (300, late)


def test_rollouts_that_garbage_collection_drops_change_nothing_for_the_others(bench: Bench) -> None:
    spans = bench.open()

    def step() -> None:
        abandon(lambda: bench.open().drop)
        with bench.tracer.start_as_current_span("request"):  # of no rollout
            with spans.around():
                bench.begin()()
            bench.begin()()

    repeat_among_collections(step, times=150, places=75)
    assert len(spans.take()) == 150
    assert bench.counts.counted == {"lost": 150}


def test_counts_are_exact_where_what_interrupts_a_count_counts_too() -> None:
    counts = SpanCounts()

    class Interrupted(str):
        """A reason whose hash counts another time, as garbage collection may in the middle of a count."""

        def __hash__(self) -> int:
            if not interrupted:
                interrupted.append(True)
                counts.count(str(self))
            return super().__hash__()

    def step() -> None:
        interrupted.clear()
        counts.count(Interrupted("late"))

    interrupted: list[bool] = []
    repeat_among_collections(step, times=20, places=1)
    assert counts.counted == {"late": 40}


def test_counts_are_exact_where_threads_count_too() -> None:
    counts = SpanCounts()

    def work() -> None:
        for n in range(2000):
            counts.count(f"reason {n % 7}")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts.counted.values()) == 8000


def test_a_turn_that_begins_once_its_rollout_has_ended_is_late(bench: Bench) -> None:
    spans = bench.open()
    with spans.around():
        bench.begin()()
        assert len(spans.take()) == 1
        bench.begin()()
    assert (dict(spans.unused), bench.counts.counted, len(spans.keys)) == ({"late": 1}, {"late": 1}, 1)


def test_what_was_not_used_is_one_sentence_where_it_was_looked_for() -> None:
    counts = SpanCounts()
    counts.wanted = True
    assert counts.warnings == []
    counts.count("odd")
    counts.count("loop", 2)
    assert counts.warnings == ["spans of the agent that became no frames: 2 loop (its own ancestor), 1 odd"]
    counts.wanted = False
    assert counts.warnings == []


def test_spans_beyond_what_is_kept_of_a_rollout_are_counted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout_spans, "MOST_SPANS", 2)
    spans = bench.open()
    with spans.around():
        for _ in range(3):
            bench.begin()()
    assert len(spans.take()) == 2
    assert (dict(spans.unused), bench.counts.counted) == ({"too_many": 1}, {"too_many": 1})


def test_a_span_in_a_thread_of_its_own_belongs_to_the_rollout_of_its_parent(bench: Bench) -> None:
    spans, other = bench.open(), bench.open()
    with spans.around():
        parent = bench.tracer.start_span("agent")
    below = set_span_in_context(parent)
    with other.around():
        bench.tracer.start_span("chat", context=below, attributes=CHAT).end()
    parent.end()
    bench.tracer.start_span("chat", context=below, attributes=CHAT).end()  # its parent has ended
    assert (len(spans.take()), len(other.take()), bench.counts.counted) == (3, 0, {})
