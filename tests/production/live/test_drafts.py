"""Texts of runs in a draft of a suite."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.live_runs import rollout

from pytest_tfgrpo.production.live.drafts import _scalar, drafts_of, write_drafts
from pytest_tfgrpo.production.live.records import LiveRollout


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "a: b # c",
        'quo"ted \\ back',
        "two\nlines\ttab",
        "\u200b zero width",
        "\U000e0001 a tag",
        "\x85\u2028",
    ],
)
def test_a_text_is_one_line_of_yaml_and_reads_back_as_it_was(text: str) -> None:
    written = _scalar(text)
    assert written.isprintable()
    assert yaml.safe_load(written) == text


def test_what_has_no_picture_is_written_by_its_number() -> None:
    assert _scalar("\u200b\U000e0001\U0001f600") == '"\\u200b\\U000e0001\U0001f600"'


def draftable(sequence: int, score: float, prompt: str | None = "Where is it?", **more: Any) -> LiveRollout:
    return replace(rollout(sequence, [], score, **more), prompt=prompt)


def test_drafts_are_of_the_runs_most_unlike_others_of_their_category_one_for_each_prompt() -> None:
    runs = [
        draftable(1, 0.5, "usual"),
        draftable(2, 0.6, "Where is it?"),
        draftable(3, 0.0, "Where is it?"),
        draftable(4, 1.0, "When is it?"),
        draftable(5, 0.4, None),
        draftable(6, 0.9, "alone", category="notes"),
    ]
    found = drafts_of(runs, 9)
    assert [(one.rollout.sequence, round(one.advantage, 6)) for one in found] == [(3, -0.875), (4, 0.875)]
    assert [one.rollout.sequence for one in drafts_of(runs, 1)] == [3]
    by_score = [draftable(n, score, f"p{n}") for n, score in enumerate([0.0, 0.4, 0.5])]
    assert [one.rollout.sequence for one in drafts_of(by_score, 9)] == [0, 2, 1]


def test_a_draft_is_written_beside_others_and_over_none(tmp_path: Path) -> None:
    drafts = drafts_of([draftable(1, 0.0), draftable(2, 1.0, "When is it?")], 9)
    first, second = write_drafts(drafts, tmp_path / "drafts")
    first.write_text("mine")
    second.unlink()
    assert write_drafts(drafts, tmp_path / "drafts") == [second]
    assert first.read_text() == "mine"
    (scenario,) = yaml.safe_load(second.read_text())
    assert (scenario["domain"], scenario["split"], scenario["prompt"]) == ("freight", "train", "When is it?")
    assert write_drafts([], tmp_path / "none") == []
    assert not (tmp_path / "none").exists()
