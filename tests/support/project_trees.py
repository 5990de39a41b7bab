"""Trees of projects as recipes read them, and candidates that touch their tests."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.harvest.fixes import FixCandidate, HistoryChange, RecipePart
from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles
from pytest_tfgrpo.harvest.recipe.recipe import RecipeKnowledge, recipe_of
from pytest_tfgrpo.harvest.recipe.recipe_file import FolderRecipe

SUMMER_2022 = 1656633600


def project_files(tree: Mapping[str, str], folder: str = ".") -> ProjectFiles:
    """Return the files of a tree."""

    def read(path: str) -> bytes | None:
        return tree[path].encode() if path in tree else None

    return ProjectFiles(read=read, names=frozenset(tree), folder=folder)


def candidate(*tests: str, at: int = SUMMER_2022) -> FixCandidate:
    """Return a candidate that touches files with tests."""
    change = HistoryChange(
        commit="1" * 40, base="2" * 40, tree="3" * 40, base_tree="4" * 40, committed_at=at, message="fix"
    )
    return FixCandidate(id="fix-1", change=change, tests=tests, protected=tests, sources=("a.py",))


def recipe(
    tree: Mapping[str, str],
    *tests: str,
    reviewed: tuple[FolderRecipe, ...] = (),
    interpreters: tuple[str, ...] = ("3.9", "3.10", "3.11", "3.12"),
    at: int = SUMMER_2022,
) -> tuple[RecipePart, ...]:
    """Return the recipe of a tree's tests, by default of ``tests/test_a.py``."""
    tests = tests or ("tests/test_a.py",)
    files = project_files({**dict.fromkeys(tests, ""), **tree})
    knowledge = RecipeKnowledge(reviewed=reviewed, interpreters=interpreters)
    return recipe_of(files.read, files.names, candidate(*tests, at=at), knowledge)
