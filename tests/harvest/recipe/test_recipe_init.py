"""The first harvest.toml: a person sees where each value is from, and the file reads back as the guess."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.project_trees import SUMMER_2022, project_files, recipe
from support.reached import reached, reaches

from pytest_tfgrpo.harvest.recipe.recipe_file import parse_recipes
from pytest_tfgrpo.harvest.recipe.recipe_init import init_text

PYTHONS = ("3.9", "3.10", "3.11", "3.12")
TREE = {
    "pyproject.toml": """
[project]
name = "shop"
requires-python = ">=3.8"
dependencies = ["attrs>=20"]
""",
    "tox.ini": "[tox]\nenvlist = py39,py310\n[testenv]\nsetenv = TZ=UTC\ndeps =\n  pytest>=6\n  git+https://host/x\n",
    "src/shop/__init__.py": "",
    "tests/test_a.py": "",
    "web/package.json": json.dumps({"scripts": {"test": "vitest"}, "devDependencies": {"vitest": "1"}}),
    "web/a.test.ts": "",
    "old/package.json": '{"scripts": {"test": "mocha"}}',
    "old/b.test.js": "",
}


def text_of(tree):
    files = project_files(tree)
    return init_text(files.read, files.names, interpreters=PYTHONS, committed_at=SUMMER_2022)


def test_each_value_stands_with_its_source(golden):
    golden("harvest.toml", text_of(TREE))


@pytest.mark.parametrize("test", ["tests/test_a.py", "web/a.test.ts"])
def test_what_is_written_reads_back_as_what_is_guessed(test):
    guessed = recipe(TREE, test)
    reviewed = recipe(TREE, test, reviewed=parse_recipes(text_of(TREE)))
    for one, other in zip(guessed, reviewed, strict=True):
        for name in ("folder", "command", "python", "dependencies", "setup", "imports", "variables", "files"):
            assert getattr(one, name) == getattr(other, name)


def test_a_folder_that_is_its_own_root_has_a_dot_and_what_is_installed_is_passed_over():
    tree = {
        "api/setup.py": "setup(name='x', install_requires=['a'])",
        "api/x/__init__.py": "",
        "api/test_a.py": "",
        "web/node_modules/left/test_b.py": "",
    }
    (part,) = parse_recipes(text_of(tree))
    assert (part.folder, part.paths, part.dependencies) == ("api", (".",), ("a", "pytest"))


def test_a_repository_without_tests_gets_a_template():
    assert "# runner = " in text_of({"README": ""})


@reaches("a plain name")
@given(st.text(min_size=1, max_size=20).filter(lambda name: "\0" not in name), st.text(max_size=40))
def test_no_name_and_no_value_breaks_the_file(name, value):
    folder = name.replace("/", "-").strip(".") or "x"
    tree = {
        f"{folder}/setup.py": f"setup(name='x', install_requires=['a'], python_requires={value!r})",
        f"{folder}/test_a.py": "",
        f"{folder}/tox.ini": f"[testenv]\nsetenv = A={value!r}\ndeps = {value!r}",
    }
    text = text_of(tree)
    if reached("a plain name", all(c >= " " and c != "\\" for c in folder)):
        assert [r.folder for r in parse_recipes(text)] == [folder]
