"""The evaluator of gepa, after its adapter protocol: candidates are system texts by pack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from pytest_tfgrpo.arena.contestants.calls_from_thread import LoopCalls
from pytest_tfgrpo.arena.contestants.reflection import Example, Reflection, example
from pytest_tfgrpo.arena.contestants.system_texts import SystemTexts
from pytest_tfgrpo.arena.protocol import Ring, ScoredRollout
from pytest_tfgrpo.core.scenarios import Scenario


class SearchTask(NamedTuple):
    """One scenario as gepa holds it."""

    scenario: Scenario
    dev: bool
    """Whether candidates are chosen on it."""


class TaskAttempt(NamedTuple):
    """What became of one scenario of a batch."""

    place: str
    """Key of the text that its prompt carries."""
    scenario: Scenario
    attempt: ScoredRollout | None
    """None: it was not run."""

    @property
    def gt_score(self) -> float | None:
        """None: not run, or an error."""
        return None if self.attempt is None else self.attempt.score.gt_score


class Batch(Protocol):
    """Gepa's value of an evaluation, as far as it is read here."""

    trajectories: Sequence[TaskAttempt] | None


class GepaAdapter:
    """Runs candidates at scenarios; a batch that the budget has no room for is run as far as there is."""

    def __init__(
        self,
        ring: Ring,
        calls: LoopCalls,
        texts: SystemTexts,
        reflection: Reflection,
        batch: Callable[..., Batch],
    ) -> None:
        """`batch` makes the library's value of an evaluation."""
        self.propose_new_texts = reflection.propose
        self.passes = 0
        """Candidates that were run on the dev scenarios after the start."""
        self.cut: tuple[int, int] | None = None
        """(scenarios run, scenarios) of the pass in which the budget ended."""
        self._ring = ring
        self._calls = calls
        self._texts = texts
        self._batch = batch
        self._best: Sequence[float] = ()
        """Of the best candidate so far, by dev scenario."""
        self._known: dict[tuple[str, str], ScoredRollout] = {}
        """Attempts at dev scenarios, by the text that their prompts carried and the scenario."""

    def evaluate(
        self,
        batch: Sequence[SearchTask],
        candidate: Mapping[str, str],
        capture_traces: bool = False,  # noqa: ARG002 - traces cost nothing
    ) -> Batch:
        """Return the scores of a candidate; one that can be no pack scores 0 everywhere and runs nowhere."""
        if not self._texts.usable(candidate):
            trials = [self._trial(item, None) for item in batch]
            return self._evaluated(trials, [0.0] * len(trials))
        trials = self._tried(batch, candidate)
        return self._evaluated(trials, self._chosen(trials) if batch[0].dev else _filled(trials))

    def make_reflective_dataset(
        self,
        candidate: Mapping[str, str],  # noqa: ARG002 - the library's signature
        eval_batch: Batch,
        components_to_update: Sequence[str],
    ) -> dict[str, list[Example]]:
        """Return what a teacher is shown, by the text that it may change: a minibatch is of one pack."""
        trials = eval_batch.trajectories or ()
        shown = [example(trial.scenario, trial.attempt) for trial in trials if trial.attempt]
        return dict.fromkeys(components_to_update, shown)

    def _trial(self, item: SearchTask, attempt: ScoredRollout | None) -> TaskAttempt:
        return TaskAttempt(self._texts.place_of(item.scenario), item.scenario, attempt)

    def _tried(self, batch: Sequence[SearchTask], candidate: Mapping[str, str]) -> list[TaskAttempt]:
        """Run what is not known of a dev scenario, and every train scenario, as far as the budget goes."""
        keys = [(candidate[self._texts.place_of(item.scenario)], item.scenario.id) for item in batch]
        known = [self._known.get(key) if item.dev else None for key, item in zip(keys, batch, strict=True)]
        missing = [n for n, attempt in enumerate(known) if attempt is None]
        packs = self._texts.packs(candidate)

        async def run() -> Sequence[ScoredRollout]:
            there = [batch[n].scenario for n in missing[: self._ring.left]]
            library = self._texts.library(packs) if packs else None
            return await self._ring.ask(there, packs=packs or None, library=library) if there else ()

        made = self._calls(run)
        for n, attempt in zip(missing, made, strict=False):
            known[n] = attempt
            if batch[n].dev:
                self._known[keys[n]] = attempt
        if batch[0].dev and self._best and (made or not missing):
            self.passes += 1
        if len(made) < len(missing) and self.cut is None:
            self.cut = len(batch) - len(missing) + len(made), len(batch)
        return [self._trial(item, attempt) for item, attempt in zip(batch, known, strict=True)]

    def _chosen(self, trials: Sequence[TaskAttempt]) -> list[float]:
        """Return the scores of a pass over the dev scenarios.

        Where there is none, the candidate counts as the best one so far: scenarios with both decide.
        """
        best = self._best or _filled(trials)
        scores = [b if t.gt_score is None else t.gt_score for t, b in zip(trials, best, strict=True)]
        if sum(scores) > sum(self._best) or not self._best:
            self._best = scores
        return scores

    def _evaluated(self, trials: Sequence[TaskAttempt], scores: list[float]) -> Batch:
        return self._batch(outputs=[None] * len(trials), scores=scores, trajectories=list(trials))


def _filled(trials: Sequence[TaskAttempt]) -> list[float]:
    """Return the score of each trial; where there is none, the mean of the others."""
    known = [trial.gt_score for trial in trials if trial.gt_score is not None]
    mean = sum(known) / len(known) if known else 0.0
    return [mean if trial.gt_score is None else trial.gt_score for trial in trials]
