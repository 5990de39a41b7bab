"""Features that a run may lack: what each does at a hook of the phase loop, a row for each, in order.

Engine, launch and report go through this file and know none of the features; what a feature needs is loaded
where a run uses it. Stages and sources of answers have a table of their own, `engine.stages.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult, Run
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.settings.gate import CONTAMINATION, GATE_SEQUENTIAL
from pytest_tfgrpo.core.settings.runs import PATTERNS
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.protocols import OpenWatch

if TYPE_CHECKING:
    from pytest_tfgrpo.core.report_blocks import AttributionBlock
    from pytest_tfgrpo.gate.baseline import Baseline
    from pytest_tfgrpo.runs.evidence_epoch import GivenEpoch
    from pytest_tfgrpo.runs.job import Job
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind


class RunPlan(NamedTuple):
    """A learning run before its first call."""

    scenarios: Sequence[Scenario]
    packs: Mapping[str, PromptPack]
    """All that there are, by domain."""
    library: Library
    kinds: Mapping[str, CheckKind]
    settings: Mapping[str, object]
    root: Path
    out: Path | None
    task_id: str
    stamps: Mapping[str, str]
    identities: Mapping[str, Json]
    begun: Sequence[Path] = ()
    """Folders of runs that this one may go on with, the newest first; none for a new run."""


Give: TypeAlias = "Callable[[RunPlan], GivenEpoch]"
"""Returns what a phase learns from that runs no agent; raises TfgrpoError."""
BeforeRun: TypeAlias = Callable[[RunPlan], Mapping[str, Json]]
"""Returns what the header of a new learning run holds of it; raises TfgrpoError to refuse the run."""
Join: TypeAlias = Callable[[RunPlan], tuple[Library, Sequence[str]]]
"""Returns the library that a run starts with, and what to say of it; raises TfgrpoError to refuse the run."""
LeaveOut: TypeAlias = "Callable[[Job, Phase, Library, Sequence[PhaseResult]], frozenset[str]]"
"""Returns the ids of lessons that prompts of a phase leave out with the chance `lesson_dropout`."""
BeforeLearning: TypeAlias = "Callable[[Job, Phase, Sequence[Group], Sequence[PhaseResult]], tuple[str, str]]"
"""Returns what to say before a phase learns from its groups, and why to end the run; empty for nothing.

It is called beside the event loop.
"""
AfterRun: TypeAlias = Callable[[Path, Run], None]
"""Writes into the folder of a run that ended what later runs need; raises JournalError."""
WatchSweep: TypeAlias = "Callable[[Job, Baseline | None, bool], OpenWatch | None]"
"""Returns what opens the watch over a sweep that may end early; True: foreign rules judge it too."""


def read_evidence(plan: RunPlan) -> GivenEpoch:
    """Return the attempts of the file that the setting names, and their tasks."""
    from pytest_tfgrpo.runs.evidence_epoch import evidence_epoch

    return evidence_epoch(
        plan.scenarios,
        root=plan.root,
        settings=plan.settings,
        kinds=plan.kinds,
        packs=plan.packs,
        library=plan.library,
        begun=plan.begun,
    )


def join_patterns(plan: RunPlan) -> tuple[Library, Sequence[str]]:
    """Return the library with the lessons of active patterns; raises StoreError."""
    if (folder := PATTERNS.of(plan.settings)) == "none":
        return plan.library, ()
    from pytest_tfgrpo.learning.library.pattern_lessons import join_active

    return join_active(
        plan.root / folder,
        plan.library,
        plan.scenarios,
        kinds=plan.kinds,
        packs=plan.packs,
        settings=plan.settings,
    )


def refuse_contamination(plan: RunPlan) -> Mapping[str, Json]:
    """Return where training could know the eval split; raises ScenarioError unless that only warns."""
    from pytest_tfgrpo.suite.contamination.inspection import require_clean

    found = require_clean(
        plan.scenarios,
        kinds=plan.kinds,
        packs=plan.packs,
        library=plan.library,
        warns=CONTAMINATION.of(plan.settings) == "warn",
    )
    return {"contamination": found}


def pool_exposures(plan: RunPlan) -> Mapping[str, Json]:
    """Return what runs before this one show of the lessons that it starts with."""
    from pytest_tfgrpo.learning.attribution.pooling import earlier_exposures

    return earlier_exposures(
        plan.out,
        plan.task_id,
        plan.library,
        stamps=plan.stamps,
        identities=plan.identities,
        settings=plan.settings,
    )


def probe_lessons(job: Job, phase: Phase, library: Library, results: Sequence[PhaseResult]) -> frozenset[str]:
    """Return the lessons that a training epoch leaves out at random, to see what they do."""
    if not phase.lesson_dropout:
        return frozenset()
    from pytest_tfgrpo.learning.attribution.leaving_out import probed

    return probed(job, phase, library, results)


def measure_headroom(
    job: Job, phase: Phase, groups: Sequence[Group], earlier: Sequence[PhaseResult]
) -> tuple[str, str]:
    """Return what learning can gain at all, as the first training groups show it."""
    from pytest_tfgrpo.runs.headroom import look_ahead

    return look_ahead(job, phase, groups, earlier)


def decide_early(job: Job, baseline: Baseline | None, foreign_rules: bool) -> OpenWatch | None:
    """Return what ends the final sweep once the gate is decided."""
    if not GATE_SEQUENTIAL.of(job.settings):
        return None
    from pytest_tfgrpo.gate.sequential import watch_for

    return watch_for(job, baseline, foreign_rules=foreign_rules)


def effects_of_lessons(run: Run) -> AttributionBlock | None:
    """Return what leaving lessons out showed of their effects; None where no training epoch left one out."""
    if not any(result.phase.lesson_dropout for result in run.phases if result.phase.mode == "train"):
        return None
    from pytest_tfgrpo.learning.attribution.reported import attribution_report

    return attribution_report(run)


def keep_exposures(folder: Path, run: Run) -> None:
    """Write which lessons the prompts of training groups carried, for later runs."""
    if any(result.phase.trains for result in run.phases):
        from pytest_tfgrpo.learning.attribution.exposures import record_of, write

        write(folder, record_of(run))


def load_ending() -> None:
    """Load what the end of a run needs of features, ahead of it."""
    from pytest_tfgrpo.suite.contamination import overlap  # noqa: F401


GIVE: Mapping[str, Give] = {"evidence": read_evidence}
"""By the mode of the phase."""
JOIN: tuple[Join, ...] = (join_patterns,)
BEFORE_RUN: tuple[BeforeRun, ...] = (refuse_contamination, pool_exposures)
LEAVE_OUT: tuple[LeaveOut, ...] = (probe_lessons,)
BEFORE_LEARNING: tuple[BeforeLearning, ...] = (measure_headroom,)
WATCH_SWEEP: tuple[WatchSweep, ...] = (decide_early,)
"""The first that opens a watch has the sweep."""
AFTER_RUN: tuple[AfterRun, ...] = (keep_exposures,)
