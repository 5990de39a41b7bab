"""Which choices are exported, and what is said of each."""

import json

import pytest
from support.live_runs import rollout

from pytest_tfgrpo.live.choices_export import choice_lines
from pytest_tfgrpo.live.records import ArmChoice, LiveStatus

CHOICE = ArmChoice(
    point="config", arm="warm", probabilities={"bare": 0.25, "warm": 0.75},
    arms={"bare": "1", "warm": "2"}, selector=3, place=1,
)  # fmt: skip


@pytest.mark.parametrize("status", list(LiveStatus))
def test_choices_of_runs_that_succeeded_or_failed_are_exported(status: LiveStatus) -> None:
    rows = [json.loads(line) for line in choice_lines([rollout(1, [CHOICE], 0.5, status=status)])]
    assert bool(rows) == (status in (LiveStatus.SUCCEEDED, LiveStatus.FAILED))


def test_a_line_has_context_choice_and_reward() -> None:
    (line,) = choice_lines([rollout(1, [CHOICE], 0.5)])
    row = json.loads(line)
    assert row["context"] == {"category": "freight", "point": "config", "place": 1}
    assert (row["arm"], row["propensity"], row["score"], row["selector"]) == ("warm", 0.75, 0.5, 3)
