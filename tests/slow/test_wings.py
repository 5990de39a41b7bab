"""A wing taken away with its commands: the rest imports, shows its help and runs a scenario."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

PACKAGE = "pytest_tfgrpo"
WINGS = {
    "production": ("cli/loop", "cli/live", "cli/demo"),
    "harvest": ("patterns", "cli/harvest", "cli/learn", "cli/patterns"),
    "patterns": ("cli/learn", "cli/patterns"),
    "arena": ("cli/arena",),
}
EVERY_MODULE = f"""
import importlib, pkgutil, {PACKAGE}
names = [one.name for one in pkgutil.walk_packages({PACKAGE}.__path__, "{PACKAGE}.")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""
HELP = f"import sys; from {PACKAGE}.cli import main; sys.exit(main(['--help']))"
SCENARIO = """
{"id": "one", "split": "eval", "prompt": "How many words has letter.txt?", "attachments": ["letter.txt"],
 "checks": [{"kind": "exact", "value": "3"}], "min_score": 0.0}
"""


@pytest.mark.parametrize("wing", WINGS)
def test_without_a_wing_the_rest_works(wing: str, tmp_path: Path) -> None:
    house = tmp_path / "house"
    shutil.copytree(ROOT / PACKAGE, house / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (wing, *WINGS[wing]):
        shutil.rmtree(house / PACKAGE / folder)
    project = tmp_path / "project"
    project.mkdir()
    (project / "one.scenario.json").write_text(SCENARIO)
    (project / "letter.txt").write_text("one two three")
    (project / "pytest.ini").write_text("[pytest]\ntfgrpo_actor = offline\n")

    def ran(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", *words],
            cwd=project,
            env={"PYTHONPATH": str(house), "PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert int(ran("-c", EVERY_MODULE)) > 500
    shown = ran("-c", HELP)
    assert "  runs " in shown
    shown_of = {
        "production": ("  loop ", "  live "),
        "harvest": ("  harvest ",),
        "patterns": ("  learn ", "  patterns "),
        "arena": ("  arena ",),
    }
    gone = {wing, *WINGS[wing]}
    assert {one: any(name in shown for name in names) for one, names in shown_of.items()} == {
        one: one not in gone for one in shown_of
    }
    assert "1 passed" in ran("-m", "pytest", "-p", f"{PACKAGE}.plugin", "-p", "no:cacheprovider")
