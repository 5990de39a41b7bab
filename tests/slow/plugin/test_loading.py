"""What a run loads: only what it uses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "import sys, pytest; code = pytest.main(sys.argv[1:]); print(*sys.modules); sys.exit(code)"
SCENARIO = {
    "id": "one",
    "split": "eval",
    "prompt": "How many words has letter.txt?",
    "checks": [{"kind": "exact", "value": "3"}],
    "min_score": 0.0,
}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_nothing.py").write_text("def test_nothing(): pass\n")
    (tmp_path / "one.scenario.json").write_text(json.dumps(SCENARIO))
    return tmp_path


def loaded(suite: Path, *args: str) -> set[str]:
    """Return the modules that pytest has loaded when it ends, run in `suite` with no other plugin."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "-p", "pytest_tfgrpo.plugin", "-p", "no:cacheprovider", *args],
        cwd=suite,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    return set(done.stdout.splitlines()[-1].split())


def test_a_plain_run_of_one_scenario_loads_no_numpy_jsonschema_or_jinja2(suite: Path) -> None:
    found = loaded(suite, "--tfgrpo-actor", "offline", "one.scenario.json")
    assert "pytest_tfgrpo.engine.engine" in found
    assert found.isdisjoint({"jinja2", "jsonschema", "numpy", "referencing", "yaml"})
    assert found.isdisjoint(
        f"pytest_tfgrpo.{name}"
        for name in (
            "learning.acceptance.decision",
            "learning.attribution.effects",
            "learning.library.experience_store",
            "learning.step",
            "report.page.html",
            "suite.contamination.inspection",
        )
    )


ROOMS = ("actors", "engine", "gate", "launch", "learning", "llm", "report", "runs", "scoring")
OF_A_RUN = tuple(f"pytest_tfgrpo.{room}." for room in ROOMS)


def test_a_test_beside_a_scenario_file_loads_nothing_of_a_run(suite: Path) -> None:
    found = loaded(suite, "test_nothing.py")
    assert "pytest_tfgrpo.plugin.files" in found
    assert [name for name in sorted(found) if name.startswith(OF_A_RUN)] == []


def test_a_run_without_scenarios_loads_ten_small_modules(suite: Path) -> None:
    (suite / "one.scenario.json").unlink()
    found = {name for name in loaded(suite, "test_nothing.py") if name.startswith("pytest_tfgrpo")}
    assert found.isdisjoint(f"pytest_tfgrpo.core.{name}" for name in ("redact", "text", "records"))
    assert len(found) <= 10
