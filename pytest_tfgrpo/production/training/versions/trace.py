"""Both ways between a trajectory, the lessons that rest on it, and the versions that carry them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.texts.text import line, plural, wrapped
from pytest_tfgrpo.production.deployment.serving import FIRST
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.sources import LessonSource

SHORTEST = 4
"""Characters of an id that may stand for it."""
_NAME = re.compile(r"v[0-9]+")


def trace_lines(policies: Policies, id_: str) -> Iterator[str]:
    """Yield what a version, a lesson or a trajectory is connected with; the start of an id stands for it.

    Raises StoreError where nothing has the id, or a version cannot be read.
    """
    names = [row.name for row in policies.whole()]
    if id_ in names:
        yield from _version(policies, id_)
        return
    if _NAME.fullmatch(id_):
        policies.row(id_)
        raise StoreError(f"version {id_} has no files; `tfgrpo loop versions list` says where each stands")
    carried = {name: policies.sources(name) for name in names}
    found = [*_lessons(carried, id_), *_trajectories(carried, id_)]
    if len(id_) < SHORTEST or not found:
        least = f"; write {SHORTEST} characters of it or more" if len(id_) < SHORTEST else ""
        raise StoreError(f"no version, lesson or trajectory of a lesson has the id {id_!r}{least}")
    yield from found


def _version(policies: Policies, name: str) -> Iterator[str]:
    version = policies.read(name)
    state = policies.row(name).state.replace("_", " ")
    yield f"version    {name}, {state}, {plural(version.lessons, 'lesson')}"
    if name == FIRST:
        yield "           the agent without lessons"
        return
    yield f"parents    {', '.join(version.parents)}"
    yield from _labelled("learned", f"by job {line(version.job)} in run {line(version.run)}")
    for source in policies.sources(name):
        yield from ("", *_lesson(source))


def _labelled(label: str, text: str) -> list[str]:
    return wrapped(text, 80, f"{label:<11}", " " * 11)


def _lesson(source: LessonSource) -> Iterator[str]:
    yield from _labelled("lesson", f"{source.lesson}: {line(source.text)}")
    if not source.trajectories:
        yield "           rests on scenarios of the suite alone"
        return
    number = len(source.trajectories)
    yield f"rests on   {number} {'trajectory' if number == 1 else 'trajectories'}"
    yield from (f"           {line(id_)}" for id_ in source.trajectories)


def _lessons(carried: Mapping[str, Sequence[LessonSource]], id_: str) -> Iterator[str]:
    known = {source.lesson: source for sources in carried.values() for source in sources}
    for lesson, source in known.items():
        if lesson.startswith(id_):
            yield from _lesson(source)
            yield f"carried by {', '.join(_carriers(carried, lesson))}"


def _trajectories(carried: Mapping[str, Sequence[LessonSource]], id_: str) -> Iterator[str]:
    rests = {
        (trajectory, source.lesson): source
        for sources in carried.values()
        for source in sources
        for trajectory in source.trajectories
        if trajectory.startswith(id_)
    }
    for trajectory in dict.fromkeys(trajectory for trajectory, _ in rests):
        yield f"trajectory {line(trajectory)}"
        for (of, lesson), source in rests.items():
            if of == trajectory:
                yield from _labelled("taught", f"{lesson}: {line(source.text)}")
                yield f"carried by {', '.join(_carriers(carried, lesson))}"


def _carriers(carried: Mapping[str, Sequence[LessonSource]], lesson: str) -> list[str]:
    return [name for name, sources in carried.items() if any(one.lesson == lesson for one in sources)]
