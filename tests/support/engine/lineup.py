"""What the tests of engine/test_lineup.py share with the slow ones."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.report.value import build
from support.builders import make_pack
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not

PLAIN: dict[str, Any] = {"epochs": 2, "acceptance": "off", "lesson_dropout": 0.0}


def two_domains(train: int = 4, sweep: int = 3) -> list[Scenario]:
    """Return a suite whose eval scenarios are half of a domain that nothing is learned in."""
    known = suite(train, 2 * sweep)
    foreign = {f"eval-{n}" for n in range(sweep, 2 * sweep)}
    return [replace(s, domain="other") if s.id in foreign else s for s in known]


def job(work: Path, answer: Any = three_or_not, **changes: Any) -> Any:
    packs = {"text": make_pack(), "other": make_pack(domain="other")}
    actor = answer if isinstance(answer, ScriptedActor) else ScriptedActor(answer)
    fields: dict[str, Any] = {"scenarios": two_domains(), "job_packs": packs, "concurrency": 1}
    return make_job(actor, work, **PLAIN | fields | changes)


def told_lessons(call: ActorCall) -> bool:
    return "<experiences" in call.prompt.system


def gain(run: Run) -> Any:
    return build(run, judge(run, baseline=None, settings=run.settings))["gain"]


# What drifts


class Fading:
    """Succeeds less often with every call; lessons help by `effect` at any time."""

    def __init__(self, calls: int, effect: float) -> None:
        self._calls, self._effect, self._made = calls, effect, 0

    def __call__(self, call: ActorCall) -> str:
        self._made += 1
        chance = 0.75 - 0.5 * self._made / self._calls + self._effect * told_lessons(call)
        return "3" if random.Random(call.seed).random() < chance else "4"


def learned_under_drift(work: Path, choice: str) -> Any:
    known = suite(40, 80)
    answer = Fading(40 * 4 + 2 * 80 * 4, 0.1)
    run, _ = run_job(job(work, answer, scenarios=known, baseline_sweep=choice))
    assert run.status == "complete"
    return gain(run)
