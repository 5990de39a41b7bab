"""Attempts of production as rows: what they have, and what only a run's own attempts have."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from support.evidence import CALC, group, write

from pytest_tfgrpo.core.evidence import EvidenceAttempt, EvidenceGroup
from pytest_tfgrpo.export.evidence import EvidenceSource
from pytest_tfgrpo.export.export import Export, write_rows
from pytest_tfgrpo.export.source import CALLS_TOOLS
from pytest_tfgrpo.suite.evidence_file import EvidenceFile

BARE = EvidenceGroup(
    id="bare",
    domain="orders",
    prompt="What is 1 and 1?",
    attempts=(
        EvidenceAttempt(total_reward=0.25, answer="two", lessons=("l1", "l2")),
        EvidenceAttempt(total_reward=0.25, answer="three"),
    ),
)


def source_of(folder: Path, *groups: EvidenceGroup, keep: Any = lambda _: True) -> EvidenceSource:
    return EvidenceSource(EvidenceFile(write(folder / "evidence.jsonl", groups)), "job1", keep)


def rows_of(source: EvidenceSource, folder: Path, **wanted: Any) -> tuple[list[Any], list[str]]:
    target = folder / "rows.jsonl"
    said = [*write_rows(source, target, Export(**{"format": "rollouts", **wanted}))]
    return [json.loads(line) for line in target.read_bytes().splitlines()], said


def test_a_row_has_the_reward_of_production_and_nothing_that_was_drawn(tmp_path: Path) -> None:
    source = source_of(tmp_path, group(1), BARE)
    rows, said = rows_of(source, tmp_path)
    assert said[0].endswith("4 rows from 2 groups of the evidence of job1")
    assert [(row["rollout_id"], row["reward"], row["lessons"]) for row in rows] == [
        ("t1-0", 0.9, 0),
        ("t1-1", 0.1, 0),
        ("evidence-bare.0", 0.25, 2),
        ("evidence-bare.1", 0.25, 0),
    ]
    first = rows[0]
    kept = ("run_id", "actor", "seed", "temperature", "gt_score", "run_advantage", "domain", "epoch")
    assert [first[key] for key in kept] == ["job1", "", None, None, None, None, "general", 1]
    assert [(m["role"], m["content"]) for m in first["messages"]] == [
        ("user", "Task 1: what is the sum of 1 and 1?"),
        ("assistant", ""),
        ("tool", "2"),
        ("assistant", "answer 1-0"),
    ]
    assert [row["advantage_reason"] for row in rows] == ["", "", "zero_spread", "zero_spread"]


def test_only_the_groups_that_are_kept_are_rows_and_those_with_tools_come_first(tmp_path: Path) -> None:
    source = source_of(tmp_path, group(1), BARE, group(2), keep=lambda one: one.key != "g1")
    assert [id_ for id_, _ in source.groups()] == ["evidence-bare", "evidence-g2"]
    assert [source.flags(id_) for id_, _ in source.groups()] == [0, CALLS_TOOLS]
    assert [source.load(id_).informative for id_, _ in source.groups()] == [False, True]
    rows, _ = rows_of(source, tmp_path)
    assert [row["group_id"] for row in rows][::2] == ["evidence-g2", "evidence-bare"]
    assert source.left_out == Counter({"below the least reward": 0})


def test_evidence_gives_pairs_and_prompts_too(tmp_path: Path) -> None:
    source = source_of(tmp_path, group(1), BARE)
    (pair,), said = rows_of(source, tmp_path, format="preference")
    assert (pair["chosen_id"], pair["rejected_id"], pair["domain"]) == ("t1-0", "t1-1", "general")
    assert said[1] == "left out: groups without a pair 1"
    prompts, _ = rows_of(source, tmp_path, format="prompt", bare=True)
    assert [row["prompt"] for row in prompts] == [
        [{"role": "user", "content": "Task 1: what is the sum of 1 and 1?"}],
        [{"role": "user", "content": "What is 1 and 1?"}],
    ]
    assert prompts[1]["data_source"] == "job1"
    assert CALC.kind == "tool"
