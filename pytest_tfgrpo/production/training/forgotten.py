"""What was learned from trajectories that are forgotten: files with their texts go, lessons are named.

A lesson holds no text of production; whether one that rests on what is gone stays is a person's decision.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.production.training.versions.artifacts import LOGS
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.sources import LessonSource

EVIDENCE = "evidence.jsonl"


class ForgottenLearning(NamedTuple):
    """What rests on what is forgotten."""

    jobs: tuple[str, ...]
    """Ids of the jobs whose files were removed."""
    lessons: tuple[tuple[LessonSource, tuple[str, ...]], ...]
    """Lessons, and the names of the versions that carry them."""
    weights: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Checkpoints that a trainer made of it, and the names of the versions that have them."""


def forget_learning(policies: Policies, folder: Path, ids: Collection[str]) -> ForgottenLearning:
    """Remove the folders of jobs below `folder` whose evidence has one of the ids, and name the lessons.

    Raises OSError, BusError and StoreError.
    """
    wanted = {id_.encode() for id_ in ids}
    jobs = []
    for file in sorted(folder.glob(f"*/{EVIDENCE}")):
        if _holds(file, wanted):
            shutil.rmtree(file.parent)
            policies.files.remove(f"{LOGS}/{file.parent.name}")
            jobs.append(file.parent.name)
    carried: dict[str, tuple[LessonSource, list[str]]] = {}
    for row in policies.whole():
        for source in policies.sources(row.name):
            if not ids or not any(one.lower() in ids for one in source.trajectories):
                continue
            carried.setdefault(source.lesson, (source, []))[1].append(row.name)
    return ForgottenLearning(
        tuple(jobs),
        tuple((source, tuple(names)) for source, names in carried.values()),
        _weights(policies, jobs),
    )


def _weights(policies: Policies, jobs: Collection[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the checkpoints that these jobs made, with the versions that have them."""
    rows = policies.whole()
    if not any(row.job in jobs for row in rows):
        return ()
    checkpoints = {row.name: policies.read(row.name).checkpoint for row in rows}
    made = dict.fromkeys(checkpoints[row.name] for row in rows if row.job in jobs and checkpoints[row.name])
    return tuple((one, tuple(name for name, has in checkpoints.items() if has == one)) for one in made)


def _holds(file: Path, wanted: Collection[bytes]) -> bool:
    with file.open("rb") as lines:
        return any(any(id_ in line.lower() for id_ in wanted) for line in lines)
