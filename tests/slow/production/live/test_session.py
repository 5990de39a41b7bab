"""What the application holds: runs, choices, and what never reaches the agent."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builders import make_experience
from support.live.session import CONFIG, Backend

from pytest_tfgrpo.learning.library.library import of, save_library
from pytest_tfgrpo.production.live.config import load_live_config
from pytest_tfgrpo.production.live.session import Live


@pytest.fixture
def backend() -> Backend:
    return Backend()


@pytest.fixture
def live(tmp_path: Path, backend: Backend) -> Iterator[Live]:
    save_library(tmp_path / "library.json", of([make_experience()]))
    (tmp_path / "live.toml").write_text(CONFIG)
    with Live(load_live_config(tmp_path / "live.toml", {"enabled": True}, {}), backend) as opened:
        yield opened


OFF = """
import sys
import pytest_tfgrpo as tfgrpo

live = tfgrpo.open_live()
with live.run("ticket-17", category="billing", prompt="text") as run:
    arm = run.choose("config")
    run.turn(); run.tool("search", error=None); run.safety(blocked=False)
    run.end("reply", score=0.5)
live.outcome("ticket-17", 0.8)
print(arm.name, dict(arm.values), arm.propensity, live.status()["enabled"], live.flush())
loaded = [n for n in sys.modules if n.startswith("pytest_tfgrpo.production.live.")]
print(*sorted(n.rpartition(".")[2] for n in loaded))
print(*sorted({"sqlite3", "numpy", "asyncio", "pytest", "jsonschema"} & set(sys.modules)))
"""


def test_off_by_default_the_default_arm_is_taken_and_nothing_is_loaded_or_written(tmp_path: Path) -> None:
    """C-04: without the flag nothing is attached."""
    (tmp_path / "live.toml").write_text(CONFIG)
    done = subprocess.run(
        [sys.executable, "-c", OFF], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout.splitlines() == [
        "bare {} 1.0 False True",
        "arms config records session settings",
        "",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["live.toml"]
