"""The commands ``tfgrpo loop ...``."""

from pathlib import Path

import pytest
from support import ROOT
from support.tools import tfgrpo

from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.storage.lease import Lease

RECORDED = ROOT / "tests" / "telemetry" / "traces" / "recorded"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that ``tfgrpo loop init`` was run in."""
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    return tmp_path


def test_imported_traces_are_left_to_a_service_that_runs(project: Path) -> None:
    bus = open_bus(f"embedded:{project / 'loop-bus.db'}")
    assert Lease(bus, "assembler", "a service").hold()
    assert "the service that runs" in tfgrpo("loop", "import", str(RECORDED / "pydantic-ai.jsonl"))
    assert bus.last("RL_TRAJECTORIES") == 0
    bus.close()
