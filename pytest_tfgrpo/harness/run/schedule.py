"""The schedule of a run: its phases, the scenarios drawn for each, and the seeds of their rollouts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pytest_tfgrpo.core.records import Mode, Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.setting_values import SettingValues
from pytest_tfgrpo.harness.run.seeds import draw

MIN_DEV = 20
"""With fewer dev scenarios a comparison shows nothing: lessons are then kept unvalidated, with a warning."""


def outline(
    settings: SettingValues, *, learning: bool, sweep_rollouts: int, against: bool = False
) -> list[Phase]:
    """Return the phases of a run in order, still without scenarios (decision 5).

    Plain mode is one sweep, as epoch 1; with something to be held `against`, after or beside a sweep of that.
    """

    def sweep(epoch: int, mode: Mode) -> Phase:
        temperature = settings["temperature_eval"]
        return Phase(epoch=epoch, mode=mode, temperature=temperature, rollouts=sweep_rollouts, scenarios=())

    early, control = _control(settings["baseline_sweep"], sweep(0, "baseline"))
    if not learning:
        return [*(early if against else []), *(control if against else []), sweep(1, "eval")]
    epochs: int = settings["epochs"]
    trained = epochs - 1 if settings["eval_mode"] == "last_epoch" else epochs
    training = [
        Phase(
            epoch=epoch,
            mode="train",
            temperature=settings["temperature_train"],
            rollouts=settings["group_size"],
            scenarios=(),
            lesson_dropout=settings["lesson_dropout"],
        )
        for epoch in range(1, trained + 1)
    ]
    return [*early, *training, *control, sweep(trained + 1, "eval")]


def _control(choice: str, whole: Phase) -> tuple[list[Phase], list[Phase]]:
    """Return the parts of the `whole` baseline sweep before training, and beside the final sweep."""
    concurrent = replace(whole, concurrent=True)
    if choice != "both":
        return ([whole] if choice == "early" else []), ([concurrent] if choice == "concurrent" else [])
    quarter = whole.rollouts // 4  # the settings see to at least four
    early = replace(whole, epoch=-1, mode="early", rollouts=quarter)
    return [early], [replace(concurrent, rollouts=whole.rollouts - quarter)]


def steps_of(phases: Iterable[Phase]) -> list[tuple[Phase, ...]]:
    """Return the phases that run together: a concurrent control with the sweep after it, others alone."""
    steps: list[tuple[Phase, ...]] = []
    for phase in phases:
        if steps and steps[-1][-1].concurrent:
            steps[-1] = (*steps[-1], phase)
        else:
            steps.append((phase,))
    return steps


def plan(phases: Iterable[Phase], scenarios: Iterable[Scenario], settings: SettingValues) -> list[Phase]:
    """Return the phases with their scenarios, drawn for training; those without a scenario are left out."""
    known = list(scenarios)
    train = [s for s in known if s.split == "train"]
    sweep = tuple(s.id for s in known if s.split == "eval")
    dev = tuple(s.id for s in known if s.split == "dev")
    if settings["acceptance"] == "off" or len(dev) < MIN_DEV:
        dev = ()
    size, seed = settings["sample_size"], settings["seed"]
    planned = [
        replace(phase, scenarios=draw(train, size=size, seed=seed, epoch=phase.epoch), dev=dev)
        if phase.mode == "train"
        else replace(phase, scenarios=sweep)
        for phase in phases
    ]
    return [phase for phase in planned if phase.scenarios]


def require_dev(scenarios: Iterable[Scenario], phase: Phase) -> None:
    """Raise ValueError where what decides on training epoch `phase` holds a scenario of another split."""
    splits = {scenario.id: scenario.split for scenario in scenarios}
    for id_ in phase.dev:
        if splits[id_] != "dev":
            raise ValueError(f"scenario {id_!r} of split {splits[id_]!r} must not decide on a library")


def dev_phase(phase: Phase, scenarios: tuple[str, ...], settings: SettingValues) -> Phase:
    """Return the sweep over `scenarios` of the dev split after a training epoch.

    Each gets twice `eval_rollouts`, half of them with a lesson and half without: as many as a sweep with all
    that is new and one without. Fewer where that were more than `acceptance_rollouts`, of which an odd one is
    better than none; then of the first scenarios alone, if two each are still too many.
    """
    most = int(settings["acceptance_rollouts"])
    asked = scenarios[: most // 2]
    each = min(2 * int(settings["eval_rollouts"]), most // len(asked)) if asked else 0
    return Phase(
        epoch=phase.epoch,
        mode="dev",
        temperature=settings["temperature_eval"],
        rollouts=each,
        scenarios=asked,
        dev_sweep=1,
    )


def most_rollouts(phase: Phase, settings: SettingValues) -> int:
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
