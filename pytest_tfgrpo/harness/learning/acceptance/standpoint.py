"""The standpoint of a run after an epoch: what was proposed, what is known of lessons, and from what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.lessons import Experience, Library, Operation, Revision
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult
from pytest_tfgrpo.harness.learning.attribution.exposures import content_key, series_of
from pytest_tfgrpo.harness.learning.attribution.leaving_out import latest_trials
from pytest_tfgrpo.harness.learning.library.learned_effects import measure_of_effects, prior_for
from pytest_tfgrpo.harness.run.job import Job

if TYPE_CHECKING:
    from pytest_tfgrpo.harness.learning.acceptance.evidence import Evidence
    from pytest_tfgrpo.numerics.effect_model import EffectPrior


@dataclass(frozen=True, slots=True)
class Standpoint:
    """Where a run stands when an epoch has proposed something."""

    job: Job
    phase: Phase
    """The training epoch."""
    groups: tuple[Group, ...]
    """Its training groups."""
    library: Library
    """Active until now."""
    candidate: Revision
    earlier: Sequence[PhaseResult]

    @property
    def lessons(self) -> Mapping[str, Experience]:
        """Every lesson that a prompt of the run may have carried, by id; the latest last."""
        libraries = [self.job.library]
        rejected: list[Operation] = []
        for result in self.earlier:
            if result.revision is not None:
                libraries.append(result.revision.library)
                decided = result.revision.acceptance
                rejected += decided.rejected if decided is not None else ()
        known = {o.experience.id: o.experience for o in rejected if o.experience is not None}
        for library in (*libraries, self.library, self.candidate.library):
            known |= {e.id: e for e in library.experiences}
        return known

    @property
    def series(self) -> str:
        """What the run draws by."""
        return series_of(self.job.settings["seed"], self.job.library)

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
        by_key = {content_key(e): e for e in self.lessons.values()}
        return {
            key: by_key[key]
            for key, trial in latest_trials(self.earlier).items()
            if trial.fate in ("refused", "removed") and key in by_key
        }

    def evidence(self, dev: Iterable[Group] = ()) -> Evidence:
        """Return all that the run has seen of its lessons, with `dev`, the groups of the present sweep."""
        from pytest_tfgrpo.harness.learning.acceptance.evidence import gather

        groups = [
            group
            for result in self.earlier
            if result.phase.mode == "train"
            for group in (*result.groups, *result.dev)
        ]
        return gather([*groups, *self.groups, *dev], self.lessons, self.job.scenarios, self.job.packs)
