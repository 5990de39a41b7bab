"""Learning: the step from the scored groups of an epoch to the next library."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from pytest_tfgrpo.core.errors import BudgetError, OptimizerError, OutageError, RecordingError
from pytest_tfgrpo.core.files import MANIFEST, RUNS
from pytest_tfgrpo.core.lessons import Library, Revision
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult
from pytest_tfgrpo.core.settings.learning import EXPERIENCE_MAX_WORDS, LIBRARY_CAP, RETIRE_AFTER
from pytest_tfgrpo.core.settings.runs import CONCURRENCY, SEED
from pytest_tfgrpo.learning.acceptance.standpoint import refused_lessons
from pytest_tfgrpo.learning.attribution.retirement import evidence, retire, without_harmful
from pytest_tfgrpo.learning.evidence_families import with_families
from pytest_tfgrpo.learning.library.library import apply
from pytest_tfgrpo.learning.library.screen import Screen
from pytest_tfgrpo.llm.calls import Calls
from pytest_tfgrpo.llm.limits.concurrency import most_at_once
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.protocols import LearningContext
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.suite.contamination.answers import expected_answers, tool_names
from pytest_tfgrpo.suite.packs import pack_for

NOTHING_TO_LEARN = "no group had mixed results, so there was nothing to learn from"


async def learn(
    job: Job,
    phase: Phase,
    groups: Sequence[Group],
    library: Library,
    calls: Calls,
    earlier: Sequence[PhaseResult] = (),
) -> Revision:
    """Return what `groups` do to `library`, before it is tried; what is on file is taken as it is.

    Lessons that these groups and those of `earlier` phases show to harm are retired with it.

    Raises OptimizerError when the optimizer breaks, BudgetError when it may not go on, OutageError when its
    model answers nothing, and RecordingError when a replay lacks what it needs.
    """
    recorded = job.resumed.candidates.get(phase.epoch) or job.resumed.revisions.get(phase.epoch)
    if recorded is not None:
        return recorded
    context = _context(job, phase, groups, library, calls, earlier)
    found = await asyncio.to_thread(evidence, job, phase, groups, earlier, library)
    cap = LIBRARY_CAP.of(job.settings)
    try:
        proposal = await job.optimizer.propose(context)
        operations, harmful = without_harmful(proposal.operations, found)
        revision = apply(library, operations, screen=_screen(job, context), cap=cap, epoch=phase.epoch)
    except (BudgetError, OutageError, RecordingError):
        raise
    except Exception as error:
        raise OptimizerError(
            f"optimizer {job.optimizer.name!r} failed in epoch {phase.epoch}: "
            f"{type(error).__name__}: {redact(str(error))}"
        ) from error
    revision = retire(
        library,
        revision,
        found,
        packs=context.packs,
        retire_after=RETIRE_AFTER.of(job.settings),
        cap=cap,
    )
    informative = sum(group.informative for group in groups)
    return replace(
        revision,
        refused=(*harmful, *revision.refused),
        lesson_groups=len(proposal.lesson_groups),
        informative_groups=informative,
        failures={redact(code): count for code, count in proposal.failures.items()},
        note=redact(proposal.note) or ("" if informative else NOTHING_TO_LEARN),
    )


def _screen(job: Job, context: LearningContext) -> Screen:
    return Screen(
        (s for s in job.scenarios if s.split != "eval"),
        answers=lambda scenario: expected_answers(job.kinds, scenario),
        packs=context.packs,
        max_words=context.max_words,
        tools=tool_names(context.groups),
    )


def _context(
    job: Job,
    phase: Phase,
    groups: Sequence[Group],
    library: Library,
    calls: Calls,
    earlier: Sequence[PhaseResult],
) -> LearningContext:
    train = {s.id: s for s in job.scenarios if s.split == "train"}
    packs = {s.domain: pack_for(job.packs, s.domain) for s in train.values()}
    if not phase.asks:
        train = with_families(train, frozenset(phase.scenarios))
    return LearningContext(
        run_id=job.run_id,
        task_id=job.task_id,
        epoch=phase.epoch,
        actor=job.actor.name,
        groups=groups,
        scenarios=train,
        packs=packs,
        library=library,
        max_words=EXPERIENCE_MAX_WORDS.of(job.settings),
        created_at=utc_now(),
        manifest_path=f"{RUNS}/{job.run_id}/{MANIFEST}",
        calls=calls,
        seed=SEED.of(job.settings),
        concurrency=most_at_once(CONCURRENCY.of(job.settings)),
        refused=refused_lessons(job.library, earlier),
    )
