"""The command ``tfgrpo harvest``: from a repository's history to scenarios that the true fix solves."""

import json
import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from support.harvests import make_row
from support.repositories import Repository, git
from support.tools import require_tool, tfgrpo

from pytest_tfgrpo.cli.harvest import env, harvest
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.harvest.environment.package_tools import BuildProblem
from pytest_tfgrpo.harvest.job.tools import domain_of
from pytest_tfgrpo.harvest.recipe.recipe_file import FolderRecipe
from pytest_tfgrpo.harvest.suite.harvest_log import HarvestLog
from pytest_tfgrpo.sandbox.programs.environments import Environment, to_file


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with one fix, in the working folder."""
    require_tool("git")
    monkeypatch.chdir(tmp_path)
    repository = Repository(tmp_path / "shop")
    repository.commit({"a.py": "x = 1\n", "tests/test_a.py": ""}, "Begin")
    repository.commit({"a.py": "x = 2\n", "tests/test_a.py": "def test_a(): assert 0\n"}, "Fix it")
    return repository


RANGE = ("--from-git", "main~1..main", "--into", "suite")


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--repo", "shop"],
        ["--repo", "shop", *RANGE, "--jobs", "0"],
        ["--repo", "shop", *RANGE, "--jobs", "65"],
        ["--repo", "shop", *RANGE, "--limit", "0"],
        ["--repo", "shop", *RANGE, "--budget-s", "0"],
        ["--repo", "shop", *RANGE, "--budget-s", "nan"],
    ],
)
def test_wrong_usage_is_exit_code_2(shop: Repository, argv: list[str]) -> None:
    assert "usage: tfgrpo harvest" in tfgrpo("harvest", *argv, code=2)


def test_a_bad_key_in_the_recipe_is_an_error_with_its_line(shop: Repository) -> None:
    (shop.folder / "harvest.toml").write_text('[folder."."]\nrunner = "pytest"\ncolour = "red"\n')
    error = tfgrpo("harvest", "--repo", "shop", *RANGE, code=1)
    assert "harvest.toml:3: " in error
    assert "'colour'" in error
    assert not Path("suite").exists()


def test_a_dry_run_lists_what_would_be_validated_and_writes_nothing(shop: Repository) -> None:
    out = tfgrpo("harvest", "--repo", "shop", *RANGE, "--dry-run")
    assert re.fullmatch(
        r"candidate +fix-it-[0-9a-f]{12}  1 test file, 1 source file\n"
        "how long it takes is not known before the first candidate has run\n"
        "1 candidate; nothing was written\n",
        out,
    )
    assert not Path("suite").exists()


def test_a_dry_run_says_how_long_candidates_took_before(shop: Repository) -> None:
    with HarvestLog(Path("suite")) as log:
        log.append([make_row(elapsed_s=300.0)])
    least = ("--limit", "1", "--budget-s", "0.5")
    assert "candidate" in tfgrpo("harvest", "--repo", "shop", *RANGE, "--dry-run", "--jobs", "64", *least)
    out = tfgrpo("harvest", "--repo", "shop", *RANGE, "--dry-run", "--jobs", "2")
    assert "\nabout 2 min for 1 candidate, if all are alike: 1 of earlier harvests took 300 s each\n" in out


def test_a_suite_without_environments_needs_none(tmp_path: Path) -> None:
    (tmp_path / "one.scenario.yaml").write_text("id: one\n")
    assert tfgrpo("harvest", "env", str(tmp_path)) == f"{tmp_path} needs no environment\n"


@pytest.mark.parametrize("folder", ["shop", "nowhere"])
def test_a_folder_without_scenarios_is_no_suite_that_needs_no_environment(
    shop: Repository, folder: str
) -> None:
    assert f"{folder} holds no scenario" in tfgrpo("harvest", "env", folder, code=1)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--from-git", "main..main"], "no change of main..main;"),
        (["--from-git", "main~1..main", "--path", "docs"], "no change of main~1..main touches docs;"),
    ],
)
def test_a_range_without_changes_is_told_from_one_that_is_done(
    shop: Repository, argv: list[str], why: str
) -> None:
    assert why in tfgrpo("harvest", "--repo", "shop", "--into", "suite", *argv, "--dry-run")


@pytest.mark.parametrize("folder", ["shop", "shop/tests", "shop/.git", "shop.git"])
def test_a_recipe_is_written_and_read_in_the_root_of_the_repository(shop: Repository, folder: str) -> None:
    git(Path.cwd(), "clone", "-q", "--bare", "shop", "shop.git")
    (shop.folder / "tests").mkdir()
    where = Path("shop.git" if folder == "shop.git" else "shop", "harvest.toml")
    where.write_text("colour = 1\n")
    assert "harvest.toml exists; review it" in tfgrpo("harvest", "init", "--repo", folder, code=1)
    for repository in (folder, str(where.parent)):
        assert "harvest.toml:1: " in tfgrpo("harvest", "--repo", repository, *RANGE, code=1)


@pytest.mark.parametrize(
    ("files", "domain"),
    [
        ({"pyproject.toml": "[project]\nname = 'My shop!'\n"}, "My-shop"),
        ({"setup.cfg": "[metadata]\nname = store\n", "package.json": '{"name": "web"}'}, "store"),
        ({"package.json": '{"name": "@company/web-shop"}'}, "web-shop"),
        ({"package.json": '{"name": 5}', "pyproject.toml": "["}, "shop"),
        ({"README.md": "x"}, "shop"),
    ],
)
def test_the_domain_is_the_projects_name_else_that_of_its_folder(
    shop: Repository, files: dict[str | bytes, str | bytes | None], domain: str
) -> None:
    shop.commit(files)
    assert domain_of(Path("shop"), "main~1..main") == domain
    assert domain_of(Path("shop/.git"), "main~1") == "shop"


def test_the_plan_has_the_globs_of_all_recipes_and_the_domain_that_was_named(shop: Repository) -> None:
    fields: dict[str, Any] = {
        "repo": "shop",
        "from_git": "main~1..main",
        "into": "suite",
        "domain": "",
        "limit": 3,
    }
    fields |= {"each_commit": True, "path": ["src"], "exclude": ["x"], "retry": True, "jobs": 2}
    fields |= {"check_sandbox": "none", "budget_s": 9.0}
    recipes = (
        FolderRecipe(folder=".", tests=("a", "b"), protected=("c",)),
        FolderRecipe(folder="web"),
        FolderRecipe(folder="docs", tests=("d",), protected=("e",)),
    )
    plan = harvest._plan(Namespace(**fields), recipes)
    assert (plan.tests, plan.protected, plan.domain) == (("a", "b", "d"), ("c", "e"), "shop")
    assert (plan.paths, plan.exclude, plan.limit, plan.jobs) == (("src",), ("x",), 3, 2)
    assert (plan.each_commit, plan.retry, plan.isolation, plan.budget_s) == (True, True, "none", 9.0)
    assert (plan.repository, plan.suite, plan.commits) == (Path("shop"), Path("suite"), "main~1..main")
    assert harvest._plan(Namespace(**fields | {"domain": "store"}), ()).domain == "store"


def test_environments_are_built_in_order_and_those_that_cannot_be_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Builder:
        def build(self, environment: Environment) -> None:
            if environment.python is None:
                raise BuildProblem("no network")

    for environment in (Environment(python="3.11"), Environment(python="3.12"), Environment(setup=(("x",),))):
        data = to_file(environment)
        path = tmp_path / "environments" / f"{stamp(data)}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(data))
    monkeypatch.setattr("pytest_tfgrpo.cli.harvest.env.open_builder", lambda *_: Builder())
    asked: list[str] = []
    monkeypatch.setattr(env, "require_sandbox", asked.append)
    command = env.env(Namespace(suite=str(tmp_path), check_sandbox="bwrap"))
    rows = [next(command).split() for _ in range(3)]
    with pytest.raises(StoreError, match=r"^1 of 3 environments could not be built$"):
        next(command)
    assert asked == ["bwrap"]
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)
    assert sorted([row[0], " ".join(row[2:])] for row in rows) == [
        ["failed", "no Python: no network"],
        ["ready", "Python 3.11, 0 packages"],
        ["ready", "Python 3.12, 0 packages"],
    ]
