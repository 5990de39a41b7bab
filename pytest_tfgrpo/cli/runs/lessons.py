"""The command ``tfgrpo lessons``: the lessons of a task with their effect, age and origin."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.cli.lookup import COMMITTED, committed_file, find_library
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import JournalError, StoreError
from pytest_tfgrpo.core.files import EXPERIENCES, LIBRARY
from pytest_tfgrpo.core.lessons import Tombstone, from_evidence
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import interval, line, plural, wrapped
from pytest_tfgrpo.learning.attribution.effects import UNSEEN, lesson_effects, shrunken
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.attribution.pooling import records
from pytest_tfgrpo.learning.library.experience_store import ExperienceStore, export_camel
from pytest_tfgrpo.learning.library.library import load_library
from pytest_tfgrpo.numerics.attribution import MIN_ARM
from pytest_tfgrpo.report.attribution import probability
from pytest_tfgrpo.runs.journal.journal_contents import library_at_start, list_runs

if TYPE_CHECKING:
    from pytest_tfgrpo.cli.project import Project
    from pytest_tfgrpo.core.lessons import Experience, Library
    from pytest_tfgrpo.learning.attribution.effects import LessonEffect

WIDTH = 80
INDENT = " " * 6


@dataclass(frozen=True, kw_only=True, slots=True)
class LessonRow:
    """One lesson as it is listed."""

    experience: Experience
    standing: LessonEffect
    effect: float | None
    """Its effect, drawn towards that of the others; None while it is not known."""
    fate: str
    """Why it is not active; empty if it is."""
    runs: int
    """Runs begun after the one that learned it."""
    epochs: int
    """Training epochs made after the one that learned it."""
    days: float | None
    """Since it was made; None when its time cannot be read."""
    replaced: tuple[str, ...]
    """Ids of the lessons that it updates or merges, with their texts where they are not its own."""


def lessons(arguments: Arguments) -> Iterator[str]:
    """List the lessons of the task with their effects, or export them as JSON lines."""
    project = project_of(arguments)
    stored, tombstones = _stored(project)
    if arguments.export:
        yield from _export(project, stored, arguments.domain)
        return
    in_force, where = _in_force(project, stored, tombstones)
    every = {e.id: e for e in (*stored, *in_force)}
    every = {e.id: e for e in _started_with(project, every, tombstones)} | every
    if not every:
        yield f"no lessons in {_require_store(project)}"
    listed = every if arguments.all else {e.id: e for e in in_force}
    chosen = [e for e in listed.values() if arguments.domain in (None, e.domain)]
    if every and not chosen and arguments.domain is not None:
        domains = ", ".join(sorted({line(e.domain, 64) for e in listed.values()})) or "none"
        yield f"no lessons of domain {line(arguments.domain, 64)!r}; domains with lessons: {domains}"
    if chosen:
        yield from _listing(project, chosen, every, in_force, tombstones, where, arguments.sort)


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def _listing(
    project: Project,
    chosen: Sequence[Experience],
    every: Mapping[str, Experience],
    in_force: Sequence[Experience],
    tombstones: Mapping[str, Tombstone],
    where: str,
    sort: str,
) -> Iterator[str]:
    found, complaints = records(list_runs(project.out, project.task_id))
    for complaint in complaints:
        _warn(line(complaint))
    pooled = [record for record in found if record.measure == found[-1].measure]
    known = lesson_effects([row for record in pooled for row in record.rows])
    drawn = shrunken(known)
    alive = {e.id for e in in_force}
    heirs = {parent: e for e in every.values() for parent in e.parents}
    now = datetime.now(UTC)
    lessons = [
        LessonRow(
            experience=e,
            standing=known.get(content_key(e), UNSEEN),
            effect=drawn.get(content_key(e)),
            fate="" if e.id in alive else _fate(e, heirs, tombstones),
            runs=sum(record.run_id > e.run_id for record in found),
            epochs=sum(
                (record.run_id, epoch) > (e.run_id, e.epoch) for record in found for epoch in record.epochs
            ),
            days=_days(e.created_at, now),
            replaced=tuple(_named(p, every, e) for p in e.parents),
        )
        for e in chosen
    ]
    groups = sum(len(record.rows) for record in pooled)
    actor = line(pooled[-1].actor, 60) if pooled else "none"
    yield from wrapped(
        f"{plural(len(in_force), 'active lesson')} ({where}); effects over {plural(len(pooled), 'run')} and "
        f"{plural(groups, 'training group')} with the actor {actor}",
        WIDTH,
    )
    for lesson in sorted(lessons, key=_order(sort)):
        yield ""
        yield from _lines(lesson)


def _lines(lesson: LessonRow) -> Iterator[str]:
    e, standing = lesson.experience, lesson.standing
    yield from wrapped(f"{e.polarity:5} {line(e.domain, 64)}: {line(e.summary32, 300)}", WIDTH, "", INDENT)
    tried = f"{plural(standing.included, 'group')} with it, {standing.left_out} without"
    if lesson.effect is None:
        effect = f"effect not yet known (needs at least {MIN_ARM} of each): {tried}"
    else:
        effect = (
            f"effect {lesson.effect:+.3f}, drawn towards the mean of the lessons; alone "
            f"{standing.effect:+.3f} ({interval(standing.ci95, '+.3f')}), {standing.verdict}, "
            f"p {probability(standing.p_adjusted)}; {tried}"
        )
    yield from wrapped(effect, WIDTH, INDENT)
    age = f"{plural(lesson.epochs, 'epoch')}, {plural(lesson.runs, 'run')}"
    if lesson.days is not None:
        age += f", {plural(int(lesson.days), 'day')}"
    yield from wrapped(
        f"age {age}; stamp {line(e.stamp_signature, 64)[:8]}; "
        f"learned from {plural(e.support.groups, 'group')}{from_evidence(e.reward)}, "
        f"{'score' if e.reward.total_reward is None else 'reward'} {e.reward.value:.2f}",
        WIDTH,
        INDENT,
    )
    origin = f"id {line(e.id, 40)}, epoch {e.epoch} of run {line(e.run_id, 64)}"
    yield from wrapped(origin, WIDTH, INDENT)
    for text in lesson.replaced:
        yield from wrapped(f"revises {line(text, 200)}", WIDTH, INDENT, INDENT + "  ")
    if lesson.fate:
        yield from wrapped(f"not active: {line(lesson.fate, 300)}", WIDTH, INDENT, INDENT + "  ")


def _named(id_: str, every: Mapping[str, Experience], heir: Experience) -> str:
    old = every.get(id_)
    return id_ if old is None or old.summary32 == heir.summary32 else f"{id_}: {old.summary32}"


def _order(sort: str) -> Callable[[LessonRow], tuple[Any, ...]]:
    def key(lesson: LessonRow) -> tuple[Any, ...]:
        e, standing = lesson.experience, lesson.standing
        rest = (e.domain, e.polarity != "do", e.summary32, e.id)
        if sort == "age":
            return (e.run_id, e.epoch, *rest)
        if sort == "support":
            return (-standing.groups, *rest)
        if sort == "domain":
            return rest
        return (lesson.effect is None, -(lesson.effect or 0.0), *rest)

    return key


def _days(created_at: str, now: datetime) -> float | None:
    with suppress(ValueError, OverflowError):
        made = datetime.fromisoformat(created_at)
        made = made if made.tzinfo else made.replace(tzinfo=UTC)
        return max(0.0, (now - made).total_seconds() / 86_400)
    return None


def _fate(e: Experience, heirs: Mapping[str, Experience], tombstones: Mapping[str, Tombstone]) -> str:
    if e.id in heirs:
        return f"superseded by {heirs[e.id].id}: {heirs[e.id].summary32}"
    if e.id in tombstones:
        stone = tombstones[e.id]
        return f"removed in epoch {stone.epoch} of run {stone.run_id}: {stone.reason}"
    return "it belongs to another library than the active one"


def _stored(project: Project) -> tuple[list[Experience], dict[str, Tombstone]]:
    """Return what the store holds, nothing where there is none."""
    path = project.out / project.task_id / EXPERIENCES
    if not path.is_file():
        return [], {}
    with ExperienceStore.open(path) as store:
        records = list(store.records())
        for complaint in store.complaints:
            _warn(complaint)
    stored = [r for r in records if not isinstance(r, Tombstone)]
    return stored, {r.id: r for r in records if isinstance(r, Tombstone)}


def _started_with(
    project: Project, known: Mapping[str, Experience], tombstones: Mapping[str, Tombstone]
) -> Iterator[Experience]:
    """Yield what runs removed or revised of the libraries that they started with: no store holds these."""
    changed = [(id_, stone.run_id) for id_, stone in tombstones.items()]
    changed += [(parent, e.run_id) for e in known.values() for parent in e.parents]
    unknown = {id_: run_id for id_, run_id in changed if id_ not in known}
    for folder in list_runs(project.out, project.task_id) if unknown else ():
        with suppress(JournalError):  # of such a run the listing shows what the store has
            if folder.name in unknown.values():
                yield from (e for e in library_at_start(folder).experiences if e.id in unknown)


def _in_force(
    project: Project, stored: Sequence[Experience], tombstones: Mapping[str, Tombstone]
) -> tuple[Sequence[Experience], str]:
    """Return the active lessons and their source: the task's library, the committed one or the store."""
    current = project.out / project.task_id / LIBRARY
    if current.is_file():
        return _of(load_library(current))
    file = committed_file(project)
    if file is not None and file.is_file():
        return _of(find_library(project, COMMITTED)[0])
    gone = {parent for e in stored for parent in e.parents} | tombstones.keys()
    return [e for e in stored if e.id not in gone], "from the lesson store"


def _of(library: Library) -> tuple[Sequence[Experience], str]:
    return library.experiences, f"library {library.hash[:12]}"


def _export(project: Project, stored: Sequence[Experience], domain: str | None) -> Iterator[str]:
    _require_store(project)
    yield from (json.dumps(value) for value in export_camel(e for e in stored if domain in (None, e.domain)))


def _require_store(project: Project) -> Path:
    path = project.out / project.task_id / EXPERIENCES
    if not path.is_file():
        raise StoreError(f"there is no lesson store {path}; run pytest --tfgrpo first")
    return path
