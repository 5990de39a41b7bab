"""The tools of a real harvest: recipes, environments, runners, prompts and the search for secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import SnapshotError
from pytest_tfgrpo.harvest.environment.builder import EnvironmentBuilder
from pytest_tfgrpo.harvest.environment.package_tools import open_tools as open_build_tools
from pytest_tfgrpo.harvest.history.changes import CommitRange, changes, range_of
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.history.git_shadow import locate
from pytest_tfgrpo.harvest.history.tree_files import read_file
from pytest_tfgrpo.harvest.job.plan import HarvestTools
from pytest_tfgrpo.harvest.prompt.secrets_found import SecretSearch, secrets_in_text
from pytest_tfgrpo.harvest.prompt.statement import Rewrite, statement_of
from pytest_tfgrpo.harvest.recipe.machine_pythons import find_interpreters
from pytest_tfgrpo.harvest.recipe.manifests import python_project
from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles
from pytest_tfgrpo.harvest.recipe.recipe import RecipeKnowledge, recipe_of
from pytest_tfgrpo.harvest.recipe.recipe_file import RECIPE_FILE, FolderRecipe, read_recipes
from pytest_tfgrpo.harvest.recipe.recipe_init import init_text
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment, cache_folder, find_built
from pytest_tfgrpo.scoring.runners.protocol import Isolation, SuiteRequest, SuiteRun
from pytest_tfgrpo.scoring.runners.registry import run_suite

DOMAIN = 60
"""Characters of a domain at most."""
ODD = re.compile(r"[^A-Za-z0-9._-]+")
"""What no domain holds."""
NAMED = ("pyproject.toml", "setup.cfg", "setup.py", "PKG-INFO", "package.json")
"""Manifests that say a project's name."""


def recipe_path(repository: Path) -> Path:
    """Return where a repository's ``harvest.toml`` lies, also where a folder in it is named.

    That is in the root of its working tree, of a bare one in its own folder. Raises SettingError.
    """
    root = locate(repository).root
    return (repository if repository.resolve() == root else root) / RECIPE_FILE


def reviewed_recipes(repository: Path) -> tuple[FolderRecipe, ...]:
    """Return what the repository's ``harvest.toml`` says, nothing without one; raises SettingError."""
    path = recipe_path(repository)
    return read_recipes(path) if path.exists() else ()


def open_builder(environ: Mapping[str, str], isolation: Isolation) -> EnvironmentBuilder:
    """Return what builds environments, with the Pythons of this machine."""
    tools = open_build_tools(find_interpreters(environ.get("PATH", os.defpath)), environ, isolation)
    return EnvironmentBuilder(tools, cache_folder())


def first_recipe(repository: Path, commit: str, interpreters: tuple[str, ...]) -> str:
    """Return the text of a first ``harvest.toml`` for the tree of a commit; raises SettingError."""
    with GitObjects(repository) as objects:
        last = objects.resolve(commit)
        names = [entry.path for entry in objects.entries(last)]
        newest = next(changes(objects, CommitRange(first=None, last=last), limit=1), None)
        return init_text(
            lambda path: read_file(objects, last, path),
            names,
            interpreters=interpreters,
            committed_at=newest.committed_at if newest else 0,
        )


def open_tools(
    reviewed: tuple[FolderRecipe, ...],
    builder: EnvironmentBuilder,
    issues: Mapping[int, str] | None = None,
    rewrite: Rewrite | None = None,
) -> HarvestTools:
    """Return the tools of a harvest; `issues` are texts by number, `rewrite` is a model."""
    search = SecretSearch()
    knowledge = RecipeKnowledge(reviewed=reviewed, interpreters=builder.interpreters)
    return HarvestTools(
        recipes=lambda read, names, candidate: recipe_of(read, names, candidate, knowledge),
        environment=builder.make,
        run=run_tests,
        statement=lambda candidate, trees, validation: statement_of(
            candidate, trees, validation, issues=issues, rewrite=rewrite
        ),
        secrets=search.added,
        secrets_in_text=secrets_in_text,
    )


def run_tests(request: SuiteRequest) -> SuiteRun:
    """Run tests with the runner that a request names."""
    return run_suite(request)


def find_environment(suite: Path, stamp: str) -> BuiltEnvironment:
    """Return an environment that was built before; raises TfgrpoError that says how to build it."""
    return find_built(suite, stamp)


def domain_of(repository: Path, commits: str) -> str:
    """Return the domain of a repository's scenarios: its project's name, else its folder's, as an id may be.

    The name is that after the last of the commits, ``A..B``; raises SettingError.
    """
    with GitObjects(repository) as objects:
        last = range_of(objects, commits).last
        files = ProjectFiles(read=lambda path: read_file(objects, last, path), names=frozenset(NAMED))
        try:
            said = [python_project(files).name, files.json("package.json").get("name")]
        except SnapshotError:
            said = []
    return named_as_an_id(*said, locate(repository).root.name)


def named_as_an_id(*names: object) -> str:
    """Return the first of names that is one, as an id may be."""
    for name in names:
        if isinstance(name, str) and (
            found := ODD.sub("-", name.rpartition("/")[2].removesuffix(".git")).strip("-.")[:DOMAIN]
        ):
            return found
    return "repository"
