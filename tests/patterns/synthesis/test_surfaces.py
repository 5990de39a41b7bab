"""What can be run of a project without tests."""

import json

import pytest

from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles
from pytest_tfgrpo.patterns.synthesis import surfaces
from pytest_tfgrpo.patterns.synthesis.surfaces import nearest_surface

SCRIPT = "def main():\n    pass\n\n\nif __name__ == '__main__':\n    main()\n"
PYTHON = {
    "pyproject.toml": "[project]\nname = 'shop'\n[project.scripts]\nshop = 'shop.cli:main'\n",
    "src/shop/cli.py": "def main(): pass\n", "src/shop/cart.py": "", "src/shop/jobs/__main__.py": "",
    "src/shop/jobs/mail.py": "", "tools/worker.py": SCRIPT, "tools/data.py": "", "tests/test_x.py": SCRIPT,
}  # fmt: skip
NODE = {"package.json": json.dumps({"bin": {"shop": "./bin/shop.js"}}), "bin/shop.js": "", "lib/a.js": ""}

CONSOLE = "[options.entry_points]\nconsole_scripts =\n  Gone = away:main\n  Run = shop : main\n"


@pytest.mark.parametrize(
    ("files", "changed", "command", "source"),
    [
        (PYTHON, "src/shop/cart.py", "shop", "entry point shop = shop.cli:main"),
        (PYTHON, "src/shop/jobs/mail.py", "python -m shop.jobs", "src/shop/jobs/__main__.py"),
        (PYTHON, "tools/worker.py", "python tools/worker.py", "tools/worker.py"),
        (PYTHON, "tools/data.py", "python tools/worker.py", "tools/worker.py"),
        (NODE, "lib/a.js", "node bin/shop.js", "package.json bin shop"),
        (
            {**NODE, "package.json": '{"bin": "bin/shop.js"}'},
            "a.js",
            "node bin/shop.js",
            "package.json bin bin",
        ),
        ({"a.py": "#!/bin/python\n", "b/c.py": SCRIPT}, "b/d.py", "python b/c.py", "b/c.py"),
        ({"a.py": "#!/bin/python\n", "b/c.py": ""}, "b/c.py", "python a.py", "a.py"),
        (
            {"tests/run.py": SCRIPT, "tests/test_x.py": SCRIPT, "a.py": SCRIPT},
            "tests/b.py",
            "python a.py",
            "a.py",
        ),
        (
            {"setup.cfg": CONSOLE, "shop.py": "", "src/shop.py": "", "src/x/b.py": "", "src/c.py": SCRIPT},
            "src/x/b.py",
            "python src/c.py",
            "src/c.py",
        ),
        ({"setup.cfg": CONSOLE, "shop/__init__.py": ""}, "x.py", "Run", "entry point Run = shop : main"),
        (
            {"a/x.py": SCRIPT, "a/b/y.py": SCRIPT, "c/z.py": SCRIPT},
            "a/b/c/d.py",
            "python a/b/y.py",
            "a/b/y.py",
        ),
    ],
)
def test_the_nearest_that_can_be_run_is_found_by_path_and_manifests(files, changed, command, source):
    tree = ProjectFiles(read=lambda path: files[path].encode(), names=frozenset(files))
    found = nearest_surface(tree, [changed])
    assert found is not None
    assert (found.command, found.source) == (command, source)


def test_of_several_changed_files_the_nearest_to_any_counts_and_the_first_files_are_looked_into(monkeypatch):
    def nearest(files, *sources):
        tree = ProjectFiles(read=lambda path: files[path].encode(), names=frozenset(files))
        return nearest_surface(tree, sources).path

    files = {"a/b/c/x.py": SCRIPT, "d/y.py": SCRIPT}
    assert nearest(files, "a/b/c/z.py", "q/r/s/t.py") == "a/b/c/x.py"
    assert nearest(files, "e.py") == "d/y.py"
    monkeypatch.setattr(surfaces, "SCRIPTS", 1)
    assert nearest(files, "d/e.py") == "a/b/c/x.py"
    steps = [("a.py", "a.py", 0), ("a/b.py", "a/c.py", 2), ("a/b/c.py", "a/d.py", 3), ("x.py", "a/b/c.py", 4)]
    for one, other, apart in steps:
        assert surfaces._apart(one, other) == surfaces._apart(other, one) == apart


def test_where_nothing_can_be_run_there_is_none():
    assert nearest_surface(ProjectFiles(read=lambda _: b"x", names=frozenset({"a.py"})), ["a.py"]) is None


def test_of_many_files_those_that_changed_are_looked_into_first(monkeypatch):
    monkeypatch.setattr(surfaces, "SCRIPTS", 1)
    files = {"a.py": SCRIPT, "z.py": SCRIPT}
    tree = ProjectFiles(read=lambda path: files[path].encode(), names=frozenset(files))
    found = nearest_surface(tree, ["z.py"])
    assert found is not None
    assert found.path == "z.py"
