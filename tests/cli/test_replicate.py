"""What each seed of a replication is started with."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.cli import replicate


def test_a_seed_that_goes_on_shares_the_budget_with_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: dict[str, Any] = {
        "seed-0": {"status": "complete", "cost": {"usd": 1.0}},
        "seed-1": {"status": "incomplete", "cost": {"usd": 0.5}},
    }
    started: list[str] = []
    monkeypatch.setattr(replicate, "_runs", lambda project, out: [out / "run"])
    monkeypatch.setattr(replicate, "_report", lambda run: reports[run.parent.name])
    monkeypatch.setattr(replicate, "_wait", lambda process: 2)
    monkeypatch.setattr(replicate.subprocess, "Popen", lambda command, **_: started.extend(command))
    budgets = {"budget_usd": 4.0, "budget_tokens": None, "budget_s": None}
    project: Any = SimpleNamespace(out=tmp_path, task_id="demo", settings=budgets)
    outs = {n: tmp_path / f"seed-{n}" for n in range(2)}
    with pytest.raises(KeyboardInterrupt):
        replicate._carry_out(project, 1, outs, [])
    assert "--tfgrpo-budget-usd=3.0" in started
    assert "--tfgrpo-resume=run" in started
