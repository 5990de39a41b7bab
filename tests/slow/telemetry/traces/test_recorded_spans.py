"""Spans of one toy agent, as frameworks wrote them: the scripts ``record_*.py`` have recorded them."""

import json
import random
from collections import Counter
from typing import Any

import pytest
from support.traces.recorded_spans import FILES, lines_of, runs_of

from pytest_tfgrpo.production.live.intake.spans import events_of

JUNK = (
    None,
    True,
    -1,
    1e308,
    "",
    "x",
    "9" * 400,
    "NaN",
    '[{"parts": 3}]',
    "[" * 3000,
    [],
    [[]],
    {},
    {"a": 1},
)


def damaged(value: Any, random: random.Random) -> Any:
    """Return JSON in which one value, at any depth, is another."""
    if isinstance(value, dict | list) and value and random.random() < 0.9:
        key = random.choice(list(value) if isinstance(value, dict) else range(len(value)))
        changed = value.copy()
        changed[key] = damaged(value[key], random)
        return changed
    if isinstance(value, str) and value[:1] == "[" and random.random() < 0.7:
        return json.dumps(damaged(json.loads(value), random))
    return random.choice(JUNK)


@pytest.mark.parametrize("name", FILES)
def test_whatever_is_damaged_in_a_span_is_read_or_refused(name: str) -> None:
    lines, refused = lines_of(name), Counter[str]()
    chance = random.Random(f"damage {name}")
    for _ in range(250):
        place = chance.randrange(len(lines))
        text = json.dumps(damaged(json.loads(lines[place]), chance)).encode() + b"\n"
        runs, forest = runs_of(*lines[:place], text, *lines[place + 1 :])
        refused.update(one.reason for one in forest.refused)
        for run in runs:
            assert [event.kind for event in events_of(run, texts=True)][:: len(run.steps) + 1] == [
                "start",
                "end",
            ]
    assert refused.keys() >= {"malformed", "bad_id", "incomplete"}
