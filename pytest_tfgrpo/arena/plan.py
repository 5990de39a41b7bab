"""The plan of an arena: who competes, on what, with how much; all misuse is found here, before any call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from pytest_tfgrpo.arena.contestants.learned import Learned
from pytest_tfgrpo.arena.protocol import Contestant
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.files import ARENA_SIDES
from pytest_tfgrpo.core.keys.agent_list import listed_agents
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import Settings
from pytest_tfgrpo.core.settings.agents import ACTOR, TEACHER
from pytest_tfgrpo.core.settings.learning import (
    ACCEPTANCE_ROLLOUTS,
    GROUP_SIZE,
    TEMPERATURE_EVAL,
    TEMPERATURE_TRAIN,
)
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.engine.preparation.components import MODEL
from pytest_tfgrpo.engine.request import RunRequest, SharedLimits
from pytest_tfgrpo.engine.supplied import Supplied
from pytest_tfgrpo.launch.choice import limited, planned, select
from pytest_tfgrpo.llm.limits.budget import Budget
from pytest_tfgrpo.protocols import Optimizer
from pytest_tfgrpo.runs.schedule import most_rollouts

LEAST_GROUP: Final = 2


@dataclass(frozen=True, kw_only=True)
class ArenaPlan:
    """An arena that can begin."""

    arena_id: str
    task_id: str
    root: Path
    folder: Path
    """Of its files."""
    settings: Settings
    scenarios: Sequence[Scenario]
    """With their splits."""
    contestants: Mapping[str, Contestant | None]
    """By name, in the order of the command; None for the placebo."""
    optimizers: Mapping[str, Optimizer] = field(default_factory=dict)
    """Those by hook, by name."""
    budget_rollouts: int
    """Of each contestant."""
    budget_teacher_calls: int
    """Of each contestant."""
    environ: Mapping[str, str]
    arguments: Mapping[str, Json]
    """Those that began it, with which it goes on."""
    dry: bool = False
    """Nobody is called."""

    @property
    def out(self) -> Path:
        """The output folder that its task's runs are in, too."""
        return self.folder.parents[2]

    def split(self, name: str) -> list[Scenario]:
        """Return the scenarios of a split."""
        return [scenario for scenario in self.scenarios if scenario.split == name]

    @property
    def sweep(self) -> Phase:
        """One side of the final sweep; their epochs are their places."""
        return Phase(
            epoch=1,
            mode="eval",
            temperature=TEMPERATURE_EVAL.of(self.settings),
            rollouts=self.settings.eval_rollouts,
            scenarios=tuple(scenario.id for scenario in self.split("eval")),
        )

    @property
    def question(self) -> Phase:
        """What a contestant asks: each time another epoch."""
        asked = tuple(scenario.id for scenario in self.scenarios if scenario.split != "eval")
        temperature = TEMPERATURE_TRAIN.of(self.settings)
        return Phase(epoch=1, mode="train", temperature=temperature, rollouts=1, scenarios=asked)

    def request(
        self,
        name: str,
        run_id: str,
        phases: Sequence[Phase],
        budget: Budget | None = None,
        *,
        settings: Settings | None = None,
        optimizer: str = "none",
    ) -> RunRequest:
        """Return the request of one run of a side, which goes on where a run of that id has begun."""
        return RunRequest(
            root=self.root,
            settings=(settings or self.settings).with_values(
                out=str(self.folder / ARENA_SIDES), task_id=name, optimizer=optimizer
            ),
            scenarios=self.scenarios,
            phases=phases,
            supplied=Supplied(optimizer=self.optimizers.get(optimizer)),
            environ=self.environ,
            run_id=run_id,
            shared=SharedLimits(budget=budget and budget.share()),
            dry=self.dry,
        )


def arena_settings(settings: Settings) -> Settings:
    """Return the settings of a project as an arena uses them: nothing judges its runs but their comparison.

    Raises SettingError where they name several agents.
    """
    if agents := listed_agents(ACTOR.of(settings)):
        raise SettingError(
            f"an arena is of one agent, and the setting actor lists {len(agents)}; name one for this "
            f"command, as in {ACTOR.env}={agents[0].spec}"
        )
    learning = Settings(True, settings.values, settings.origins)
    return learning.with_values(
        placebo_sweep=False,
        baseline_sweep="off",
        eval_mode="separate",
        **dict.fromkeys(("baseline", "gates", "gate_min_mean", "evidence")),
    )


def choose_scenarios(found: Iterable[Scenario], settings: Settings, root: Path) -> list[Scenario]:
    """Return the scenarios of an arena with their splits; raises SettingError where it can show nothing."""
    chosen, _ = limited(select(found, settings, root), settings)
    for split, use in (("train", "learn from"), ("eval", "compare on")):
        if not any(scenario.split == split for scenario in chosen):
            raise SettingError(
                f"there are no {split} scenarios to {use}; set split: {split} on some, or name another "
                "--suite"
            )
    return chosen


def require_teacher(contestants: Mapping[str, Contestant | None], settings: Settings) -> None:
    """Raise SettingError where a contestant needs a teacher and none is set."""
    if teacher_of(settings) is not None:
        return
    for name, contestant in contestants.items():
        if contestant is not None and contestant.needs_teacher:
            raise SettingError(
                f"--optimizers: {name} needs a language model that teaches; set tfgrpo_teacher, for example "
                "openai:<model>"
            )


def teacher_of(settings: Settings) -> str | None:
    """Return the model that teaches: as set, else the actor if it is one."""
    actor = ACTOR.of(settings) or ""
    return TEACHER.of(settings) or (actor if actor.startswith(f"{MODEL}:") else None)


def require_rollouts(plan: ArenaPlan) -> None:
    """Raise SettingError where a contestant that learns could not run each train scenario in one group."""
    drawn = len(_first_epoch(plan, plan.settings).scenarios)
    least = drawn * LEAST_GROUP
    learners = [name for name, one in plan.contestants.items() if isinstance(one, Learned)]
    if learners and plan.budget_rollouts < least:
        raise SettingError(
            f"--budget-rollouts {plan.budget_rollouts} is too small: {learners[0]} needs at least {least}, a "
            f"group of {LEAST_GROUP} for each of {plural(drawn, 'train scenario')}; raise it, or lower "
            "tfgrpo_sample_size"
        )


def fitted(plan: ArenaPlan, left: int) -> Settings | None:
    """Return the settings of a learning run that takes at most `left` rollouts; None: they are too few.

    It has as many epochs as fit, and then as large groups. Where not even one fits, the dev split gets what
    its groups leave.
    """
    settings = plan.settings
    phase = _first_epoch(plan, settings)
    drawn, size = len(phase.scenarios), GROUP_SIZE.of(settings)
    dev = most_rollouts(phase, _values(settings))
    if drawn * size + dev <= left:
        epochs = left // (drawn * size + dev)
        return settings.with_values(epochs=epochs, group_size=(left // epochs - dev) // drawn)
    size = min(size, left // drawn)
    if size < LEAST_GROUP:
        return None
    rest = max(1, min(left - drawn * size, ACCEPTANCE_ROLLOUTS.of(settings)))
    return settings.with_values(epochs=1, group_size=size, acceptance_rollouts=rest)


def training(plan: ArenaPlan, settings: Settings) -> list[Phase]:
    """Return the training phases of a learning run."""
    return [phase for phase in planned(plan.scenarios, settings, plan.root) if phase.trains]


def _first_epoch(plan: ArenaPlan, settings: Settings) -> Phase:
    return training(plan, settings)[0]


def _values(settings: Settings) -> Mapping[str, object]:
    return {**settings.values, "eval_rollouts": settings.eval_rollouts}
