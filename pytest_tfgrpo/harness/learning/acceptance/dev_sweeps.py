"""Sweeps of the dev split: each scenario runs at most once with each prompt of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Group, Phase, RunStatus
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.setting_values import SettingValues
from pytest_tfgrpo.harness.learning.prompts import Ask, RenderedPrompt
from pytest_tfgrpo.harness.run.schedule import dev_phase

if TYPE_CHECKING:
    from pytest_tfgrpo.harness.learning.acceptance.rule import Pairs

Sweep: TypeAlias = Callable[[Phase, Ask], Awaitable[Mapping[str, Group]]]
"""Carries out a phase and returns its groups by scenario id; raises Unfinished when it could not."""


class Unfinished(Exception):
    """A sweep did not finish: interrupted, aborted, or out of budget."""

    def __init__(self, end: RunStatus) -> None:
        """`end` is how the run ends."""
        super().__init__(end)
        self.end: RunStatus = end


class DevSweeps:
    """Asks the dev scenarios, over all epochs of a run.

    Where two libraries give a scenario the same prompt, its difference is exactly 0: temperature and seeds
    are the same too, so that asking twice could only add noise that has mean 0.
    """

    def __init__(
        self,
        scenarios: Iterable[Scenario],
        settings: SettingValues,
        *,
        prompts: Callable[[Library], Ask],
        sweep: Sweep,
    ) -> None:
        """`asker` returns what asks under a library, no lesson left out; `sweep` carries out a phase."""
        self._split = {scenario.id: scenario.split for scenario in scenarios}
        self._settings = settings
        self._asker = prompts
        self._sweep = sweep
        self._questions: dict[str, Mapping[str, RenderedPrompt]] = {}
        self._known: dict[tuple[str, str], Group] = {}
        self._phase: Phase | None = None
        self._sweeps = 0
        self.made = 0
        """Rollouts of the epoch so far."""

    def begin(self, phase: Phase) -> None:
        """Start with what decides on training epoch `phase`; raises ValueError on a scenario not of dev."""
        for id in phase.dev:
            if self._split[id] != "dev":
                raise ValueError(f"scenario {id!r} of split {self._split[id]!r} must not decide on a library")
        self._phase = phase
        self._questions = {}
        self._sweeps = self.made = 0

    def changed(self, before: Library, after: Library) -> tuple[str, ...]:
        """Return the ids of the dev scenarios whose prompt differs between two libraries, in order."""
        old, new = self._asked(before), self._asked(after)
        return tuple(id for id in old if old[id].prompt_stamp != new[id].prompt_stamp)

    def cost(self, before: Library, after: Library) -> int:
        """Return how many rollouts a comparison still needs."""
        ids = self.changed(before, after)
        missing = len(self._missing(before, ids)) + len(self._missing(after, ids))
        return missing * int(self._settings["eval_rollouts"])

    async def compare(self, before: Library, after: Library) -> Pairs:
        """Return the scores under both libraries; only unknown ones are measured.

        Raises Unfinished, and what a sweep raises.
        """
        from pytest_tfgrpo.harness.learning.acceptance.rule import Pairs

        ids = self.changed(before, after)
        for library in (before, after):
            await self._ask(library, self._missing(library, ids))
        old, new = self._asked(before), self._asked(after)
        return Pairs.of(
            len(old) - len(ids),
            {id: self._known[id, old[id].prompt_stamp] for id in ids},
            {id: self._known[id, new[id].prompt_stamp] for id in ids},
        )

    async def _ask(self, library: Library, ids: tuple[str, ...]) -> None:
        if not ids:
            return
        assert self._phase is not None, "begin() comes first"
        self._sweeps += 1
        questions = self._asked(library)
        phase = dev_phase(self._phase, self._sweeps, ids, self._settings)
        groups = await self._sweep(phase, questions.__getitem__)
        for id in ids:
            self._known[id, questions[id].prompt_stamp] = groups[id]
            self.made += len(groups[id].rollouts)

    def _missing(self, library: Library, ids: tuple[str, ...]) -> tuple[str, ...]:
        questions = self._asked(library)
        return tuple(id for id in ids if (id, questions[id].prompt_stamp) not in self._known)

    def _asked(self, library: Library) -> Mapping[str, RenderedPrompt]:
        """Return the questions of all dev scenarios under a library."""
        assert self._phase is not None, "begin() comes first"
        if library.hash not in self._questions:
            ask = self._asker(library)
            self._questions[library.hash] = {id: ask(id) for id in self._phase.dev}
        return self._questions[library.hash]
