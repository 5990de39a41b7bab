"""The streams are those of the docs, for as long and as many as these say."""

from __future__ import annotations

import re

from support import ROOT

from pytest_tfgrpo.core.events import (
    FEEDBACK,
    MODEL_DEPLOYED,
    REWARD,
    TRAINING_REQUEST,
    TRAINING_STATUS,
    TRAJECTORY,
)
from pytest_tfgrpo.production.bus.streams import (
    AUDIT_SUBJECT,
    DAY_S,
    DEAD_SUBJECT,
    SPANS_SUBJECT,
    STREAMS,
    by_subject,
)

UNITS_S = {"day": DAY_S, "days": DAY_S, "year": 365 * DAY_S}


def test_each_stream_keeps_what_the_docs_say() -> None:
    text = (ROOT / "docs" / "feedback-loop.md").read_text()
    told: dict[str, tuple[float, int | None]] = {}
    for names, kept in re.findall(r"^\| (`RL_.*) \| `agent\.rl\..*? \| (.*) \|$", text, re.M):
        found = re.match(r"(\d+) (\w+)(?:, ([\d,]+))?", kept)
        assert found is not None, kept
        count = int(found[3].replace(",", "")) if found[3] else None
        for name in re.findall(r"RL_[A-Z]+", names):
            told[name] = (int(found[1]) * UNITS_S[found[2]], count)
    assert {one.name: (one.max_age_s, one.max_count) for one in STREAMS} == told


def test_each_subject_has_its_stream_and_the_audit_alone_is_a_chain() -> None:
    assert {subject: stream.name for subject, stream in by_subject(STREAMS).items()} == {
        SPANS_SUBJECT: "RL_SPANS",
        TRAJECTORY: "RL_TRAJECTORIES",
        FEEDBACK: "RL_FEEDBACK",
        REWARD: "RL_REWARDS",
        TRAINING_REQUEST: "RL_TRAINING",
        TRAINING_STATUS: "RL_TRAINING",
        MODEL_DEPLOYED: "RL_DEPLOYMENTS",
        DEAD_SUBJECT: "RL_DEAD",
        AUDIT_SUBJECT: "RL_AUDIT",
    }
    assert [stream.name for stream in STREAMS if stream.chained] == ["RL_AUDIT"]
