"""The standpoint of a run after an epoch: what was proposed, what is known of lessons, and from what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.lessons import Experience, LessonTrial, Library, Operation, Revision
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.learning.acceptance.evidence import gather, joined
from pytest_tfgrpo.learning.attribution.exposures import content_key, series_of
from pytest_tfgrpo.learning.attribution.leaving_out import latest_trials
from pytest_tfgrpo.learning.library.learned_effects import measure_of_effects, prior_for
from pytest_tfgrpo.runs.job import Job

if TYPE_CHECKING:
    from pytest_tfgrpo.learning.acceptance.evidence import Evidence
    from pytest_tfgrpo.numerics.effect_model import EffectPrior


def tried_lessons(start: Library, earlier: Iterable[PhaseResult]) -> dict[str, Experience]:
    """Return every lesson of the epochs so far, active or rejected, by id."""
    libraries, rejected = [start], list[Operation]()
    for result in earlier:
        if result.revision is not None:
            libraries.append(result.revision.library)
            decided = result.revision.acceptance
            rejected += decided.rejected if decided is not None else ()
    known = {o.experience.id: o.experience for o in rejected if o.experience is not None}
    for library in libraries:
        known |= {e.id: e for e in library.experiences}
    return known


def refused_lessons(
    start: Library, earlier: Sequence[PhaseResult]
) -> tuple[tuple[Experience, LessonTrial], ...]:
    """Return the lessons that earlier epochs refused or removed, with what is known of them, worst first."""
    by_key = {content_key(e): e for e in tried_lessons(start, earlier).values()}
    found = [
        (by_key[key], trial)
        for key, trial in latest_trials(earlier).items()
        if trial.fate in ("refused", "removed") and key in by_key
    ]
    return tuple(sorted(found, key=lambda pair: (pair[1].value, pair[1].key)))


@dataclass(frozen=True, slots=True)
class Standpoint:
    """Where a run stands when an epoch has proposed something."""

    job: Job
    phase: Phase
    """The training epoch."""
    groups: Sequence[Group]
    """Its training groups."""
    library: Library
    """Active until now."""
    candidate: Revision
    earlier: Sequence[PhaseResult]

    @property
    def lessons(self) -> Mapping[str, Experience]:
        """Every lesson that a prompt of the run may have carried, by id; the latest last."""
        known = tried_lessons(self.job.library, self.earlier)
        for library in (self.library, self.candidate.library):
            known |= {e.id: e for e in library.experiences}
        return known

    @property
    def series(self) -> str:
        """What the run draws by."""
        return series_of(SEED.of(self.job.settings), self.job.library)

    @property
    def measure(self) -> str:
        """What the effects of lessons depend on."""
        return measure_of_effects(self.job.stamps, self.job.identities, self.job.settings)

    @property
    def prior(self) -> EffectPrior | None:
        """What earlier runs learned of lessons in general."""
        return prior_for(self.job.library, series=self.series, measure=self.measure)

    def refused(self) -> dict[str, Experience]:
        """Return the lessons that earlier epochs refused or removed, by content key."""
        return {trial.key: lesson for lesson, trial in refused_lessons(self.job.library, self.earlier)}

    def evidence(self) -> Evidence:
        """Return all that the run has seen of its lessons before the present sweep of the dev split."""
        trained = [result for result in self.earlier if result.phase.trains]
        before = chain.from_iterable(result.with_dev for result in trained)
        return gather(chain(before, self.groups), self.lessons, self.job.scenarios, self.job.packs)

    def with_dev(self, evidence: Evidence, dev: Iterable[Group]) -> Evidence:
        """Return `evidence` with `dev`, the groups of the present sweep."""
        return joined(evidence, dev, self.lessons, self.job.scenarios)
