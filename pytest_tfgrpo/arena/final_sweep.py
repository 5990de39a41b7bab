"""The final sweep: all sides ask the same eval scenarios, together, in an order drawn for each place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_tfgrpo.arena.bench import open_bench, run_of_bench
from pytest_tfgrpo.arena.plan import ArenaPlan
from pytest_tfgrpo.arena.protocol import Trained
from pytest_tfgrpo.core.files import ARENA_SIDES, ARENA_SWEEP, JOURNAL, RUNS
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Phase, Run
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.wire.stamp import combined_stamp
from pytest_tfgrpo.engine.gauge import Gauge
from pytest_tfgrpo.engine.lineup import Arm, alike
from pytest_tfgrpo.engine.preparation.prepare import prepare
from pytest_tfgrpo.engine.request import RunRequest
from pytest_tfgrpo.learning.placebo import PLACEBO, as_placebo
from pytest_tfgrpo.learning.prompts import Ask, PromptBuilder
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.metrics.looks import variant_of
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.journal.journal_contents import has_begun, load_run
from pytest_tfgrpo.suite.packs import pack_for

BYTES_PER_TOKEN = 4.0
"""Of a prompt, roughly."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SweptSides:
    """What the final sweep came to, by side."""

    scores: Mapping[str, Mapping[str, tuple[float | None, ...]]]
    tokens_added: Mapping[str, float]
    same_as: Mapping[str, str]
    variants: Mapping[str, str]
    run: Run


def sweep_phases(plan: ArenaPlan, count: int) -> list[Phase]:
    """Return the phases of so many sides; all but the last run beside it."""
    return [replace(plan.sweep, epoch=n, concurrent=n < count) for n in range(1, count + 1)]


def sweep_request(plan: ArenaPlan, count: int, budget: Budget | None = None) -> RunRequest:
    """Return the request of the final sweep of so many sides."""
    return plan.request(ARENA_SWEEP, sweep_id(plan, count), sweep_phases(plan, count), budget)


def sweep_id(plan: ArenaPlan, count: int) -> str:
    """Return the id of the sweep of so many sides: one that is trained later is asked beside all others."""
    whole = count == len(plan.contestants)
    return f"{plan.arena_id}-{ARENA_SWEEP}{'' if whole else f'-{count}'}"


def abandoned_sweeps(plan: ArenaPlan, count: int) -> list[Run]:
    """Return sweeps on file but that of so many sides; raises JournalError."""
    home, own = plan.folder / ARENA_SIDES / ARENA_SWEEP / RUNS, sweep_id(plan, count)
    paths = [path.parent for path in sorted(home.glob(f"*/{JOURNAL}")) if path.parent.name != own]
    return [load_run(path) for path in paths if has_begun(path / JOURNAL)]


def prompts_of(job: Job, trained: Trained, *, placebo: bool = False) -> Ask:
    """Return what renders the prompts of a side."""
    library = _library(job, trained, placebo=placebo)
    own = replace(job, packs={**job.packs, **trained.packs})
    if not placebo:
        return PromptBuilder(own, library).ask
    wrong = Phase(epoch=0, mode=PLACEBO, temperature=0.0, rollouts=1, scenarios=())
    return PromptBuilder(own, library, wrong).ask


def _library(job: Job, trained: Trained, *, placebo: bool) -> Library:
    library = job.library if trained.library is None else trained.library
    return as_placebo(library, SEED.of(job.settings)) if placebo else library


def _variant(run: Run, job: Job, trained: Trained, *, placebo: bool) -> str:
    """Return what a side is known as among the variants that an eval split has seen."""
    packs = {**job.packs, **trained.packs}
    used = combined_stamp({pack_for(packs, scenario.domain).stamp for scenario in job.scenarios})
    asked = replace(run, stamps={**run.stamps, "packs": used})
    return variant_of(asked, _library(job, trained, placebo=placebo).hash)


def has_placebo(job: Job, trained: Trained, scenarios: Sequence[str]) -> bool:
    """Return whether a placebo gives any of the scenarios other lessons."""
    real, wrong = prompts_of(job, trained), prompts_of(job, trained, placebo=True)
    return any(real(id_, 0).prompt_stamp != wrong(id_, 0).prompt_stamp for id_ in scenarios)


async def sweep_sides(
    plan: ArenaPlan, sides: Mapping[str, Trained], placebo_of: str | None, gauge: Gauge, budget: Budget
) -> SweptSides:
    """Run the final sweep of `sides` by name, and of the placebo of one of them; raises as `Bench.sweep`."""
    names = list(sides)
    prepared = prepare(sweep_request(plan, len(names), budget))
    job = prepared.job
    asks = [
        prompts_of(job, sides[name], placebo=name == PLACEBO and placebo_of is not None) for name in names
    ]
    phases = sweep_phases(plan, len(names))
    arms = [Arm(phase=phase, ask=ask) for phase, ask in zip(phases, asks, strict=True)]
    async with open_bench(prepared, gauge) as bench:
        groups = await bench.sweep(arms)
        run = run_of_bench(bench, "complete")
    return SweptSides(
        scores=_scores(names, arms, groups),
        tokens_added=dict(zip(names, _tokens_added(job, arms), strict=True)),
        same_as=_same_as(names, arms),
        variants={
            name: _variant(run, job, sides[name], placebo=name == PLACEBO and placebo_of is not None)
            for name in names
        },
        run=run,
    )


def _scores(
    names: Sequence[str], arms: Sequence[Arm], groups: Sequence[Sequence[Group]]
) -> dict[str, dict[str, tuple[float | None, ...]]]:
    """Return the scores of each side by scenario; a prompt that several share ran in the last of them."""
    made = {
        (arm.phase.epoch, group.scenario_id): tuple(score.gt_score for score in group.scores)
        for arm, own in zip(arms, groups, strict=True)
        for group in own
    }
    found: dict[str, dict[str, tuple[float | None, ...]]] = {name: {} for name in names}
    for id_ in arms[-1].phase.scenarios:
        served = {
            phase.epoch: by.epoch for phase, by in alike([(arm.phase, arm.ask(id_, 0)) for arm in arms])
        }
        for name, arm in zip(names, arms, strict=True):
            found[name][id_] = made[served.get(arm.phase.epoch, arm.phase.epoch), id_]
    return found


def _same_as(names: Sequence[str], arms: Sequence[Arm]) -> dict[str, str]:
    """Return the first side before each whose prompts are all equal to its own."""
    stamps = [tuple(arm.ask(id_, 0).prompt_stamp for id_ in arm.phase.scenarios) for arm in arms]
    first: dict[tuple[str, ...], str] = {}
    found = {name: first.setdefault(own, name) for name, own in zip(names, stamps, strict=True)}
    return {name: other for name, other in found.items() if other != name}


def _tokens_added(job: Job, arms: Sequence[Arm]) -> list[float]:
    """Return about how many tokens a prompt of each side has more than that of the start, on average."""
    start = prompts_of(job, Trained())
    ids = arms[-1].phase.scenarios
    plain = sum(len(str(start(id_, 0).prompt).encode()) for id_ in ids)
    each = [sum(len(str(arm.ask(id_, 0).prompt).encode()) for id_ in ids) for arm in arms]
    return [(total - plain) / BYTES_PER_TOKEN / len(ids) for total in each]
