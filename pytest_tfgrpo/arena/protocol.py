"""What a contestant of the arena is, and what it may use: scenarios, a share of rollouts, a teacher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from pytest_tfgrpo.core.errors import BudgetError
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Rollout, Score
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.wire.wire import Json

if TYPE_CHECKING:
    from pytest_tfgrpo.learning.library.screen import Screen


class RolloutsSpent(BudgetError):
    """More rollouts were requested than a contestant has left; none of them was made."""


class TeacherCallsSpent(BudgetError):
    """A contestant has no teacher call left; none was made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredRollout:
    """One rollout, checked and scored."""

    rollout: Rollout
    score: Score
    """All null if the rollout is an error, which is no fault of the agent."""


class Ring(Protocol):
    """What a contestant may use; whatever it runs here is counted and kept on file.

    A contestant must be deterministic: after a kill it is started again, and what it asked before is answered
    from the file, in the same order.
    """

    train: Sequence[Scenario]
    dev: Sequence[Scenario]
    """Empty where the suite is too small for a dev split."""
    seed: int
    packs: Mapping[str, PromptPack]
    """Prompt packs by domain, as the run has them; ``*`` serves every domain without one of its own."""
    library: Library
    """The library of the start."""
    actor: str
    """Name of the agent, for lessons that come from its attempts."""
    screen: Screen
    """Refuses texts that no prompt may carry, such as answers of the suite."""

    @property
    def left(self) -> int:
        """Rollouts of its budget that are not spent."""
        ...

    @property
    def teacher_calls_left(self) -> int:
        """Teacher calls of its budget that are not made."""
        ...

    async def ask(
        self,
        scenarios: Sequence[Scenario],
        *,
        packs: Mapping[str, PromptPack] | None = None,
        library: Library | None = None,
    ) -> Sequence[ScoredRollout]:
        """Run the agent once at each scenario, in order; one that stands there twice runs twice.

        `packs` stand in place of those of their domains; without a `library` prompts carry that of the start.
        Raises RolloutsSpent, before any call, where fewer are left. Raises BudgetError or OutageError when
        the whole arena can go on no more: a contestant lets them pass.
        """
        ...

    async def teach(self, system: str, user: str) -> str:
        """Return the teacher's answer to one question.

        Raises TeacherCallsSpent, before any call, where none is left, SettingError without a teacher,
        ModelError where it gives no usable answer, BudgetError and OutageError as `ask` does.
        """
        ...

    async def learn(self, optimizer: str) -> Library:
        """Return what a learning run with an optimizer learns, also one by hook.

        It has as many epochs as the rollouts left allow, and learns from as many groups as the teacher calls
        left allow. Raises BudgetError, OutageError or OptimizerError.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Trained:
    """What a contestant made: prompts of the final sweep carry it."""

    library: Library | None = None
    """None: that of the start."""
    packs: Mapping[str, PromptPack] = field(default_factory=dict)
    """Packs that it changed, by domain; the others stay as they are."""
    note: str = ""
    """What a reader of the table must know of it."""
    teacher_limited: bool = False
    """Whether it would have gone on with more teacher calls."""


class Contestant(Protocol):
    """Makes the best of a budget of rollouts; a failure of its own is a note in the table."""

    name: str
    """As in ``--optimizers``."""
    identity: Mapping[str, Json]
    """What identifies it (library, version, settings): an arena goes on only with equal ones."""
    needs_teacher: bool
    """Without a teacher it is refused before any call."""

    async def train(self, ring: Ring) -> Trained:
        """Spend the budget, and return what it came to."""
        ...
