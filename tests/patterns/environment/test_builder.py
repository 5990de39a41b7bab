"""The builder: the same environment from the same recipe, whatever ends a build and whatever a build does."""

import os
from pathlib import Path

import pytest
from support.environment.builder import AT, part, tools_for
from support.tools import require_tool
from support.wheels import make_sdist, make_wheel

from pytest_tfgrpo.patterns.environment.builder import EnvironmentBuilder, until_of
from pytest_tfgrpo.patterns.environment.package_tools import BuildProblem, BuildTools


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    make_wheel(folder, "soap", "1.0")
    make_wheel(folder, "soap", "2.0")
    make_wheel(folder, "shop", "9.9")
    make_sdist(folder, "lye", "1.0", Path(__file__))
    return folder


@pytest.fixture(scope="module", params=["uv", "pip"])
def made(request, index, tmp_path_factory):
    """A builder with each tool, and what it made of a recipe with a wheel and a source distribution."""
    cache = tmp_path_factory.mktemp("cache")
    builder = EnvironmentBuilder(tools_for(index, request.param), cache)
    recipe = part(
        dependencies=("soap>=1", "lye", "shop"),
        entry_points={"shop": "[console_scripts]\nshop = shop.cli:main\n\n[pytest11]\nshop = shop.plugin\n"},
        setup=(("sh", "-c", "env > seen; touch /outside; echo kept > kept"),),
        variables={"TZ": "UTC"},
        imports=("src",),
    )
    return builder, recipe, cache, builder.make(recipe, AT)


def test_modules_are_compiled_as_no_run_can_write_them(made):
    *_, found = made
    assert list(found.built.folder.glob("python/lib/*/site-packages/__pycache__/soap.*.pyc"))


@pytest.fixture
def bare(tmp_path):
    """A builder for environments without Python, which take no time."""
    require_tool("bwrap")
    tools = BuildTools(interpreters={}, uv=None, environ={"PATH": os.environ["PATH"], "SECRET": "x"})
    return EnvironmentBuilder(tools, tmp_path / "cache")


def test_a_python_that_is_not_here_is_named(bare):
    with pytest.raises(BuildProblem, match=r"no Python 3\.1 on this machine, which has none; install it"):
        bare.make(part(python="3.1"), AT)


def test_a_recipe_that_needs_nothing_needs_no_environment(bare):
    assert bare.make(part(python=None, dependencies=("pytest",)), AT).built is None


@pytest.mark.parametrize("values", [{"variables": {"TZ": "UTC"}}, {"imports": ("src",)}])
def test_variables_and_folders_of_modules_need_an_environment_but_no_python(bare, values):
    found = bare.make(part(python=None, dependencies=("pytest",), distributions={}, **values), AT)
    assert found.built.python is None
    assert (found.built.variables, found.built.imports) == (
        values.get("variables", {}),
        values.get("imports", ()),
    )


def test_a_recipe_that_would_do_harm_gives_no_environment(bare):
    with pytest.raises(BuildProblem, match="LD_PRELOAD"):
        bare.make(part(python=None, setup=(("true",),), variables={"LD_PRELOAD": "x"}), AT)


@pytest.mark.parametrize(
    ("at", "until"),
    [
        (AT, "2022-08-01T00:00:00Z"),
        (1672531199, "2023-01-01T00:00:00Z"),
        (-1, "1970-02-01T00:00:00Z"),
        (10**30, "9892-04-01T00:00:00Z"),
    ],
)
def test_changes_of_one_month_share_a_date(at, until):
    assert until_of(at) == until
