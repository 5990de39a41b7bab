"""The command ``tfgrpo harvest``: from a repository's history to scenarios that the true fix solves."""

import re
from pathlib import Path

import pytest
from support.harvests import make_row
from support.repositories import Repository, git
from support.tools import require_tool, tfgrpo

from pytest_tfgrpo.patterns.harvest.tools import domain_of
from pytest_tfgrpo.patterns.suite.harvest_log import HarvestLog


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
