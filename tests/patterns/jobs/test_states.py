"""The table of the states of a job."""

import random
from typing import get_args

import pytest

from pytest_tfgrpo.patterns.jobs.manifest import LearningStatus
from pytest_tfgrpo.patterns.jobs.states import (
    ENDED,
    JOBS,
    NEW,
    LearningTrigger,
    first_trigger,
    leads_to,
    needs_person,
)

TABLE = {
    "": {"queued", "refused", "snapshot_failed"},
    "queued": {"running"},
    "running": {"queued", "validated", "validation_failed", "stalled_snapshot", "needs_manual_scenario"},
    "snapshot_failed": {"queued"},
    "stalled_snapshot": {"queued"},
    "needs_manual_scenario": {"queued"},
    "validation_failed": {"queued"},
}
"""Of the documentation: where a job may go from a status."""


def test_the_table_is_that_of_the_documentation():
    found = {}
    for (state, _), (after, _) in JOBS.rows.items():
        found.setdefault(state, set()).add(after)
    assert found == TABLE
    assert JOBS.final == {"validated", "refused"}
    assert {trigger for _, trigger in JOBS.rows} == set(get_args(LearningTrigger))
    assert set(LearningStatus) - {"queued", "running"} == ENDED


def test_no_sequence_of_events_leads_out_of_the_table():
    draw, triggers = random.Random(0), get_args(LearningTrigger)
    refused = taken = 0
    for _ in range(10_000):
        state = NEW
        for _ in range(12):
            trigger = draw.choice(triggers)
            try:
                after = leads_to(state, trigger)
            except ValueError:
                refused += 1
                continue
            assert after in TABLE[state], (state, trigger)
            state, taken = after, taken + 1
    assert min(refused, taken) > 1000


def test_what_is_not_in_the_table_says_where_it_leads_on_from():
    with pytest.raises(ValueError, match="'validated', and 'requeue' leads on only from needs_manual_sc"):
        leads_to("validated", "requeue")


@pytest.mark.parametrize(
    ("status", "proposed", "trigger"),
    [
        ("queued", False, "capture"),
        ("queued", True, "propose"),
        ("refused", True, "refuse"),
        ("snapshot_failed", False, "miss"),
    ],
)
def test_a_new_job_begins_where_its_capture_ended(status, proposed, trigger):
    assert first_trigger(LearningStatus(status), proposed=proposed) == trigger


def test_a_new_job_does_not_begin_as_proven():
    with pytest.raises(ValueError, match="a new job cannot be 'validated'"):
        first_trigger(LearningStatus.VALIDATED, proposed=False)


def test_a_person_is_needed_where_nothing_happens_without_one():
    needed = {(state, trigger) for state, trigger in JOBS.rows if needs_person(state, trigger)}
    assert {trigger for _, trigger in needed} == {"propose", "miss", "give_up", "stall", "defer"}
