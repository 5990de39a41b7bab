"""What each seed of a replication is started with."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.cli.runs import replicate
from pytest_tfgrpo.core.errors import SettingError


def test_a_seed_that_goes_on_shares_the_budget_with_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: dict[str, Any] = {
        "seed-0": {
            "status": "complete",
            "cost": {"usd": 1.0, "tokens": 70},
            "started_at": "2026-01-01T00:00:00Z",
            "finished_at": "2026-01-01T00:01:00Z",
        },
        "seed-1": {"status": "incomplete", "cost": {"usd": 0.5, "tokens": 20}, "started_at": None},
    }
    started: list[str] = []
    monkeypatch.setattr(replicate, "_runs", lambda project, out: [out / "run"])
    monkeypatch.setattr(replicate, "_report", lambda run: reports[run.parent.name])
    monkeypatch.setattr(replicate, "_wait", lambda process: 2)
    monkeypatch.setattr(replicate.subprocess, "Popen", lambda command, **_: started.extend(command))
    budgets = {"budget_usd": 4.0, "budget_tokens": 100, "budget_s": 90.0}
    project: Any = SimpleNamespace(out=tmp_path, task_id="demo", settings=budgets)
    outs = {n: tmp_path / f"seed-{n}" for n in range(2)}
    with pytest.raises(KeyboardInterrupt):
        replicate._carry_out(project, 1, outs, [])
    assert [word for word in started if "budget" in word or "resume" in word] == [
        "--tfgrpo-budget-usd=3.0",
        "--tfgrpo-budget-tokens=30",
        "--tfgrpo-budget-s=30.0",
        "--tfgrpo-resume=run",
    ]


def test_nothing_is_started_once_the_others_have_used_a_budget_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicate, "_runs", lambda project, out: [out / "run"])
    monkeypatch.setattr(replicate, "_report", lambda run: {"cost": {"tokens": 50}})
    settings = {"budget_usd": None, "budget_tokens": 100, "budget_s": None}
    project: Any = SimpleNamespace(settings=settings)
    others = [tmp_path / "seed-0", tmp_path / "seed-1"]
    with pytest.raises(SettingError, match="budget_tokens of 100 is used up by the seeds so far"):
        replicate._left(project, others)
    assert replicate._left(project, others[:1]) == ["--tfgrpo-budget-tokens=50"]
