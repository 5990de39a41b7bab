"""Names that a harvest gives by itself."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.harvests import make_validation
from support.project_trees import candidate
from support.repositories import Repository, remove_object

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.harvest.job.tools import (
    DOMAIN,
    domain_of,
    first_recipe,
    named_as_an_id,
    open_tools,
    recipe_path,
    reviewed_recipes,
)
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees
from pytest_tfgrpo.harvest.recipe.recipe_file import FolderRecipe, parse_recipes


@pytest.mark.parametrize(
    ("folder", "domain"),
    [
        ("shop", "shop"),
        ("shop.git", "shop"),
        ("My Shop (old)", "My-Shop-old"),
        ("-.shop.-", "shop"),
        ("\u6a21\u578b", "repository"),
        ("x" * 70, "x" * DOMAIN),
    ],
)
def test_a_domain_is_a_name_as_an_id_may_be(folder: str, domain: str) -> None:
    assert named_as_an_id(folder) == domain
    assert named_as_an_id(None, "-", f"@scope/{folder}") == domain


def test_the_first_recipe_is_of_the_tree_of_the_commit(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    manifest = "[project]\nname = 'my-shop'\ndependencies = ['attrs']\n"
    repository.commit({"pyproject.toml": manifest, "tests/test_a.py": "", "my_shop.py": ""})
    repository.commit({"pyproject.toml": manifest.replace("attrs", "six")})
    text = first_recipe(repository.folder, "main~1", ("3.9", "3.11"))
    (recipe,) = parse_recipes(text)
    assert (recipe.runner, recipe.dependencies, recipe.python) == ("pytest", ("attrs", "pytest"), "3.11")
    with pytest.raises(SettingError, match="there is no commit 'nowhere'"):
        first_recipe(repository.folder, "nowhere", ())


def test_a_domain_is_the_name_of_the_project_as_of_the_last_commit_else_of_its_folder(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "folder.git")
    first = repository.commit({"a": "1"})
    assert domain_of(repository.folder, first) == "folder"
    repository.commit({"package.json": '{"name": "@acme/web shop"}'})
    assert domain_of(repository.folder, f"{first}..main") == "web-shop"
    repository.commit({"pyproject.toml": "[project]\nname = 'shop'\n"})
    assert domain_of(repository.folder, f"{first}..main") == "shop"
    assert domain_of(repository.folder, f"{first}..main~1") == "web-shop"
    repository.commit({"pyproject.toml": "[tool.x]\na = 1\n", "setup.cfg": "[metadata]\nname = old-shop\n"})
    assert domain_of(repository.folder, f"{first}..main") == "old-shop"
    repository.commit({"setup.cfg": None, "setup.py": "from setuptools import setup\nsetup(name='older')\n"})
    assert domain_of(repository.folder, "main") == "older"
    repository.commit({"setup.py": None, "PKG-INFO": "Metadata-Version: 2.1\nName: oldest\n"})
    assert domain_of(repository.folder, "main") == "oldest"
    remove_object(repository, "main:pyproject.toml")
    assert domain_of(repository.folder, "main") == "folder"


def test_the_tools_know_the_reviewed_recipes_the_issues_and_the_model() -> None:
    builder: Any = SimpleNamespace(interpreters=("3.11",), make=None)
    fix = candidate("tests/test_a.py")
    fix = replace(fix, change=replace(fix.change, message="Fixes #12"))
    trees = FixTrees(base={}, hidden={}, reference={})
    said = "The total of an order forgets what its last item costs, so that who buys several items pays less."
    tools = open_tools((FolderRecipe(folder=".", runner="jest"),), builder, {12: said})
    assert tools.statement(fix, trees, make_validation()).source == "issue 12"
    (part, *_) = tools.recipes(lambda path: None, ("tests/test_a.py",), fix)
    assert part.command.runner == "jest"
    tools = open_tools(
        (), builder, {12: said}, lambda text, tests: f"{text} So {tests[0]} fails, says a model."
    )
    found = tools.statement(fix, trees, make_validation())
    assert found.source == "model"
    assert found.text.startswith(f"{said} So ")
    assert " fails, says a model." in found.text


def test_a_recipe_lies_in_the_root_and_is_read_where_there_is_one(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    (repository.folder / "sub").mkdir()
    assert reviewed_recipes(repository.folder / "sub") == ()
    (repository.folder / "harvest.toml").write_text('[folder."."]\nrunner = "pytest"\n')
    assert [one.runner for one in reviewed_recipes(repository.folder / "sub")] == ["pytest"]
    assert recipe_path(repository.folder / "sub") == repository.folder / "harvest.toml"
