"""What an invocation of pytest starts its runs with."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.plugin.distributed import RUN_ID
from pytest_tfgrpo.plugin.prepare import open_agents


@pytest.mark.parametrize(("worker", "run_id"), [({"workerinput": {RUN_ID: "run1"}}, "run1"), ({}, None)])
def test_workers_share_the_run_of_their_controller(
    worker: dict[str, Any], run_id: str | None, tmp_path: Path
) -> None:
    config: Any = SimpleNamespace(rootpath=tmp_path, getoption=lambda *_: None, **worker)
    settings = resolve({"actor": "python:m:a"}, {}, {})
    assert [agent.run_id for agent in open_agents(config, settings)] == [run_id]
