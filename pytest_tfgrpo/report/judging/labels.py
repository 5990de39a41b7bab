"""Human labels of judged answers: which ones people label, and what their labels make of the gain.

The sample is drawn by hashes of a seed and of identity alone: every scenario that the judge scored in both
sweeps is as likely as another, families take turns, and any first part of it is such a sample too. Both
sweeps give as many answers of each scenario drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.core.errors import JournalError, SettingError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Rollout, Run
from pytest_tfgrpo.core.report_blocks import LabelledArm, LabelsBlock
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.text import interval
from pytest_tfgrpo.core.wire.stamp import SEED_BITS, identify, seed_of, stamp
from pytest_tfgrpo.metrics.comparison import Sweeps, compare
from pytest_tfgrpo.metrics.looks import evaluations
from pytest_tfgrpo.metrics.significance import ALPHA, Claim
from pytest_tfgrpo.numerics.agreement import wilson_interval
from pytest_tfgrpo.numerics.rectified import rectify, true_share
from pytest_tfgrpo.numerics.stats import mean_interval
from pytest_tfgrpo.report.judging.judge import PASSED
from pytest_tfgrpo.scoring.judge.prompt import shown
from pytest_tfgrpo.suite.families import sweeps_of

if TYPE_CHECKING:
    from pytest_tfgrpo.numerics.rectified import Rectified

ARMS = ("baseline", "final")


class Answer(NamedTuple):
    """An answer of one sweep, as the judge scored it."""

    item: str
    """Id of the `LabelItem` that stands for it."""
    score: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelItem:
    """What a person labels: one answer to one task; equal answers of both sweeps are one item."""

    id: str
    """Shows nothing of the sweep."""
    scenario: Scenario
    text: Mapping[str, str]
    """Task, criteria, steps and answer, as the judge was shown them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawnTask:
    """One scenario of the sample."""

    place: int
    """Among the scenarios that both sweeps scored."""
    items: tuple[LabelItem, ...]
    """In random order."""
    arms: tuple[tuple[Answer, ...], tuple[Answer, ...]]
    """The answers drawn of the baseline and of the final sweep."""
    weights: tuple[float, float]
    """Share of the scored rollouts that the judge scored, in each sweep; the others need no correction."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """The random sample of a run, in the order in which it is labelled."""

    seed: int
    answers: int
    """Answers of each sweep and task, where there are so many."""
    tasks: tuple[DrawnTask, ...]
    judged: int
    """Scenarios that the judge scored, of which the sample was drawn."""
    gains_K: tuple[float, ...]
    families_K: tuple[str, ...]

    @property
    def items(self) -> Iterator[LabelItem]:
        """Yield what people label, in order."""
        return (item for task in self.tasks for item in task.items)

    @property
    def stamp(self) -> str:
        """Stamp of all that people and the judge saw."""
        rows = [[task.place, *([item.id, dict(item.text)] for item in task.items)] for task in self.tasks]
        return stamp([rows, [task.arms for task in self.tasks]])


@dataclass(frozen=True, kw_only=True, slots=True)
class Labels:
    """The labels of a run's sample, as they are stored with the run."""

    run_id: str
    seed: int
    tasks: int
    answers: int
    sample: str
    """Stamp of the sample."""
    labels: Mapping[str, float]
    """Share of the criteria met, by the id of the item."""
    reads: tuple[int, ...] = ()
    """How many labels there were each time that they were read and differed from before."""


def draw(run: Run, *, tasks: int, answers: int = 1, seed: int = 0, sweeps: Sweeps | None = None) -> Sample:
    """Draw up to `tasks` scenarios, and `answers` of each in either sweep; raises JournalError if none."""
    sweeps = sweeps or sweeps_of(run)
    compared = compare(sweeps.rows_before, sweeps.rows_after)
    known = {s.id: s for s in run.scenarios}
    groups = [_groups(result.counted if result else ()) for result in (sweeps.before, sweeps.after)]
    places = [
        place
        for place, id_ in enumerate(compared.ids)
        if known[id_].truth == "judge" and any(_judged(by[id_]) for by in groups)
    ]
    if not places:
        raise JournalError(
            f"run {run.run_id} has no scenario that the judge scored in both the baseline and the final "
            "sweep, so there is nothing to label; the judge scores eval scenarios with `truth: judge`"
        )
    order = _order({place: (compared.families_K[place], compared.ids[place]) for place in places}, seed)
    drawn = []
    for place in order[:tasks]:
        scenario = known[compared.ids[place]]
        drawn.append(_task(run, scenario, place, [by[scenario.id] for by in groups], answers, seed))
    return Sample(
        seed=seed,
        answers=answers,
        tasks=tuple(drawn),
        judged=len(places),
        gains_K=tuple(compared.differences_K),
        families_K=compared.families_K,
    )


def _groups(groups: Sequence[Group]) -> dict[str, Group]:
    return {group.scenario_id: group for group in groups}


def _judged(group: Group) -> dict[int, tuple[Rollout, float]]:
    """Return the rollouts that have their score from the judge, by their place in the group."""
    return {
        rollout.index: (rollout, score.gt_score)
        for rollout, score in zip(group.rollouts, group.scores, strict=True)
        if rollout.status == "ok"
        and rollout.opinion is not None
        and rollout.opinion.score is not None
        and score.gt_score is not None
    }


def _order(named: Mapping[int, tuple[str, str]], seed: int) -> list[int]:
    """Return places in the order of the sample; `named` are family and id of each.

    Scenario r of the s of a family, in random order, has the key ``(r + u) / s`` with a random u for the
    family: systematic sampling, so that families of all sizes are spread evenly over the whole order and no
    scenario is likelier to come early than another.
    """
    members: dict[str, list[int]] = {}
    for place in sorted(named, key=lambda place: (seed_of(seed, "label", named[place][1]), place)):
        members.setdefault(named[place][0], []).append(place)
    keys: dict[int, float] = {}
    for family, of in members.items():
        start = seed_of(seed, "label family", family) / 2**SEED_BITS
        keys |= {place: (rank + start) / len(of) for rank, place in enumerate(of)}
    return sorted(keys, key=lambda place: (keys[place], place))


def _task(
    run: Run, scenario: Scenario, place: int, groups: Sequence[Group], answers: int, seed: int
) -> DrawnTask:
    """Draw answers of one scenario; the same places in both groups, as far as the judge scored them."""
    items: dict[str, LabelItem] = {}
    arms, weights = [], []
    for group in groups:
        judged = _judged(group)
        chosen = sorted(judged, key=lambda index: seed_of(seed, "label answer", scenario.id, index))[:answers]
        found = []
        for index in chosen:
            rollout, score = judged[index]
            text = shown(scenario, rollout)
            id_ = "a-" + identify(seed, run.run_id, scenario.id, stamp(text))
            items[id_] = LabelItem(id=id_, scenario=scenario, text=text)
            found.append(Answer(id_, score))
        arms.append(tuple(found))
        scored = sum(score.gt_score is not None for score in group.scores)
        weights.append(len(judged) / scored if scored else 0.0)
    mixed = sorted(items.values(), key=lambda item: seed_of(seed, "label order", item.id))
    return DrawnTask(
        place=place, items=tuple(mixed), arms=(arms[0], arms[1]), weights=(weights[0], weights[1])
    )


def sample_of(run: Run, labels: Labels, sweeps: Sweeps | None = None) -> Sample:
    """Draw the sample of stored labels again; raises JournalError if they are of another run or changed."""
    if labels.run_id != run.run_id:
        raise JournalError(f"the labels are of run {labels.run_id!r}, not of {run.run_id!r}")
    sample = draw(run, tasks=labels.tasks, answers=labels.answers, seed=labels.seed, sweeps=sweeps)
    ids = {item.id for item in sample.items}
    if sample.stamp != labels.sample or not labels.labels.keys() <= ids:
        raise JournalError(
            "the answers that were labelled are no longer those of the run's sweeps; "
            "draw and label a new sample"
        )
    return sample


def labels_report(run: Run, labels: Labels, sweeps: Sweeps | None = None) -> LabelsBlock:
    """Return what the labels make of the judge's gain; raises JournalError as `sample_of` does."""
    sweeps = sweeps or sweeps_of(run)
    sample, known = sample_of(run, labels, sweeps), labels.labels
    places = [n for n, task in enumerate(sample.tasks) if all(item.id in known for item in task.items)]
    whole = [sample.tasks[n] for n in places]
    found = _rectified(sample, whole, known) if whole else None
    seen = evaluations(run, sweeps)
    level = ALPHA / (seen["looks"] if seen else 1) / max(1, len(labels.reads))
    strict = _rectified(sample, whole, known, level=1 - level) if level < ALPHA and whole else found
    skipped = places[-1] + 1 - len(places) if places else 0
    return {
        "seed": sample.seed,
        "asked": len(list(sample.items)),
        "labelled": len(known),
        "tasks": len(sample.tasks),
        "used": len(whole),
        "families": len({sample.families_K[task.place] for task in whole}),
        "skipped": skipped,
        "judged": sample.judged,
        "judge_gain": fsum(sample.gains_K) / len(sample.gains_K),
        "gain": found.gain if found else None,
        "ci95": found.ci95 if found else None,
        "correction": found.correction.mean if found else None,
        "correction_ci95": found.correction.ci95 if found else None,
        "just_these": found.correction.just_these if found else False,
        "arms": [_arm(name, whole, known, n) for n, name in enumerate(ARMS)],
        "reads": list(labels.reads),
        "level": level,
        "claim": None if skipped else _claim(strict, sweeps),
    }


def _rectified(
    sample: Sample, tasks: Sequence[DrawnTask], labels: Mapping[str, float], level: float = 0.95
) -> Rectified:
    """Return the gain as labels of some tasks correct it."""
    return rectify(
        sample.gains_K,
        sample.families_K,
        [task.place for task in tasks],
        [_correction(task, labels) for task in tasks],
        sample.judged / len(sample.gains_K),
        level=level,
    )


def _claim(found: Rectified | None, sweeps: Sweeps) -> Claim | None:
    """Return the side of 0 that an interval lies on, with errors left out and with errors as 0."""
    if found is None or found.low is None or found.high is None:
        return None
    known, as_zero = (
        compare(sweeps.rows_before, sweeps.rows_after, errors_as_zero=zero).difference.mean
        for zero in (False, True)
    )
    low, high = found.low + min(0.0, as_zero - known), found.high + max(0.0, as_zero - known)
    return "better" if low > 0 else "worse" if high < 0 else None


def _correction(task: DrawnTask, labels: Mapping[str, float]) -> float:
    """Return human less judge of the final sweep, less the same of the baseline sweep."""
    before, after = (
        weight * fsum(labels[one.item] - one.score for one in arm) / len(arm) if arm else 0.0
        for arm, weight in zip(task.arms, task.weights, strict=True)
    )
    return after - before


def _arm(name: str, tasks: Sequence[DrawnTask], labels: Mapping[str, float], n: int) -> LabelledArm:
    """Return how far the judge agrees with the labels of one sweep."""
    pairs = [(labels[one.item], one.score) for task in tasks for one in task.arms[n]]
    alike = sum((human >= PASSED) == (score >= PASSED) for human, score in pairs)
    return {
        "arm": name,
        "n": len(pairs),
        "agreement": alike / len(pairs) if pairs else None,
        "ci95": list(wilson_interval(alike, len(pairs))) if pairs else None,
        "bias": fsum(score - human for human, score in pairs) / len(pairs) if pairs else None,
    }


def what_if(run: Run, accuracies: Sequence[tuple[float, float]]) -> str:
    """Return what the gain would be if a judge's accuracy, measured elsewhere, held in this run.

    `accuracies` are sensitivity and specificity in the baseline and in the final sweep. Scores are shares of
    good answers, so Rogan and Gladen's estimate, which is linear, holds scenario by scenario. Raises
    JournalError without a judged scenario, SettingError on a judge no better than chance.
    """
    sweeps = sweeps_of(run)
    compared, known = compare(sweeps.rows_before, sweeps.rows_after), {s.id: s for s in run.scenarios}
    judged_K = [known[id_].truth == "judge" for id_ in compared.ids]
    if not any(judged_K):
        raise JournalError(f"run {run.run_id} has no scenario that the judge scored in both sweeps")
    seen = [
        fsum(score for score, judged in zip(scores_K, judged_K, strict=True) if judged) / sum(judged_K)
        for scores_K in (compared.before_K, compared.after_K)
    ]
    try:
        good = true_share(seen[0], *accuracies[0])
        true_share(seen[1], *accuracies[1])
    except ValueError as error:
        raise SettingError(f"no what-if: {error}") from error
    (se0, sp0), (se1, sp1) = accuracies
    gains_K = [
        (after + sp1 - 1) / (se1 + sp1 - 1) - (before + sp0 - 1) / (se0 + sp0 - 1)
        if judged
        else after - before
        for before, after, judged in zip(compared.before_K, compared.after_K, judged_K, strict=True)
    ]
    reach = max(1.0, *map(abs, gains_K))
    found = mean_interval(gains_K, compared.families_K, support=(-reach, reach))
    ci95 = None if found.ci95 is None else [min(1.0, max(-1.0, bound)) for bound in found.ci95]
    spread = "too few for an interval" if ci95 is None else interval(ci95, "+.3f")
    told = f"{se0:g} of the good and {sp0:g} of the bad answers in both sweeps"
    if accuracies[0] != accuracies[1]:
        told = f"{se0:g} of the good and {sp0:g} of the bad answers before, {se1:g} and {sp1:g} after"
    text = (
        f"what if (no claim)  with a judge who is right about {told}, the gain would be "
        f"{min(1.0, max(-1.0, found.mean)):+.3f} ({spread})"
    )
    needed = 1 - (seen[1] - se1 * good) / (1 - good) if good < 1 else 0.0
    if seen[1] > seen[0] and needed < sp1:
        least = f"{needed:.3f}" if needed >= 0 else "below 0, which cannot be"
        text += f"; all of it is gone if lessons lower the second share to {least} in the final sweep"
    return f"{text}. Labels by people show which: tfgrpo labels sample"
