"""The schedule of a run: its phases, the scenarios drawn for each, and the seeds of their rollouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.records import Mode, Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.learning import (
    ACCEPTANCE,
    ACCEPTANCE_ROLLOUTS,
    BASELINE_SWEEP,
    EPOCHS,
    EVAL_MODE,
    EVAL_ROLLOUTS,
    EVIDENCE,
    GROUP_SIZE,
    LESSON_DROPOUT,
    PLACEBO_SWEEP,
    SAMPLE_SIZE,
    TEMPERATURE_EVAL,
    TEMPERATURE_TRAIN,
)
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.runs.seeds import draw

PLACEBO_EPOCH = -2
PLACEBOS = 2
"""Rollouts of the placebo for one of the final sweep: so the second test of a claim costs little power."""
MIN_DEV = 20
"""With fewer dev scenarios a comparison shows nothing: lessons are then kept unvalidated, with a warning."""

PLANNED_BY: tuple[Setting[object], ...] = (
    *(ACCEPTANCE, ACCEPTANCE_ROLLOUTS, BASELINE_SWEEP, EPOCHS, EVAL_MODE, EVAL_ROLLOUTS, GROUP_SIZE),
    *(LESSON_DROPOUT, SAMPLE_SIZE, SEED, TEMPERATURE_EVAL, TEMPERATURE_TRAIN),
)
"""Settings that say what a run runs, and how often."""


def outline(
    settings: Mapping[str, object], *, learning: bool, sweep_rollouts: int, against: bool = False
) -> list[Phase]:
    """Return the phases of a run in order, still without scenarios (decision 5).

    Plain mode is one sweep, as epoch 1; with something to be held `against`, after or beside a sweep of that.
    """

    def sweep(epoch: int, mode: Mode) -> Phase:
        temperature = TEMPERATURE_EVAL.of(settings)
        return Phase(epoch=epoch, mode=mode, temperature=temperature, rollouts=sweep_rollouts, scenarios=())

    early, control = _control(BASELINE_SWEEP.of(settings), sweep(0, "baseline"))
    placebo = []
    if PLACEBO_SWEEP.of(settings):
        whole = sweep(PLACEBO_EPOCH, "placebo")
        placebo = [replace(whole, concurrent=True, rollouts=PLACEBOS * sweep_rollouts)]
    if not learning:
        return [*([*early, *control, *placebo] if against else []), sweep(1, "eval")]
    epochs = EPOCHS.of(settings)
    trained = epochs - 1 if EVAL_MODE.of(settings) == "last_epoch" else epochs
    training = [
        Phase(
            epoch=epoch,
            mode="train",
            temperature=TEMPERATURE_TRAIN.of(settings),
            rollouts=GROUP_SIZE.of(settings),
            scenarios=(),
            lesson_dropout=LESSON_DROPOUT.of(settings),
        )
        for epoch in range(1, trained + 1)
    ]
    if EVIDENCE.of(settings) is not None:
        training[0] = replace(training[0], mode="evidence", lesson_dropout=0.0)
    return [*early, *training, *control, *placebo, sweep(trained + 1, "eval")]


def _control(choice: str, whole: Phase) -> tuple[list[Phase], list[Phase]]:
    """Return the parts of the `whole` baseline sweep before training, and beside the final sweep."""
    concurrent = replace(whole, concurrent=True)
    if choice != "both":
        return ([whole] if choice == "early" else []), ([concurrent] if choice == "concurrent" else [])
    quarter = whole.rollouts // 4  # the settings see to at least four
    early = replace(whole, epoch=-1, mode="early", rollouts=quarter)
    return [early], [replace(concurrent, rollouts=whole.rollouts - quarter)]


def steps_of(phases: Iterable[Phase]) -> list[tuple[Phase, ...]]:
    """Return the phases that run together: those beside the final sweep with it, others alone."""
    steps: list[tuple[Phase, ...]] = []
    for phase in phases:
        if steps and steps[-1][-1].concurrent:
            steps[-1] = (*steps[-1], phase)
        else:
            steps.append((phase,))
    return steps


def plan(
    phases: Iterable[Phase], scenarios: Iterable[Scenario], settings: Mapping[str, object]
) -> list[Phase]:
    """Return the phases with their scenarios, drawn for training; those without a scenario are left out.

    What attempts exist of becomes known later.
    """
    known = list(scenarios)
    train = [s for s in known if s.split == "train"]
    sweep = tuple(s.id for s in known if s.split == "eval")
    dev = tuple(s.id for s in known if s.split == "dev")
    if ACCEPTANCE.of(settings) == "off" or len(dev) < MIN_DEV:
        dev = ()
    size, seed = SAMPLE_SIZE.of(settings), SEED.of(settings)

    def drawn(phase: Phase) -> Phase:
        if not phase.trains:
            return replace(phase, scenarios=sweep)
        own = draw(train, size=size, seed=seed, epoch=phase.epoch) if phase.asks else ()
        return replace(phase, scenarios=own, dev=dev)

    return [phase for phase in map(drawn, phases) if phase.scenarios or not phase.asks]


def require_dev(scenarios: Iterable[Scenario], phase: Phase) -> None:
    """Raise ValueError where what decides on training epoch `phase` holds a scenario of another split."""
    splits = {scenario.id: scenario.split for scenario in scenarios}
    for id_ in phase.dev:
        if splits[id_] != "dev":
            raise ValueError(f"scenario {id_!r} of split {splits[id_]!r} must not decide on a library")


def dev_phase(phase: Phase, scenarios: tuple[str, ...], settings: Mapping[str, object]) -> Phase:
    """Return the sweep over `scenarios` of the dev split after a training epoch.

    Each gets twice `eval_rollouts`, half of them with a lesson and half without: as many as a sweep with all
    that is new and one without. Fewer where that were more than `acceptance_rollouts`, of which an odd one is
    better than none; then of the first scenarios alone, if two each are still too many.
    """
    most = ACCEPTANCE_ROLLOUTS.of(settings)
    asked = scenarios[: most // 2]
    each = min(2 * (EVAL_ROLLOUTS.of(settings) or 1), most // len(asked)) if asked else 0
    return Phase(
        epoch=phase.epoch,
        mode="dev",
        temperature=TEMPERATURE_EVAL.of(settings),
        rollouts=each,
        scenarios=asked,
        dev_sweep=1,
    )


def most_rollouts(phase: Phase, settings: Mapping[str, object]) -> int:
    """Return how many rollouts the dev split takes after a training epoch at most; 0 when nothing decides."""
    sweep = dev_phase(phase, phase.dev, settings)
    return len(sweep.scenarios) * sweep.rollouts


def group_id(run_id: str, phase: Phase, scenario_id: str) -> str:
    """Return the id of a group: run, epoch and scenario, and on the dev split which sweep it is."""
    sweep = f"d{phase.dev_sweep}" if phase.dev_sweep else ""
    return f"{run_id}.e{phase.epoch}{sweep}.{scenario_id}"


def rollout_id(run_id: str, phase: Phase, scenario_id: str, index: int) -> str:
    """Return the id of a rollout: its group's and its place in it."""
    return f"{group_id(run_id, phase, scenario_id)}.r{index}"
