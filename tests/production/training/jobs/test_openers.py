"""Which algorithms a service takes jobs of."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.feedback.training import FakeStarter

from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.training.jobs.openers import EXTERNAL, job_openers
from pytest_tfgrpo.production.training.jobs.pytest_work import PytestPlan
from pytest_tfgrpo.production.training.jobs.request import TFGRPO


@pytest.mark.parametrize(
    ("project", "command", "taken"),
    [
        (False, (), set()),
        (False, ("train",), {*EXTERNAL}),
        (True, (), {*EXTERNAL, TFGRPO}),
        (True, ("train",), {*EXTERNAL, TFGRPO}),
    ],
)
def test_jobs_are_taken_of_what_a_command_or_a_project_can_do(
    tmp_path: Path, project: bool, command: tuple[str, ...], taken: set[str]
) -> None:
    plan = PytestPlan(project=tmp_path) if project else None
    assert set(job_openers(plan, command, FakeStarter(), LoopScrubber(b"k" * 32))) == taken
