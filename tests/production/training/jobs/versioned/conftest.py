"""The versions of a loop, and the folder of a job that starts from the live one."""

from pathlib import Path

import pytest
from support.feedback.training import request

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.training.jobs.versioned.trials import starting_library
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts
from pytest_tfgrpo.production.training.versions.policies import Policies


@pytest.fixture
def policies(bus: Bus, tmp_path: Path) -> Policies:
    return Policies(bus, FolderArtifacts(tmp_path / "store"))


@pytest.fixture
def folder(tmp_path: Path, policies: Policies) -> Path:
    made = tmp_path / "jobs" / request("one").id
    made.mkdir(parents=True)
    (tmp_path / "suite").mkdir()
    starting_library(policies, made)
    return made
