"""Spans of other frameworks as live runs."""

from pathlib import Path

import pytest
from support.live.spans import ingest, rollouts
from support.otlp_spans import agent, line, span, write_lines


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "live.toml").write_text("[settings]\n")
    return tmp_path


def test_circles_and_long_chains_of_parents_end(folder: Path) -> None:
    circle = [span(n, "chat", parent=n % 5000 + 1) for n in range(1, 5001)]
    kinds = ("chat", "execute_tool")
    chain = [span(n, kinds[n % 2], parent=n - 1, trace="cd" * 16) for n in range(5000, 1, -1)]
    out = ingest(write_lines(folder / "a.jsonl", line(*circle), line(*chain), agent(trace="cd" * 16)))
    assert "refused    5000 loop: a.jsonl:1, a.jsonl:1" in out
    assert [run.trace and run.trace.turns for run in rollouts(folder)] == [2500]
