"""Protected paths: which files come from the fix in every check."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.scoring.checks.hidden.protected import is_protected, is_test, shadows


@pytest.mark.parametrize(
    "path",
    [
        "tests/data/input.json",
        "pkg/Tests/check.py",
        "test_shop.py",
        "pkg/shop_test.py",
        "pkg/tests.py",
        "conftest.py",
        "a/b/conftest.py",
        "src/a.test.ts",
        "src/a.spec.mjs",
        "src/__tests__/a.js",
        "src/__snapshots__/a.snap",
        "test-shop.cjs",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        "sub/tox.ini",
        "setup.cfg",
        "pyproject.toml",
        "jest.config.ts",
        "vitest.config.mts",
        "vitest.workspace.json",
        "vite.config.js",
        "babel.config.json",
        "tsconfig.json",
        "test/tsconfig.spec.json",
        "jsconfig.json",
        "postcss.config.js",
        ".postcssrc.json",
        "next.config.mjs",
        "package.json",
        "setupTests.js",
        "sitecustomize.py",
        "sitecustomize/__init__.py",
        "usercustomize.cpython-311.pyc",
        "x.pth",
        "x.egg-link",
        "x.egg-info/entry_points.txt",
        "x-1.dist-info/METADATA",
        "node_modules/vitest/index.js",
        ".git/hooks/post-checkout",
    ],
)
def test_what_decides_about_tests_is_protected(path):
    assert is_protected(path)


@pytest.mark.parametrize(
    "path",
    [
        "shop/cart.py",
        "shop/testing.py",
        "latest.py",
        "contest/a.py",
        "src/attest.js",
        "README.md",
        "docs/test.rst",
    ],
)
def test_sources_and_documentation_are_not(path):
    assert not is_protected(path)


def test_a_glob_protects_further_paths():
    assert is_protected("qa/run.sh", ["qa"])
    assert is_protected("a/b/c.golden", ["**/*.golden"])
    assert is_protected("c.golden", ["**/*.golden"])
    assert not is_protected("a/c.golden", ["*.golden"])
    assert not is_protected("qab/run.sh", ["qa"])
    assert is_protected("a[1].txt", ["a[1].txt"])


paths = st.text(alphabet="ab/.[\\", min_size=1, max_size=12)
starred = st.tuples(paths, st.sampled_from(["*", "?", "/*", "[ab]", ""])).map(
    lambda two: (two[0], two[0][:-1] + two[1])
)


@reaches("protected", "not protected")
@given(st.tuples(paths, st.text(alphabet="ab/*?[.\\", max_size=12)) | starred | starred)
def test_any_glob_is_answered(two):
    path, glob = two
    found = is_protected(path, [glob])
    assert found in (True, False)
    reached("protected" if found else "not protected")


def test_files_with_tests_are_known_by_their_names():
    assert all(map(is_test, ["tests/test_a.py", "a_test.py", "pkg/tests.py", "src/a.test.ts", "test/a.js"]))
    assert not any(
        map(is_test, ["tests/__init__.py", "conftest.py", "tests/data.json", "pytest.ini", "shop.py"])
    )
    assert is_test("qa/run.py", ["qa/*.py"])
    assert not is_test("test_a.py", ["qa/*.py"])


@pytest.mark.parametrize(
    "path", ["json.py", "json/__init__.py", "src/json.py", "lib/json.so", "pytest.py", "py/a.py"]
)
def test_a_module_in_place_of_another_shadows_it(path):
    assert shadows(path, {"json"}, {"shop"}, ["src"])


@pytest.mark.parametrize(
    "path", ["shop/json.py", "shop/sub/json.py", "json.txt", "shop/cart.py", "shop/json/a.py"]
)
def test_a_module_of_a_package_shadows_nothing(path):
    assert not shadows(path, {"json"}, {"shop", "shop/sub", "shop/json"}, ["src"])


def test_a_root_of_imports_stays_one_though_it_looks_like_a_package():
    assert shadows("src/json.py", {"json"}, {"src"}, ["src"])


def test_a_module_that_the_project_has_may_be_called_anyhow():
    own = {"types", "types/a.py"}
    assert not shadows("types/a.py", {"types", "json"}, set(), own=own)
    assert not shadows("types/b.py", {"types", "json"}, set(), own=own)
    assert shadows("types/json.py", {"types", "json"}, set(), own=own)
