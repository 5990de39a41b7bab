"""The arms of `real_model.py`: runs of the tool itself, and what is counted of their sweeps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from real_dispatch import dispatcher
from real_suites import Suite, packs

import pytest_tfgrpo
from pytest_tfgrpo.core.lessons import Experience, Reward, Support
from pytest_tfgrpo.core.records import Group, PhaseResult
from pytest_tfgrpo.core.scenarios import given_families
from pytest_tfgrpo.core.wire.stamp import identify
from pytest_tfgrpo.launch.result import RunResult
from pytest_tfgrpo.learning.library.library import of, save_library
from pytest_tfgrpo.metrics.comparison import Tally, has_lessons, tally
from pytest_tfgrpo.suite.packs import load_packs, pack_folders, pack_for, write_pack_stamp

GROUP_SIZE, EVAL_ROLLOUTS = 4, 2
NONE, PLACEBO, DEFAULT, ALL, HAND, HAND_PLACEBO = (
    "none", "placebo of default", "default", "accept-all", "hand-written", "placebo of hand-written"
)  # fmt: skip
PLACEBOS = (PLACEBO, HAND_PLACEBO)
LEARNED: Mapping[str, Any] = {"epochs": 3, "group_size": GROUP_SIZE}
GIVEN: Mapping[str, Any] = {"learning": False, "library": "hand-written.json", "gate_extend": 0}
PLACES = {"beside": "user", "system": "system"}
"""Where lessons stand, and how a prompt pack says so: beside the task it opens the user's text."""


class Arm(NamedTuple):
    """A run of the tool, and how its sweeps are called in the table."""

    place: str
    name: str
    settings: Mapping[str, Any]
    sweeps: Mapping[str, str]
    """From the mode of a sweep to the name of its row."""


ARMS = (
    Arm("beside", DEFAULT, {**LEARNED, "placebo_sweep": True},
        {"baseline": NONE, "placebo": PLACEBO, "eval": DEFAULT}),
    Arm("beside", ALL, {**LEARNED, "acceptance": "off"}, {"baseline": NONE, "eval": ALL}),
    Arm("beside", HAND, {**GIVEN, "baseline": "no-lessons"}, {"baseline": NONE, "eval": HAND}),
    Arm("beside", HAND_PLACEBO, {**GIVEN, "baseline": "placebo"}, {"baseline": HAND_PLACEBO}),
    Arm("system", DEFAULT, LEARNED, {"baseline": NONE, "eval": DEFAULT}),
    Arm("system", HAND, {**GIVEN, "baseline": "no-lessons"}, {"baseline": NONE, "eval": HAND}),
    Arm("system", HAND_PLACEBO, {**GIVEN, "baseline": "placebo"}, {"baseline": HAND_PLACEBO}),
)  # fmt: skip


@dataclass(kw_only=True)
class Side:
    """What one arm came to; all counts are over its seeds."""

    tallies: dict[int, Mapping[str, Tally]] = field(default_factory=dict)
    """By seed and scenario."""
    answers: int = 0
    cut: int = 0
    """Answers that ended at `max_tokens`."""
    tokens: int = 0
    carried: int = 0
    """Lessons in prompts."""
    lessons: list[str] = field(default_factory=list)
    """How many its library has, by run."""
    claims: list[str] = field(default_factory=list)
    """What the tool itself claimed, by run that learned."""


Sides = dict[tuple[str, str], Side]


def write_project(folder: Path, suite: Suite, place: str, endpoint: Mapping[str, Any]) -> None:
    """Write suite, prompt packs, models and hand-written lessons of a place into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in packs(PLACES[place]).items():
        file = folder / "prompt-packs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for pack in pack_folders(folder / "prompt-packs"):
        write_pack_stamp(pack)
    (folder / f"{suite.name}.scenario.json").write_text(json.dumps(list(suite.scenarios), indent=1))
    (folder / "models.yaml").write_text(json.dumps({"endpoints": {"default": endpoint}}))
    save_library(folder / "hand-written.json", of(_by_hand(suite, folder / "prompt-packs")))


def _by_hand(suite: Suite, folder: Path) -> Iterable[Experience]:
    loaded = load_packs(folder)
    for domain, text in suite.hand_written:
        pack = pack_for(loaded, domain)
        yield Experience(
            id=identify("hand", domain, text),
            run_id="by-hand",
            task_id=suite.name,
            domain=domain,
            prompt_pack_id=pack.id,
            epoch=0,
            group_id="by-hand",
            summary32=text,
            polarity="do",
            reward=Reward(gt_score=1.0, relative_rank=1.0),
            support=Support(groups=0, rollouts=0),
            tool_stats=(),
            stamp_signature=pack.stamp,
            actor="",
        )


class Asked(NamedTuple):
    """The model that arms ask."""

    base_url: str
    model: str
    concurrency: int
    bound: bool
    """Whether its server takes a grammar of llama.cpp, which keeps an answer to what a suite allows."""


def run_arm(arm: Arm, project: Path, suite: Suite, seed: int, asked: Asked) -> RunResult:
    """Return the run of an arm with a seed; raises SystemExit where it does not come to its end."""
    actor: Any = f"openai:{asked.model}"
    if suite.queues:
        to = asked.base_url, asked.model, suite.queues, suite.max_tokens
        actor = dispatcher(*to, bound=asked.bound)
    result = pytest_tfgrpo.run(
        project,
        f"{suite.name}.scenario.json",
        actor=actor,
        models="models.yaml",
        max_tokens=suite.max_tokens,
        eval_rollouts=EVAL_ROLLOUTS,
        concurrency=asked.concurrency,
        timeout_s=600.0,
        seed=seed,
        task_id=f"{arm.name}-{seed}".replace(" ", "-"),
        out="out",
        progress=False,
        **arm.settings,
    )
    if result.run.status != "complete":
        raise SystemExit(f"{arm.place}, {arm.name}, seed {seed}: {result.run.status}: {result.run.reason}")
    return result


def count(sides: Sides, arm: Arm, seed: int, result: RunResult) -> None:
    """Add what a run came to to the sides of its sweeps; what a seed without lessons did is known once."""
    run = result.run
    families = given_families(run.scenarios)
    stamps = {scenario.id: scenario.stamp for scenario in run.scenarios}
    for phase in run.phases:
        name = arm.sweeps.get(phase.phase.mode)
        if name is None:
            continue
        side = sides.setdefault((arm.place, name), Side())
        if seed in side.tallies:
            continue
        groups = _of_placebo(phase) if name in PLACEBOS else phase.counted
        side.tallies[seed] = tally(groups, stamps, families)
        for rollout in (one for group in groups for one in group.rollouts):
            side.answers += rollout.status != "error"
            side.cut += any(f.kind == "model" and f.finish == "length" for f in rollout.frames)
            side.tokens += rollout.tokens
            side.carried += len(rollout.experiences)
        if phase.phase.mode == "eval":
            side.lessons.append(str(len(run.library.experiences)))
            if arm.settings.get("learning", True):
                claim = (result.report["gain"] or {}).get("claim") or {}
                side.claims.append(claim.get("side") or "nothing")


def _of_placebo(phase: PhaseResult) -> tuple[Group, ...]:
    """Return the groups of a placebo sweep, without those whose lessons had no others to stand for them."""
    return (*phase.groups, *(group for group in phase.shared if not has_lessons(group)))
