"""Where an assembler stands, and that streams which end before it were made anew."""

from __future__ import annotations

import pytest

from pytest_tfgrpo.production.assembly.state import AssemblyState

STATE = AssemblyState(cursor=10, trajectories_from=5, late=3)


@pytest.mark.parametrize(
    ("spans", "trajectories", "whole"),
    [(10, 4, True), (99, 99, True), (9, 99, False), (99, 3, False)],
)
def test_a_state_beyond_the_end_of_a_stream_begins_anew(spans: int, trajectories: int, whole: bool) -> None:
    assert STATE.within(spans, trajectories) == (STATE if whole else AssemblyState(late=3))


def test_traces_up_to_a_sequence_are_sure() -> None:
    assert STATE.is_sure(99)
    assert STATE.unsure(7).is_sure(7)
    assert not STATE.unsure(7).is_sure(8)


def test_a_state_is_read_as_it_was_written_and_what_is_unknown_is_left_out() -> None:
    assert AssemblyState.of({**STATE.value(), "later": 1}) == STATE
    assert AssemblyState.of(None) == AssemblyState()
