"""The forecast of a run: what each part will use, and the sources of the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.settings.agents import MAX_TOKENS
from pytest_tfgrpo.core.settings.runs import BUDGET_TOKENS, BUDGET_USD
from pytest_tfgrpo.core.texts.text import count, line, money, plural
from pytest_tfgrpo.estimate import assumptions
from pytest_tfgrpo.estimate.assumptions import asked
from pytest_tfgrpo.estimate.history import History, history_of
from pytest_tfgrpo.estimate.ranges import Figures, Range, UnitUse, predict, total, up_to
from pytest_tfgrpo.estimate.recordings import uses_in
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.schedule import dev_phase, most_rollouts, steps_of


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseForecast:
    """Rollouts, learning, judging or the users' replies of one phase."""

    phase: str
    purpose: str
    figures: Figures


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """What a run will use, and what a reader must know about it."""

    parts: tuple[PhaseForecast, ...] = ()
    sources: tuple[str, ...] = ()
    """Where the figures come from."""
    warnings: tuple[str, ...] = ()
    free: bool = False
    """True if no component costs anything."""
    declared: Mapping[str, float | None] | None = None
    """The actor's declared maximum in ``usd`` and ``tokens``, if nothing more is known; else None."""
    declared_most: Figures | None = None
    """The same with the rollouts of the gate's later looks; None where it takes none."""
    looks: tuple[int, ...] = ()
    """Rollouts of each scenario that the final sweep may have when the gate looks at it, in order."""
    extension: Figures | None = None
    """What the rollouts after the first look take, from nothing to all of them; no part of the total."""

    @property
    def total(self) -> Figures:
        """Sum over all parts."""
        return total(part.figures for part in self.parts)

    @property
    def most(self) -> Figures:
        """Sum over all parts with the gate's further rollouts."""
        return self.total if self.extension is None else self.total + self.extension


def forecast(
    job: Job, folder: Path | None, recording: Path | None = None, looks: tuple[int, ...] = ()
) -> Forecast:
    """Return the forecast of a job; makes no calls and writes nothing.

    Its earlier runs are in `folder`; without any, what the file `recording` has of its actor counts. `looks`
    are the rollouts of each scenario that the gate may look at the final sweep with.
    """
    free = job.actor.bound(1).get("usd") == 0.0 and not any(model.paid for model in job.models.values())
    if free and not any(model.price for model in job.models.values()):
        return Forecast(free=True, looks=looks)
    history = history_of(job, folder)
    if not history.rollouts:
        domains = {scenario.id: scenario.domain for scenario in job.scenarios}
        model = job.models.get(job.actor.name)
        history.rollouts = uses_in(recording, job.actor.name, domains, model.price if model else None)
    if not job.models and not history.rollouts:
        _, planned, more = rollouts_of(job, looks)
        most = _declared(job.actor.bound(planned + more))
        return Forecast(
            declared=job.actor.bound(planned),
            warnings=tuple(_over_budget(job, most)),
            looks=looks,
            declared_most=most if more else None,
        )
    seer = _Seer(job, history)
    parts = tuple(seer.parts())
    extension = total(seer.extension(looks)) if further(job, looks) else None
    found = Forecast(parts=parts, sources=tuple(seer.sources), free=free, looks=looks, extension=extension)
    return replace(found, warnings=(*_unpriced(job, parts), *_over_budget(job, found.most)))


def _declared(bound: Mapping[str, float | None]) -> Figures:
    ends = {unit: Range(0.0, most) for unit, most in bound.items() if most is not None}
    return Figures(tokens=ends.get("tokens"), usd=ends.get("usd"))


def rollouts_of(job: Job, looks: tuple[int, ...] = ()) -> tuple[int, int, int]:
    """Return the rollouts that a run makes at least, at most, and beyond that if the gate looks again."""
    least = most = 0
    for phase in job.phases:
        certain, perhaps = asked(job, phase)
        least += len(certain) * phase.rollouts if phase.asks else 0
        most += len(perhaps) * phase.rollouts if phase.asks else 0
        most += most_rollouts(phase, job.settings)
    return least, most, sum(len(phase.scenarios) * phase.rollouts for phase in further(job, looks))


def further(job: Job, looks: tuple[int, ...]) -> list[Phase]:
    """Return the final sweep, and a control that runs with it, with the rollouts of all later looks alone."""
    if len(looks) < 2:
        return []
    times = looks[-1] // looks[0] - 1
    return [
        replace(phase, scenarios=ids, rollouts=phase.rollouts * times)
        for phase in steps_of(job.phases)[-1]
        if (ids := asked(job, phase)[1])
    ]


class _Seer:
    """Makes the parts of one forecast and notes where their figures come from."""

    def __init__(self, job: Job, history: History) -> None:
        self._job = job
        self._history = history
        self._prompts: assumptions.PromptSizes | None = None
        self.sources: dict[str, None] = {}

    def parts(self) -> Iterator[PhaseForecast]:
        for phase in self._job.phases:
            certain, perhaps = asked(self._job, phase)
            for purpose, figures in self._all_of(replace(phase, scenarios=perhaps)):
                found = figures if certain == perhaps else up_to(figures)
                yield PhaseForecast(phase=phase.label, purpose=purpose, figures=found)
            if phase.dev:
                yield from self._deciding(phase)

    def _all_of(self, phase: Phase) -> Iterator[tuple[str, Figures]]:
        if not phase.scenarios:
            yield "rollouts", Figures()
            return
        for purpose, figures in (
            ("rollouts", self._rollouts(phase) if phase.asks else Figures()),
            ("learning", self._learning(phase)),
            ("judge", self._judging(phase)),
            ("user", self._playing(phase)),
        ):
            if figures is not None:
                yield purpose, figures

    def extension(self, looks: tuple[int, ...]) -> Iterator[Figures]:
        """Yield what the rollouts of later looks take, from nothing to all of them."""
        for phase in further(self._job, looks):
            for _, figures in self._all_of(phase):
                yield up_to(figures)

    def _deciding(self, phase: Phase) -> Iterator[PhaseForecast]:
        """Yield what the dev split takes after an epoch: nothing, where no prompt changes, to its most."""
        sweep = dev_phase(phase, phase.dev, self._job.settings)
        if not sweep.rollouts:
            return
        for purpose, figures in (
            ("rollouts", self._rollouts(sweep)),
            ("judge", self._judging(sweep)),
            ("user", self._playing(sweep)),
        ):
            if figures is not None:
                yield PhaseForecast(phase=f"{phase.label}-dev", purpose=purpose, figures=up_to(figures))

    def _rollouts(self, phase: Phase) -> Figures:
        job, known = self._job, self._history.rollouts
        if known:
            number = sum(map(len, known.values()))
            self._note(f"rollouts: mean and spread of {number} in {self._runs()}")
            return total(self._recorded(phase, known))
        model = self._model(job.actor.name)
        if model is not None:
            prompts = self._rendered()
            self._note(
                f"rollouts: estimated from {prompts.scenarios} rendered prompts, 2.5 to 6 bytes per token, "
                f"and answers of {assumptions.ANSWER_TOKENS} tokens to max_tokens ({model.max_tokens})"
            )
            return assumptions.rollouts(job, phase, model, prompts)
        rollouts = len(phase.scenarios) * phase.rollouts
        bound = job.actor.bound(rollouts)
        most = {unit: bound.get(unit) for unit in ("usd", "tokens")}
        self._note(
            "rollouts: at most what the actor declares"
            if any(most.values())
            else "rollouts: the actor declares no limit"
        )
        ends = {unit: None if high is None else Range(0.0, high) for unit, high in most.items()}
        return Figures(calls=Range(rollouts, rollouts), tokens=ends["tokens"], usd=ends["usd"])

    def _recorded(self, phase: Phase, known: dict[str, list[UnitUse]]) -> Iterator[Figures]:
        """Yield the figures of each domain; one that is not recorded is assumed to be like the others."""
        domain_of = {s.id: s.domain for s in self._job.scenarios}
        everything = [use for uses in known.values() for use in uses]
        for domain, scenarios in sorted(Counter(domain_of[id_] for id_ in phase.scenarios).items()):
            if domain not in known:
                self._note(f"domain {line(domain, 40)}: not recorded, assumed to be like the others")
            yield predict(known.get(domain, everything), scenarios * phase.rollouts)

    def _learning(self, phase: Phase) -> Figures | None:
        name = _teacher(self._job)
        model = None if name is None else self._model(name)
        if not phase.trains or model is None:
            return None
        if self._history.learning:
            epochs = plural(len(self._history.learning), "epoch")
            self._note(f"learning: mean and spread of {epochs} in {self._runs()}")
            return predict(self._history.learning, len(phase.scenarios))
        self._note("learning: estimated, from no group with mixed results to all groups")
        return assumptions.learning(self._job, phase, model)

    def _judging(self, phase: Phase) -> Figures | None:
        judge = self._job.judge
        asked = {s.id for s in self._job.scenarios if s.rubric} & set(phase.scenarios)
        model = None if judge is None else self._model(judge.name)
        if model is None or not asked:
            return None
        if self._history.judge:
            self._note(f"judge: mean and spread of {len(self._history.judge)} phases in {self._runs()}")
            return predict(self._history.judge, len(asked) * phase.rollouts)
        self._note("judge: estimated, from one call per vote to one repair of each")
        return assumptions.judging(self._job, phase, model, self._rendered())

    def _playing(self, phase: Phase) -> Figures | None:
        """Return what the model that plays users takes, where it plays one."""
        user = self._job.user
        played = {s.id for s in self._job.scenarios if s.user is not None} & set(phase.scenarios)
        model = None if user is None else self._model(user.name)
        if model is None or not played:
            return None
        if self._history.user:
            talks = plural(len(self._history.user), "conversation")
            self._note(f"user: mean and spread of {talks} in {self._runs()}")
            return predict(self._history.user, len(played) * phase.rollouts)
        self._note("user: estimated, from one reply in each conversation to two calls for each of max_turns")
        return assumptions.playing(self._job, phase, model, self._rendered())

    def _model(self, name: str) -> assumptions.Model | None:
        completer = self._job.models.get(name)
        if completer is None:
            return None
        limit = completer.identity.get("max_tokens") or MAX_TOKENS.of(self._job.settings)
        return assumptions.Model(price=completer.price, max_tokens=int(limit))

    def _rendered(self) -> assumptions.PromptSizes:
        if self._prompts is None:
            self._prompts = assumptions.render(self._job)
        return self._prompts

    def _runs(self) -> str:
        runs = self._history.runs
        if not runs:
            return "the recording"
        return f"{plural(runs, 'earlier run')}"

    def _note(self, text: str) -> None:
        self.sources[text] = None


def _teacher(job: Job) -> str | None:
    """Return the name of the model that the optimizer calls, if it calls one."""
    name = job.optimizer.identity.get("model")
    return name if isinstance(name, str) else None


def _unpriced(job: Job, parts: Sequence[PhaseForecast]) -> Iterator[str]:
    for name, model in sorted(job.models.items()):
        if model.paid and model.price is None:
            yield f"the price of {line(name, 200)} is unknown; add it to the file of the setting models"
    if not job.models and any(part.figures.usd is None for part in parts):
        yield "the cost is unknown: the actor declares none"


def _over_budget(job: Job, whole: Figures) -> Iterator[str]:
    usd, tokens = BUDGET_USD.of(job.settings), BUDGET_TOKENS.of(job.settings)
    for unit, found, limit in (("usd", whole.usd, usd), ("tokens", whole.tokens, tokens)):
        if limit is None or found is None or found.high <= limit:
            continue
        show = money if unit == "usd" else count
        sure = "is not enough: at least" if found.low > limit else "may not be enough: up to"
        end = found.low if found.low > limit else found.high
        yield f"budget_{unit} of {show(limit)} {sure} {show(end)}; the run would end incomplete"
