"""Which choices are exported, and what is said of each."""

import json
from dataclasses import replace

import pytest
from support.live_runs import rollout

from pytest_tfgrpo.production.live.choices_export import choice_lines
from pytest_tfgrpo.production.live.records import ArmChoice, LiveStatus

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


def test_what_is_not_known_of_a_run_is_null() -> None:
    known = rollout(1, [CHOICE], 0.5)
    assert known.reward is not None
    (row,) = map(json.loads, choice_lines([replace(known, prompt="\u00e9")]))
    assert (row["reward"], row["control"], row["rollout"]) == (known.reward.composite, False, known.id)
    (row,) = map(json.loads, choice_lines([replace(known, reward=None, trace=None)]))
    assert (row["reward"], row["score"]) == (None, None)


def test_lines_are_ascii() -> None:
    (line,) = choice_lines([replace(rollout(1, [CHOICE], 0.5), category="caf\u00e9")])
    assert line.isascii()
