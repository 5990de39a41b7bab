"""What calls say of a trace adds up, and the traces that came last are remembered."""

from __future__ import annotations

import pytest

from pytest_tfgrpo.production.door import seen_traces
from pytest_tfgrpo.production.door.seen_traces import SeenTrace, SeenTraces


def test_what_calls_say_of_a_trace_adds_up() -> None:
    seen = SeenTraces()
    assert seen.add("t", ["s"], [], dropped=False) == SeenTrace(frozenset({"s"}))
    assert seen.add("t", ["r"], ["u"], dropped=True) == SeenTrace(
        frozenset({"r", "s"}), frozenset({"u"}), True
    )
    assert seen.add("t", [], [], dropped=False).dropped
    assert seen.add("other", [], [], dropped=False) == SeenTrace()
    assert ("t" in seen, "other" in seen, 5 in seen) == (True, False, False)


def test_the_trace_that_was_named_longest_ago_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_traces, "_REMEMBERED", 2)
    seen = SeenTraces()
    for trace in ("a", "b", "a", "c"):
        seen.add(trace, [], [], dropped=True)
    assert ["a" in seen, "b" in seen, "c" in seen] == [True, False, True]
    for n in range(9):
        seen.add(f"nothing is said of {n}", [], [], dropped=False)
    assert ["a" in seen, "c" in seen] == [True, True]
