"""Names that a harvest gives by itself."""

from pathlib import Path

import pytest
from support.repositories import Repository, remove_object

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.harvest.job.tools import (
    DOMAIN,
    domain_of,
    first_recipe,
    named_as_an_id,
    recipe_path,
    reviewed_recipes,
)
from pytest_tfgrpo.harvest.recipe.recipe_file import parse_recipes


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
    remove_object(repository, "main:pyproject.toml")
    assert domain_of(repository.folder, "main") == "folder"


def test_a_recipe_lies_in_the_root_and_is_read_where_there_is_one(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    (repository.folder / "sub").mkdir()
    assert reviewed_recipes(repository.folder / "sub") == ()
    (repository.folder / "harvest.toml").write_text('[folder."."]\nrunner = "pytest"\n')
    assert [one.runner for one in reviewed_recipes(repository.folder / "sub")] == ["pytest"]
    assert recipe_path(repository.folder / "sub") == repository.folder / "harvest.toml"
