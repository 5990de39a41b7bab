"""Actors whose calls an executor does not make."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.jobs import ScriptedActor, make_job

from pytest_tfgrpo.engine.executors.registry import unplaced


@pytest.mark.parametrize(
    ("executor", "replayed", "supplied", "spec", "said"),
    [
        ("local", False, False, "openai:m", ""),
        ("process:2", True, False, "openai:m", ""),
        ("process:2", False, False, "python:m:a", ""),
        ("process:2", False, False, "command:./a", ""),
        ("process:2", False, True, "openai:m", ""),
        ("process:2", False, False, "openai:m", "executor process:2 does not apply to the actor scripted"),
    ],
)
def test_an_actor_that_stays_here_is_told_where_an_executor_is_set(
    tmp_path: Path, executor: str, replayed: bool, supplied: bool, spec: str, said: str
) -> None:
    job = make_job(
        ScriptedActor(lambda _: "3"), tmp_path, executor=executor, job_replayed=replayed,
        job_supplied_actor=supplied,
    )  # fmt: skip
    job = replace(job, settings={**job.settings, "actor": spec})
    assert unplaced(job).partition(",")[0] == said
