"""Which algorithms a service takes jobs of."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.feedback.training import FakeStarter, request

from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.training.jobs.external_work import ExternalWork
from pytest_tfgrpo.production.training.jobs.openers import EXTERNAL, job_openers
from pytest_tfgrpo.production.training.jobs.pytest_work import PytestPlan
from pytest_tfgrpo.production.training.jobs.request import TFGRPO
from pytest_tfgrpo.production.training.jobs.status import status_of

BEFORE = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


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


def test_without_versions_a_trainer_s_work_is_its_process_alone(tmp_path: Path) -> None:
    job: Any = SimpleNamespace(request=request(algorithm="ppo"))
    open_work = job_openers(None, ("train",), FakeStarter(), LoopScrubber(b"k" * 32))["ppo"]
    assert isinstance(open_work(job, tmp_path), ExternalWork)


@pytest.mark.parametrize(("algorithm", "platform"), [("tfgrpo", "tfgrpo"), ("ppo", "external")])
def test_a_status_says_who_trains_and_which_job_went_before(algorithm: str, platform: str) -> None:
    found = status_of(
        request(algorithm=algorithm), "queued", "2026-01-01T12:00:00Z", {"metrics": {}, "error": None}
    )
    assert found["metadata"] == {"training_platform": platform}
    assert not {"metrics", "error"} & {*found}
    after = request(algorithm=algorithm, metadata={"previous_training_job": BEFORE})
    parts = {"metadata": {"samples": 0}}
    said = status_of(after, "running", "2026-01-01T12:00:00Z", parts)["metadata"]
    assert said == {"training_platform": platform, "previous_training_job": BEFORE, "samples": 0}
