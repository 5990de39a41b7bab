"""A start that sets nothing of this plugin declares one flag; one that may set something declares all."""

import json

import pytest
from support.project import Project
from support.tools import run_pytest

SAYS = """
import json, sys

def pytest_sessionfinish(session):
    config = session.config
    known = config.pluginmanager.hasplugin("tfgrpo-configured")
    loaded = sorted(name for name in sys.modules if name.startswith("pytest_tfgrpo"))
    said = {"flag": config.getoption("--tfgrpo"), "declared": known, "loaded": loaded}
    if not hasattr(config, "workerinput"):
        (config.rootpath / "said.json").write_text(json.dumps(said))
"""


def said(project: Project, *words: str, **variables: str) -> dict[str, object]:
    """Run pytest in a project and return what its conftest.py noticed."""
    if not (project.root / "conftest.py").exists():
        project.write("conftest.py", SAYS)
    project.write("test_one.py", "def test_one():\n    pass\n")
    done = run_pytest(project.root, *words, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads((project.root / "said.json").read_text())
    return found


@pytest.fixture
def bare(project: Project) -> Project:
    """A project that mentions this plugin nowhere."""
    (project.root / "pytest.ini").write_text("[pytest]\n")
    return project


def test_a_start_that_sets_nothing_loads_no_settings_and_knows_its_flag(bare: Project) -> None:
    assert said(bare, "--tb=short") == {
        "flag": False,
        "declared": False,
        "loaded": [
            "pytest_tfgrpo",
            "pytest_tfgrpo.core",
            "pytest_tfgrpo.core.files",
            "pytest_tfgrpo.hookspecs",
            "pytest_tfgrpo.plugin",
            "pytest_tfgrpo.plugin.start",
            "pytest_tfgrpo.plugin.start.agent_folders",
            "pytest_tfgrpo.plugin.start.own_modules",
            "pytest_tfgrpo.plugin.start.unset_options",
        ],
    }


@pytest.mark.parametrize(
    "words", [["--tfgrpo-seed=1"], ["--tfgrpo"], ["-o", "tfgrpo_seed=1"], ["-o", "addopts=--tfgrpo-seed=1"]]
)
def test_a_word_of_the_plugin_declares_all(bare: Project, words: list[str]) -> None:
    assert said(bare, *words)["declared"] is True


def test_so_does_a_word_in_a_file_of_words(bare: Project) -> None:
    bare.write("words", "--tfgrpo-seed=1\n")
    assert said(bare, "@words")["declared"] is True


def test_so_does_a_key_of_the_ini_file_and_a_flag_in_its_addopts(bare: Project) -> None:
    (bare.root / "pytest.ini").write_text("[pytest]\ntfgrpo_seed = 1\n")
    assert said(bare)["declared"] is True
    (bare.root / "pytest.ini").write_text("[pytest]\naddopts = --tfgrpo-seed=1\n")
    assert said(bare)["declared"] is True


def test_so_does_a_variable_also_one_that_a_conftest_sets(bare: Project) -> None:
    bare.write("conftest.py", f"import os\nos.environ['TFGRPO_SEED'] = '1'\n{SAYS}")
    assert said(bare)["declared"] is True
    bare.write("conftest.py", SAYS)
    assert said(bare, TFGRPO_SEED="1")["declared"] is True
    assert said(bare, PYTEST_ADDOPTS="-q --tfgrpo-seed=1")["declared"] is True


def test_a_bad_variable_that_a_conftest_sets_is_an_error(bare: Project) -> None:
    bare.write("conftest.py", "import os\nos.environ['TFGRPO_SEED'] = 'x'\n")
    done = run_pytest(bare.root)
    assert done.returncode == 4
    assert "seed must be" in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["-qh"]])
def test_help_lists_every_flag_and_key(bare: Project, words: list[str]) -> None:
    done = run_pytest(bare.root, *words)
    assert "--tfgrpo-group-size" in done.stdout
    assert "tfgrpo_group_size (" in done.stdout


def test_a_worker_of_xdist_gets_the_flags_of_the_controller(bare: Project) -> None:
    bare.scenarios(train=0, sweep=2)
    done = run_pytest(
        bare.root, "-p", "xdist", "-n", "1", "--tfgrpo-actor=python:agent:right", "--tfgrpo-min-score=0.5"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_scenarios_run_with_the_defaults_where_nothing_is_set(bare: Project) -> None:
    bare.scenarios(train=0, sweep=1)
    done = run_pytest(bare.root)
    assert "no actor is configured" in done.stderr


def test_paths_that_follow_a_flag_are_no_tests(bare: Project) -> None:
    bare.write("suite/conftest.py", SAYS).write("suite/test_two.py", "def test_two():\n    pass\n")
    (bare.root / "pytest.ini").write_text("[pytest]\ntestpaths = suite\n")
    done = run_pytest(bare.root, "--tfgrpo-actor", "offline")
    assert "1 passed" in done.stdout
    assert (bare.root / "said.json").exists()
