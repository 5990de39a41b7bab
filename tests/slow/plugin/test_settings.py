"""Settings as pytest reads them: flags, then environment, then ini file, then defaults."""

from support.project import Project
from support.tools import run_pytest


def test_the_plugin_is_loaded_by_name_where_autoload_is_off(project: Project) -> None:
    project.scenarios(train=1, sweep=1)
    done = run_pytest(project.root, "--tfgrpo", "-q")  # which sets PYTEST_DISABLE_PLUGIN_AUTOLOAD
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gate  passed" in done.stdout


def test_an_output_folder_that_is_there_is_left_as_it_is(project: Project) -> None:
    project.scenarios(train=1, sweep=1).write("out/.gitignore", "mine\n").learn()
    assert (project.root / "out" / ".gitignore").read_text() == "mine\n"
    (project.root / "out" / ".gitignore").unlink()
    project.learn()
    assert not (project.root / "out" / ".gitignore").exists()
    project.learn("--tfgrpo-out=.")
    assert not (project.root / ".gitignore").exists()
