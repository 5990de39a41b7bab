"""What lessons rest on: the groups of evidence, and the trajectories in them; no texts of production."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.runs.evidence_epoch import PREFIX


@dataclass(frozen=True, kw_only=True, slots=True)
class LessonSource:
    """What one lesson rests on."""

    lesson: str
    """Its id."""
    text: str
    groups: tuple[str, ...] = ()
    """Keys of groups of evidence, its parents' included."""
    trajectories: tuple[str, ...] = ()
    """Their attempts in production."""


def lesson_sources(
    run: Run, attempts: Mapping[str, Sequence[str]], inherited: Mapping[str, LessonSource]
) -> tuple[LessonSource, ...]:
    """Return what each lesson of a run's library rests on; those it started with have `inherited` sources.

    `attempts` are the ids of trajectories by the key of their group of evidence.
    """
    known = dict(inherited)
    for id_, text, parents, groups in _learned(run):
        older = [known[parent] for parent in parents if parent in known]
        own = [key for group in groups if (key := _evidence_key(run.run_id, group)) in attempts]
        keys = _once(key for part in (*(one.groups for one in older), own) for key in part)
        ids = (*(one.trajectories for one in older), *(attempts[key] for key in own))
        known[id_] = LessonSource(
            lesson=id_, text=text, groups=keys, trajectories=_once(id_ for part in ids for id_ in part)
        )
    return tuple(
        known.get(lesson.id) or LessonSource(lesson=lesson.id, text=line(lesson.summary32))
        for lesson in run.library.experiences
    )


def _learned(run: Run) -> Iterator[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Yield id, text, parents and groups of each lesson that a run made, in order."""
    for result in run.phases:
        for operation in result.revision.applied if result.revision else ():
            new = operation.experience
            if new is not None:
                groups = operation.groups or (new.group_id,)
                yield new.id, line(new.summary32), (*new.parents, *operation.targets), groups


def _evidence_key(run_id: str, group_id: str) -> str:
    """Return the key of the evidence that a group of the run was read from; empty where it was tried."""
    _, _, task = group_id.removeprefix(f"{run_id}.").partition(".")
    return task.removeprefix(PREFIX) if task.startswith(PREFIX) else ""


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
