"""What observers of a run are told: every record, in order, on the engine's event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from pytest_tfgrpo.core.dataclass import dataclass
from pytest_tfgrpo.core.errors import describe
from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult, Rollout, Run
from pytest_tfgrpo.core.text import line
from pytest_tfgrpo.harness.sandbox.workspace import Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class AwaitingChecker:
    """Told when a rollout waits for its marked test function to judge it."""

    rollout: Rollout
    workspace: Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedPrompt:
    """Told when the final sweep's rollouts of a marked test function serve the control too."""

    scenario_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedRollout:
    """Told when a rollout that a marked test function waits for will not be made in this run."""

    rollout_id: str
    reason: str
    """What does not allow it: a budget, or a provider that is away."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LostRollout:
    """Told when an agent of fixtures is asked again, with fresh ones: its provider was away, as it seemed."""

    rollout_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """A sentence for whoever follows the run: it pauses, and why, or what learning can gain."""

    text: str


Record: TypeAlias = (
    Rollout
    | Group
    | Phase
    | PhaseResult
    | Experience
    | AwaitingChecker
    | SharedPrompt
    | RefusedRollout
    | LostRollout
    | Notice
    | Run
)
"""A rollout when it ends, a group with its scores, a phase when a sweep of the dev split starts, the result
of a phase when it ends, a lesson when it is kept, one that waits for its checker, a scenario whose rollouts
serve both sweeps, a rollout that will not be made, one whose fixtures must be fresh, a pause, and the run."""
Observer: TypeAlias = Callable[[Record], object]


class Observers:
    """Tells every record to all observers, in their order; one that raises breaks nothing."""

    def __init__(self, observe: Observer | Sequence[Observer]) -> None:
        """`observe` is one observer or several."""
        self._observers = (observe,) if callable(observe) else tuple(observe)
        self._broken: dict[int, str] = {}

    def __call__(self, record: Record) -> None:
        """Tell `record` to all."""
        for place, observer in enumerate(self._observers):
            try:
                observer(record)
            except Exception as error:  # noqa: BLE001 - an observer cannot break the run
                name = getattr(observer, "__qualname__", type(observer).__name__)
                self._broken.setdefault(place, f"observer {name} broke: {line(describe(error), 300)}")

    @property
    def warnings(self) -> tuple[str, ...]:
        """The first error of each observer that raised."""
        return tuple(self._broken.values())


def tell_again(run: Run, rollouts: Iterable[Rollout], observe: Observer) -> None:
    """Tell a complete run from its journal, with all `rollouts` on file: nobody is asked."""
    on_file = list(rollouts)
    for result in run.phases:
        groups = (*result.groups, *result.dev)
        judged = {rollout.rollout_id: rollout for group in groups for rollout in group.rollouts}
        for rollout in on_file:
            if rollout.epoch == result.phase.epoch:
                observe(judged.get(rollout.rollout_id, rollout))
        for group in groups:
            observe(group)
        for operation in result.revision.applied if result.revision is not None else ():
            if operation.experience is not None:
                observe(operation.experience)
        observe(result)
    observe(run)
