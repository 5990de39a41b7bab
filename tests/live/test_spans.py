"""Spans of other frameworks as live runs."""

from pathlib import Path

import pytest
from support import ROOT
from support.otlp_spans import agent, evaluation, span, write_lines
from support.tools import tfgrpo

from pytest_tfgrpo.live.records import LiveRollout
from pytest_tfgrpo.live.store import open_live_store

RECORDED = sorted((ROOT / "tests" / "traces" / "recorded").glob("*.jsonl"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "live.toml").write_text("[settings]\n")
    return tmp_path


def ingest(*files: Path) -> str:
    return tfgrpo("live", "ingest", *map(str, files))


def rollouts(folder: Path) -> list[LiveRollout]:
    store = open_live_store(folder / "live.db", "default")
    try:
        return list(store.rollouts())
    finally:
        store.close()


def test_recorded_spans_of_each_framework_become_equal_runs(folder: Path) -> None:
    assert "runs       6 stored, 0 known before" in ingest(*RECORDED)
    found = rollouts(folder)
    good = [run for run in found if run.reply]
    bad = [run for run in found if not run.reply]
    for runs, expected in ((good, (3, 1, True, "succeeded")), (bad, (1, 0, False, "failed"))):
        traces = [(run.trace.turns, run.trace.tool_errors, run.trace.completed, run.status) for run in runs]  # type: ignore[union-attr]
        assert traces == [expected] * 3
    for run in good:
        assert (run.category, run.prompt, run.reply) == (
            "toy",
            "What is the weather in Paris?",
            "It is sunny in Paris.",
        )
        assert run.reward is not None


def test_ingesting_again_and_overlapping_files_adds_nothing(folder: Path) -> None:
    ingest(*RECORDED[:2])
    before = rollouts(folder)
    out = ingest(*RECORDED[:2])
    assert "runs       0 stored, 4 known before" in out
    assert rollouts(folder) == before
    assert "runs       2 stored, 4 known before" in ingest(*RECORDED)
    assert rollouts(folder)[:4] == before


def test_an_evaluation_is_the_outcome_once(folder: Path) -> None:
    file = write_lines(folder / "a.jsonl", span(2, "chat"), agent(events=(evaluation(0.75),)))
    assert "1 stored, 0 known before; 1 new scores" in ingest(file)
    assert "0 stored, 1 known before; 0 new scores" in ingest(file)
    assert [run.trace and run.trace.score for run in rollouts(folder)] == [0.75]
