"""What recorded rollouts used: whose count, and what each cost."""

from pathlib import Path
from typing import Any

import pytest
from support.builders import make_frame
from support.recordings import ACTOR, make_call, make_entry, make_run, write_recording

from pytest_tfgrpo.core.records import Failure, Usage
from pytest_tfgrpo.estimate import recordings
from pytest_tfgrpo.estimate.ranges import UnitUse
from pytest_tfgrpo.estimate.recordings import uses_in
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.recording.writing import record

DOMAINS = {"count-words": "text"}
DOLLAR = Price(input=1_000_000.0, output=1_000_000.0)
TOOL = make_frame(tokens=0, cost_usd=0.25)
ASKED = make_frame("m", kind="model", tokens=12, cost_usd=0.5, usage=Usage(prompt=10, completion=2))
UNTOLD = make_frame("m", kind="model", tokens=7, cost_usd=0.5, usage=None)
UNPRICED = make_frame("m", kind="model", tokens=7, cost_usd=None, usage=None)
FAILED: dict[str, Any] = {"status": "error", "failure": Failure(code="server", message="503")}


def uses(path: Path, *entries: Any, price: Price | None = None) -> list[UnitUse]:
    return uses_in(write_recording(path / "r.jsonl", entries), ACTOR["name"], DOMAINS, price).get("text", [])


@pytest.mark.parametrize(
    ("frames", "price", "expected"),
    [
        ((ASKED, TOOL, ASKED), DOLLAR, UnitUse(2, 24, 24.0)),
        ((ASKED, TOOL, ASKED), None, UnitUse(2, 24, 1.25)),
        ((ASKED, UNTOLD), DOLLAR, UnitUse(2, 19, 1.0)),
        ((ASKED, UNPRICED), DOLLAR, UnitUse(2, 19, None)),
        ((TOOL,), DOLLAR, UnitUse(1, 0, 0.25)),
        ((), DOLLAR, UnitUse(1, 0, None)),
    ],
    ids=["priced", "as-told", "one-without-kinds", "one-without-cost", "tools-alone", "no-frames"],
)
def test_a_rollout_is_told_in_calls_tokens_and_cost(
    frames: Any, price: Price | None, expected: UnitUse, tmp_path: Path
) -> None:
    assert uses(tmp_path, make_entry(frames=frames), price=price) == [expected]


def test_what_says_nothing_of_the_actor_does_not_count(tmp_path: Path) -> None:
    assert uses(tmp_path, make_entry(frames=(TOOL,), **FAILED)) == []
    assert uses(tmp_path, make_entry(frames=(ASKED,), **FAILED)) == [UnitUse(1, 12, 0.5)]
    assert uses(tmp_path, make_entry(scenario="gone")) == []
    assert uses(tmp_path, make_entry(actor="f" * 16)) == []


def test_calls_beside_rollouts_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.jsonl"
    record(path, make_run([make_entry(frames=(ASKED,))], [make_call(subject="a")]))
    monkeypatch.setattr(recordings, "MOST", 1)
    assert uses_in(path, ACTOR["name"], DOMAINS, None) == {"text": [UnitUse(1, 12, 0.5)]}
    assert uses_in(path, "python:other:solve", DOMAINS, None) == {}


def test_of_a_long_recording_every_so_many_entries_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "MOST", 4)
    read = [len(uses(tmp_path, *(make_entry(seed=seed) for seed in range(n)))) for n in (3, 4, 9)]
    assert read == [3, 2, 3]


@pytest.mark.parametrize("text", [None, "{}\n", "not json\n"], ids=["missing", "no-header", "damaged"])
def test_a_file_that_cannot_be_read_says_nothing(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    if text is not None:
        path.write_text(text)
    assert uses_in(path, ACTOR["name"], DOMAINS, None) == {}
    assert uses_in(None, ACTOR["name"], DOMAINS, None) == {}


def test_a_recording_as_large_as_may_be_is_read_and_no_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = write_recording(tmp_path / "r.jsonl", [make_entry()]).stat().st_size
    monkeypatch.setattr(recordings, "MAX_BYTES", size)
    assert len(uses(tmp_path, make_entry())) == 1
    monkeypatch.setattr(recordings, "MAX_BYTES", size - 1)
    assert uses(tmp_path, make_entry()) == []
