"""What observers of a run receive: every record, in order, on the engine's event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TypeAlias

from pytest_tfgrpo.core.errors import describe
from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult, Rollout, Run
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.sandbox.workspace import Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class AwaitingChecker:
    """Called when a rollout waits for its marked test function to judge it."""

    rollout: Rollout
    workspace: Workspace


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedPrompt:
    """Called when the final sweep's rollouts of a marked test function serve a sweep beside it too."""

    scenario_id: str
    epoch: int
    """Of the sweep beside it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedRollout:
    """Called when a rollout that a marked test function waits for will not be made in this run."""

    rollout_id: str
    reason: str
    """What does not allow it: a budget, or a provider that is away."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LostRollout:
    """Called when an agent of fixtures runs again, with fresh ones, because its provider seemed away."""

    rollout_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """A sentence for whoever follows the run: it pauses, and why, or what learning can gain."""

    text: str


class EngineFailed:
    """Sent as the last record when the engine raised instead of returning a run."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


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
    """Passes every record to all observers, in their order; one that raises breaks nothing."""

    def __init__(self, observe: Observer | Sequence[Observer], *, retell: bool = True) -> None:
        """`observe` is one observer or several."""
        self._observers = (observe,) if callable(observe) else tuple(observe)
        self._broken: dict[int, str] = {}
        self.retell = retell
        """Whether they receive the rollouts and groups that a resumed run has on file."""

    def __call__(self, record: Record) -> None:
        """Pass `record` to all."""
        for place, observer in enumerate(self._observers):
            try:
                observer(record)
            except Exception as error:  # noqa: BLE001 - an observer cannot break the run
                name = getattr(observer, "__qualname__", type(observer).__name__)
                self._broken.setdefault(place, f"observer {name} broke: {line(describe(error), 300)}")

    @property
    def any(self) -> bool:
        """Whether there is any observer."""
        return bool(self._observers)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The first error of each observer that raised."""
        return tuple(self._broken.values())


def tell_again(run: Run, ungrouped: Sequence[Rollout], observe: Observer, *, groups: bool = True) -> None:
    """Pass on a complete run from its journal, with the `ungrouped` rollouts on file: no agent runs.

    Without `groups` only of phases, lessons and the run.
    """
    for result in run.phases:
        for group in chain(result.groups, result.dev) if groups else ():
            tell_group(group, observe)
        tell_phase(result, ungrouped, observe)
    observe(run)


def tell_group(group: Group, observe: Observer) -> None:
    """Pass on a group that is on file, after its rollouts."""
    for rollout in group.rollouts:
        observe(rollout)
    observe(group)


def tell_phase(result: PhaseResult, ungrouped: Iterable[Rollout], observe: Observer) -> None:
    """Pass on what a phase on file came to, with those of the `ungrouped` rollouts that are its own."""
    for rollout in ungrouped:
        if rollout.epoch == result.phase.epoch:
            observe(rollout)
    for operation in result.revision.applied if result.revision is not None else ():
        if operation.experience is not None:
            observe(operation.experience)
    observe(result)
