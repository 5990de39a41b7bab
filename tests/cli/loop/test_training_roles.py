"""Which services run jobs, and where."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pytest_tfgrpo.cli.loop.loop_roles import training_roles
from pytest_tfgrpo.cli.loop.open_loop import open_configured
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.config import load_loop_config
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.view.view import LoopView


def test_a_project_that_is_not_there_is_found_before_the_first_job(tmp_path: Path) -> None:
    file = tmp_path / "loop.toml"
    file.write_text('[training]\nproject = "suite"\n')
    (tmp_path / "loop.key").write_text("a" * 64)
    config = load_loop_config(file, {})
    with closing(open_configured(config)) as bus, closing(LoopView(config.view_path)) as view:
        jobs = TrainingJobs(bus, "one")
        with pytest.raises(
            SettingError, match=r"loop.toml: training.project: there is no folder .*suite; name"
        ):
            training_roles(bus, view, config, jobs, {})
        (tmp_path / "suite").mkdir()
        assert len(training_roles(bus, view, config, jobs, {})) == 3
