"""Builders of records for tests: every field has a plausible default."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from pytest_tfgrpo.core.lessons import Experience, Exposure, Reward, Support, ToolStat
from pytest_tfgrpo.core.records import CheckResult, Frame, Group, Rollout, Score
from pytest_tfgrpo.core.scenarios import Check, PromptPack, Scenario

PACK_STAMP = "a" * 64


def make_scenario(id_: str = "count-words", /, **changes: Any) -> Scenario:
    fields: dict[str, Any] = {
        "domain": "text",
        "split": "train",
        "prompt": "How many words are in 'a b c'?",
        "checks": (Check(kind="exact", params={"value": "3"}),),
        "source": f"fixtures/{id_}.scenario.yaml:1",
        "stamp": "0" * 64,
    }
    return Scenario(**fields | {"id": id_} | changes)


def make_pack(domain: str = "text", **changes: Any) -> PromptPack:
    fields: dict[str, Any] = {"id": domain, "stamp": PACK_STAMP, "system": "Solve the task."}
    return PromptPack(domain=domain, **fields | changes)


def make_frame(name: str = "count_words", **changes: Any) -> Frame:
    fields: dict[str, Any] = {"kind": "tool", "output": "3", "tokens": 5, "cost_usd": 0.0, "latency_ms": 1.0}
    return Frame(name=name, **fields | changes)


def make_rollout(index: int = 0, credit: float | None = 1.0, **changes: Any) -> Rollout:
    """Return a rollout whose one check has `credit`; None makes it an error."""
    scenario_id = changes.get("scenario_id", "count-words")
    epoch = changes.get("epoch", 1)
    group_id = changes.get("group_id", f"run1.e{epoch}.{scenario_id}")
    fields: dict[str, Any] = {
        "rollout_id": f"{group_id}.r{index}",
        "group_id": group_id,
        "run_id": "run1",
        "scenario_id": scenario_id,
        "epoch": epoch,
        "mode": "train",
        "seed": index,
        "temperature": 0.7,
        "status": "error" if credit is None else "ok",
        "answer": "3",
        "frames": (make_frame(),),
        "checks": () if credit is None else (CheckResult(kind="exact", weight=1.0, credit=credit),),
        "tokens": 5,
        "cost_usd": 0.0,
        "latency_ms": 1.0,
    }
    return Rollout(index=index, **fields | changes)


def make_group(credited: list[float | None], **changes: Any) -> Group:
    """Return a scored group with one rollout per credit; scores are filled in by hand, ranks left null."""
    rollout_changes = {k: changes[k] for k in ("epoch", "mode", "scenario_id", "group_id") if k in changes}
    rollouts = changes.pop("rollouts", None) or tuple(
        make_rollout(i, c, **rollout_changes) for i, c in enumerate(credited)
    )
    known = [c for c in credited if c is not None]
    fields: dict[str, Any] = {
        "group_id": rollouts[0].group_id,
        "epoch": rollouts[0].epoch,
        "mode": rollouts[0].mode,
        "scenario_id": rollouts[0].scenario_id,
        "domain": "text",
        "rollouts": rollouts,
        "scores": tuple(
            Score(rollout_id=r.rollout_id, gt_score=c, reward=c, relative_rank=None, advantage=None)
            for r, c in zip(rollouts, credited, strict=True)
        ),
        "informative": bool(known) and min(known) != max(known),
    }
    return Group(**fields | changes)


def make_experience(n: int = 0, **changes: Any) -> Experience:
    fields: dict[str, Any] = {
        "id": f"{n:016x}",
        "run_id": "run1",
        "task_id": "demo",
        "domain": "text",
        "prompt_pack_id": "text",
        "epoch": 1,
        "group_id": f"run1.e1.s{n}",
        "summary32": f"For counting tasks use count_words, lesson {n}.",
        "polarity": "do",
        "reward": Reward(gt_score=1.0, relative_rank=0.8),
        "support": Support(groups=1, rollouts=2),
        "tool_stats": (ToolStat(tool="count_words", tokens=5, latency_ms=1.0, cost_usd=0.0),),
        "stamp_signature": PACK_STAMP,
        "actor": "offline",
        "created_at": "2026-01-01T00:00:00Z",
        "manifest_path": "runs/run1/manifest.json",
    }
    return Experience(**fields | changes)


def make_exposure(n: int = 0, **changes: Any) -> Exposure:
    fields: dict[str, Any] = {
        "run_id": "run1",
        "epoch": 1,
        "scenario": f"{n:064x}",
        "domain": "text",
        "series": "series1",
        "propensity": 0.8,
        "reward": 0.5,
        "errors": 0,
        "included": (),
        "left_out": (),
    }
    return Exposure(**fields | changes)


def make_exposures(
    effects: Mapping[str, float], *, groups: int = 400, seed: int = 0, base: float = 0.6, **changes: Any
) -> list[Exposure]:
    """Return groups that were offered every lesson in `effects`, each solving by its lessons' effects."""
    rng = random.Random(seed)
    rows = []
    for n in range(groups):
        included = tuple(key for key in effects if rng.random() < 0.8)
        rate = base + sum(effects[key] for key in included)
        reward = sum(rng.random() < rate for _ in range(2)) / 2
        rows.append(
            make_exposure(
                n % 100,
                epoch=1 + n // 100,
                reward=reward,
                included=included,
                left_out=tuple(key for key in effects if key not in included),
                **changes,
            )
        )
    return rows
