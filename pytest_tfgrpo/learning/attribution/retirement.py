"""Retirement: remove harmful lessons, and replace those that were tried long without effect.

What it returns are operations like any other: acceptance tries them on the dev split where it is on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_tfgrpo.core.lessons import Experience, Library, Operation, Refusal, Revision
from pytest_tfgrpo.core.records import Group, Phase, PhaseResult
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.learning.attribution.effects import UNSEEN, LessonEffect, lesson_effects
from pytest_tfgrpo.learning.attribution.exposures import (
    content_key,
    exposures_of,
    history,
    known_lessons,
    series_of,
)
from pytest_tfgrpo.learning.library.library import carry_out, is_trim
from pytest_tfgrpo.learning.library.refusals import refusal_of
from pytest_tfgrpo.runs.job import Job


def evidence(
    job: Job, phase: Phase, groups: Sequence[Group], earlier: Sequence[PhaseResult], library: Library
) -> dict[str, LessonEffect]:
    """Return what is known of each lesson at the end of a training epoch, by content key.

    It rests on this epoch, on `earlier` ones of the run, and on what earlier runs showed of the lessons that
    the run started with.
    """
    lessons = known_lessons(job.library, earlier) | {e.id: e for e in library.experiences}
    keys = {id_: content_key(experience) for id_, experience in lessons.items()}
    stamps = {s.id: s.stamp for s in job.scenarios}
    votes = frozenset(s.id for s in job.scenarios if s.truth == "majority")
    epochs = [(result.phase, result.groups) for result in earlier if result.phase.mode == "train"]
    rows = history(job.preflight)
    for trained, of_epoch in [*epochs, (phase, groups)]:
        rows += exposures_of(
            of_epoch,
            run_id=job.run_id,
            series=series_of(SEED.of(job.settings), job.library),
            propensity=1.0 - trained.lesson_dropout,
            stamps=stamps,
            keys=keys,
            unknown=votes,
        )
    return lesson_effects(rows)


def without_harmful(
    operations: Iterable[Operation], found: Mapping[str, LessonEffect]
) -> tuple[list[Operation], list[Refusal]]:
    """Part the operations that would bring in what was shown to harm from the others."""
    kept: list[Operation] = []
    refused: list[Refusal] = []
    for operation in operations:
        new = operation.experience
        standing = UNSEEN if new is None else found.get(content_key(new), UNSEEN)
        if standing.verdict == "harmful":
            refused.append(refusal_of(operation, "harmful", _figures(standing)))
        else:
            kept.append(operation)
    return kept, refused


def retire(
    library: Library,
    revision: Revision,
    found: Mapping[str, LessonEffect],
    *,
    packs: Mapping[str, PromptPack],
    retire_after: int,
    cap: int,
) -> Revision:
    """Return `revision` of `library` with the removals that `found` calls for after its own operations.

    A lesson that one of its operations changes is left to that. `packs` maps domains to packs.
    """
    proposed = [operation for operation in revision.applied if not is_trim(operation)]
    taken = {target for operation in proposed for target in operation.targets}
    free = [e for e in library.experiences if e.id not in taken]
    known = {e.id: found.get(content_key(e), UNSEEN) for e in free}
    harmful = [e for e in free if known[e.id].verdict == "harmful"]
    gone = [
        *(_removal(e, f"harmful: {_figures(known[e.id])}") for e in harmful),
        *_giving_way(library, proposed, harmful, known, packs=packs, retire_after=retire_after),
    ]
    if not gone:
        return revision
    wider = carry_out(library, [*proposed, *gone], cap=cap, epoch=revision.epoch)
    return replace(revision, library=wider.library, applied=wider.applied)


def _giving_way(
    library: Library,
    proposed: Sequence[Operation],
    harmful: Sequence[Experience],
    known: Mapping[str, LessonEffect],
    *,
    packs: Mapping[str, PromptPack],
    retire_after: int,
) -> list[Operation]:
    """Return the removals that make room for new lessons: the weakest of those long tried in vain."""
    new = Counter(op.experience.domain for op in proposed if op.kind == "add" and op.experience is not None)
    held = Counter(e.domain for e in library.experiences if e.stamp_signature == _stamp(packs, e.domain))
    held.subtract(e.domain for e in harmful)
    gone = []
    for domain, count in sorted(new.items()):
        if domain not in packs:
            continue
        leaving = {e.id for e in harmful}
        idle = [
            e
            for e in library.experiences
            if e.domain == domain and e.id in known.keys() - leaving and _is_idle(known[e.id], retire_after)
        ]
        idle.sort(key=lambda e: (known[e.id].effect or 0.0, e.summary32, e.id))
        room = min(count, max(0, held[domain] + count - packs[domain].experience_slots))
        gone += [_removal(e, f"made room for a new lesson: {_figures(known[e.id])}") for e in idle[:room]]
    return gone


def _stamp(packs: Mapping[str, PromptPack], domain: str) -> str:
    return packs[domain].stamp if domain in packs else ""


def _is_idle(standing: LessonEffect, retire_after: int) -> bool:
    """Return whether a lesson was tried often enough and has shown no good."""
    return standing.ci95 is not None and standing.groups >= retire_after and standing.ci95[0] <= 0


def _removal(experience: Experience, reason: str) -> Operation:
    return Operation(kind="remove", targets=(experience.id,), reason=reason)


def _figures(standing: LessonEffect) -> str:
    assert standing.ci95 is not None, "only what is estimable is judged"
    low, high = standing.ci95
    return (
        f"effect {standing.effect:+.3f} (95 % interval {low:+.3f} to {high:+.3f}, adjusted "
        f"p {standing.p_adjusted:.2g}) in {standing.included} groups with it and {standing.left_out} without"
    )
