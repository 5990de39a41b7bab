"""The lines of an evidence file."""

import json

import pytest

from pytest_tfgrpo.core.evidence import (
    EvidenceAttempt,
    EvidenceGroup,
    EvidenceHeader,
    EvidenceStep,
    evidence_lines,
)
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import from_wire

HEADER = EvidenceHeader(
    created_at="2026-01-02T03:04:05Z",
    filter={"min_reward": 0.5},
    sample_size=10,
    seed=3,
    watermark={"RL_TRAJECTORIES": 7},
    counts={"trajectories": 4, "attempts": 2, "groups": 1, "left_out": {"no_reward": 2}},
)
GROUP = EvidenceGroup(
    domain="orders",
    prompt="Where is order 17?",
    task_key="order-17",
    attempts=(
        EvidenceAttempt(total_reward=0.0, answer=""),
        EvidenceAttempt(
            total_reward=1.0,
            answer="shipped",
            trajectory_id="t1",
            steps=(EvidenceStep(kind="tool", name="lookup", input={"id": 17}, output="shipped"),),
        ),
    ),
)


def test_the_lines_fit_their_schemas_and_come_back_equal() -> None:
    header, group = map(json.loads, evidence_lines(HEADER, [GROUP]))
    assert (violations("evidence-header", header), violations("evidence-group", group)) == ([], [])
    assert header.pop("schema") == "tfgrpo.evidence/1"
    assert (from_wire(EvidenceHeader, header), from_wire(EvidenceGroup, group)) == (HEADER, GROUP)


def test_a_header_needs_no_more_than_its_schema() -> None:
    assert list(evidence_lines(EvidenceHeader(), ())) == ['{"schema":"tfgrpo.evidence/1"}\n']


def test_a_group_without_an_id_is_known_by_its_content() -> None:
    other = EvidenceGroup(domain="orders", prompt="?", attempts=GROUP.attempts)
    assert GROUP.key != other.key
    assert GROUP.key == EvidenceGroup(**{f: getattr(GROUP, f) for f in GROUP.__slots__}).key
    assert EvidenceGroup(id="g1", domain="orders", prompt="?", attempts=GROUP.attempts).key == "g1"


@pytest.mark.parametrize(
    "broken",
    [
        {"attempts": [{"total_reward": 1.0, "answer": "a"}]},
        {"attempts": [{"total_reward": 1.5, "answer": "a"}] * 2},
        {"attempts": [{"total_reward": None, "answer": "a"}] * 2},
        {"attempts": [{"total_reward": 0.5}] * 2},
        {"prompt": ""},
        {"id": "../x"},
        {"reward": 1},
    ],
)
def test_what_is_no_group_is_refused(broken: dict[str, object]) -> None:
    _, line = evidence_lines(HEADER, [GROUP])
    assert violations("evidence-group", json.loads(line) | broken)


def test_a_group_is_known_by_its_id_or_by_what_it_is_and_texts_stay_as_they_are() -> None:
    named = EvidenceGroup(id="g", domain="d", prompt="Größe?", attempts=GROUP.attempts)
    assert named.key == "g"
    assert len(GROUP.key) == 16
    assert GROUP.key != EvidenceGroup(domain="d", prompt="x", attempts=GROUP.attempts).key
    header, line = evidence_lines(EvidenceHeader(), [named])
    assert header == '{"schema":"tfgrpo.evidence/1"}\n'
    assert '"prompt":"Größe?"' in line
    assert line.endswith("}\n")
