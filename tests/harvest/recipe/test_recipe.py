"""Recipes: what is reviewed beats what is guessed, and every value has a source."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.project_trees import candidate, project_files, recipe

from pytest_tfgrpo.harvest.recipe.recipe import recipe_of
from pytest_tfgrpo.harvest.recipe.recipe_file import parse_recipes

PYPROJECT = """
[project]
name = "shop"
version = "1.2"
requires-python = ">=3.8"
dependencies = ["attrs>=20"]
classifiers = ["Programming Language :: Python :: 3.8", "Programming Language :: Python :: 3.10"]
[project.optional-dependencies]
test = ["pytest>=6", "mock; python_version < '3'", "flake8"]
[project.entry-points.pytest11]
shop = "shop.plugin"
"""
JS = json.dumps({"scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "^1"}})


def test_a_project_that_says_nothing_and_needs_pytest_alone_runs_in_this_interpreter():
    (part,) = recipe({"shop.py": ""})
    assert (part.command.runner, part.python, part.dependencies) == ("pytest", None, ("pytest",))
    assert part.sources["dependencies"] == "template (pytest)"


def test_a_fix_that_changes_only_what_tests_share_runs_with_their_runner():
    files = project_files({"shop.py": "", "tests/__init__.py": ""})
    shared = replace(candidate(), protected=("tests/__init__.py",))
    (part,) = recipe_of(files.read, files.names, shared)
    assert part.command.runner == "pytest"


def test_a_declared_project_is_read_from_its_manifest():
    strict, relaxed = recipe({"pyproject.toml": PYPROJECT, "src/shop/__init__.py": ""})
    assert strict.python == "3.10"
    assert strict.dependencies == ("attrs>=20", "pytest>=6", "mock; python_version < '3'", "flake8")
    assert strict.imports == ("src",)
    assert strict.distributions == {"shop": "1.2"}
    assert strict.entry_points == {"shop": "[pytest11]\nshop = shop.plugin\n"}
    assert strict.sources["python"] == "pyproject.toml [project] classifiers"
    assert "pyproject.toml [project.optional-dependencies] test" in strict.sources["dependencies"]
    assert not strict.relaxed
    assert relaxed.relaxed
    assert relaxed.dependencies == (strict.dependencies[0], "pytest", strict.dependencies[2])


GROUPS = """
[project]
name = "shop"
version = "1.2"
[project.optional-dependencies]
crypto = ["cryptography>=3", "shop[redis]"]
redis = ["redis"]
docs = ["sphinx", "zope.interface"]
[dependency-groups]
tests = ["pytest>=6"]
dev = ["ruff", {include-group = "tests"}]
"""


def test_behind_each_pass_comes_one_with_all_extras_and_groups_that_tests_may_need():
    parts = recipe({"pyproject.toml": GROUPS, "src/shop/__init__.py": ""})
    assert [(part.extras, part.relaxed) for part in parts] == [
        ((), False),
        (("crypto", "redis"), False),
        ((), True),
        (("crypto", "redis"), True),
    ]
    assert parts[0].dependencies == ("pytest>=6",)
    assert parts[1].dependencies == ("pytest>=6", "cryptography>=3", "redis")
    assert parts[1].sources["dependencies"].endswith("tests, all extras, groups and lists")
    assert parts[3].dependencies == ("pytest", "cryptography>=3", "redis")


def test_lists_of_requirements_of_all_files_are_added_where_they_name_something_else():
    files = {
        "setup.py": "from setuptools import setup\nsetup(name='x', install_requires=['six'])",
        "requirements.txt": "six==1.1\nyarl==3; python_version<'3.8'\nyarl==5; python_version>='3.8'\n",
        "requirements-docs.txt": "zope.interface\n",
        "other_requirements.txt": "requests\n",
        "tox.ini": "[testenv]\ndeps = mock\n",
        "deep/requirements.txt": "no\n",
    }
    parts = recipe(files)
    assert parts[0].dependencies == ("six", "mock", "pytest")
    assert parts[1].extras == ("other_requirements.txt", "requirements.txt")
    assert parts[1].dependencies == (
        *parts[0].dependencies,
        "requests",
        "yarl==3; python_version<'3.8'",
        "yarl==5; python_version>='3.8'",
    )


SETUP = """
import sys
from setuptools import setup
needs = ['six']
try:
    import text_unidecode
except ImportError:
    needs.append('Unidecode>=0.04')
if sys.version_info < (3, 4):
    needs.append('enum34')
if 1:
    needs += ['attrs', name()]
    needs.extend(['yarl'])
setup(name='x', install_requires=needs)
"""


def test_what_a_setup_script_adds_to_a_list_counts_where_no_version_decides_it():
    assert recipe({"setup.py": SETUP})[0].dependencies == (
        "six",
        "Unidecode>=0.04",
        "attrs",
        "yarl",
        "pytest",
    )


def test_a_project_whose_tests_need_pytest_alone_gets_a_python_for_its_extras():
    bare, wide = recipe({"setup.cfg": "[options.extras_require]\ncrypto = cryptography\n"})
    assert (bare.python, wide.python) == (None, "3.10")
    assert wide.dependencies == ("pytest", "cryptography")


def test_an_extra_of_poetry_holds_what_is_optional_without_it():
    manifest = """
[tool.poetry.dependencies]
python = "^3.8"
redis = {version = "^4.0", optional = true}
[tool.poetry.extras]
cache = ["redis", "absent"]
"""
    strict, wide, *_ = recipe({"pyproject.toml": manifest})
    assert (strict.dependencies, wide.extras) == (("pytest",), ("cache",))
    assert wide.dependencies == ("pytest", "redis>=4.0,<5")


def test_reviewed_dependencies_are_not_widened():
    (reviewed,) = parse_recipes('[folder."."]\npython = "3.10"\ndependencies = ["pytest"]')
    parts = recipe({"pyproject.toml": GROUPS}, reviewed=(reviewed,))
    assert [part.extras for part in parts] == [(), ()]


@pytest.mark.parametrize(
    ("declared", "interpreters", "at", "expected"),
    [
        ("3.8 3.9 3.10", ("3.9", "3.10"), 1656633600, "3.10"),
        ("3.10 3.12", ("3.10", "3.12"), 1656633600, "3.10"),  # 3.12 was not out in 2022
        ("3.12", ("3.10", "3.12"), 1656633600, "3.12"),
        ("3.6 3.7", ("3.9", "3.10"), 1656633600, "3.9"),  # the next one
        ("3.6 3.7", ("3.6", "3.7", "3.9", "3.10"), 1656633600, "3.9"),  # the reporter needs 3.8
        ("", ("3.7", "3.10"), 1656633600, "3.10"),
        ("3.8 3.10", ("3.9", "3.11"), 1656633600, "3.11"),
        ("3.12", ("3.9",), 1656633600, "3.12"),  # none here: building says so
        ("", ("3.9", "3.12"), 1656633600, "3.9"),
        ("", ("3.12", "3.13"), 1656633600, "3.12"),
        ("", ("3.9", "3.12"), -5, "3.9"),
        ("", ("3.11", "3.12"), 1696204800, "3.12"),  # the day on which 3.12 came out
        ("", ("3.11", "3.12"), 1696204799, "3.11"),
        ("", ("3.10", "3.11"), 1666569600, "3.11"),
        ("", ("3.13", "3.14"), 1728259200, "3.13"),
        ("", ("3.14", "3.15"), 1_900_000_000, "3.14"),  # of which nobody knows when it came out
        ("", ("3.9", "3.12"), 10**30, "3.12"),
    ],
)
def test_the_python_is_the_newest_declared_one_that_was_out(declared, interpreters, at, expected):
    classifiers = [f"Programming Language :: Python :: {v}" for v in declared.split()]
    manifest = (
        f"[project]\nname='x'\nrequires-python='>=3.6'\nclassifiers={classifiers}\ndependencies=['attrs']"
    )
    parts = recipe({"pyproject.toml": manifest}, interpreters=interpreters, at=at)
    assert parts[0].python == expected


@pytest.mark.parametrize(("bound", "expected"), [("<3.10", "3.9"), (">=3.8,<=3.10", "3.10"), ("<3.9", None)])
def test_a_python_that_the_project_refuses_is_not_taken(bound, expected):
    manifest = f"[project]\nname='x'\nrequires-python='{bound}'\ndependencies=['attrs']"
    parts = recipe({"pyproject.toml": manifest}, interpreters=("3.9", "3.10", "3.11"), at=1680000000)
    assert (parts[0].python if expected else parts[0].python in (None, "3.8")) == (expected or True)


def test_a_range_of_poetry_is_read_behind_its_bars():
    manifest = '[tool.poetry.dependencies]\npython = "~2.7 || ^3.5"\nattrs = "*"\n'
    parts = recipe({"pyproject.toml": manifest}, interpreters=("3.8", "3.9"), at=1600000000)
    assert parts[0].python == "3.8"


def test_what_is_reviewed_beats_every_guess():
    (reviewed,) = parse_recipes("""
[folder."."]
runner = "pytest"
python = "3.9"
dependencies = ["pytest==7.0"]
paths = ["lib"]
env = {TZ = "UTC"}
tests = ["check/*.py"]
protected = ["golden/**"]
setup = [["make", "data"]]
files = ["Makefile", "absent"]
""")
    tree = {"pyproject.toml": PYPROJECT, "Makefile": "data:", "tox.ini": "[testenv]\nsetenv = A=1"}
    part = recipe(tree, reviewed=(reviewed,))[0]
    assert part.python == "3.9"
    assert part.dependencies == ("pytest==7.0",)
    assert part.imports == ("lib",)
    assert part.variables == {"TZ": "UTC"}
    assert part.tests == ("check/*.py",)
    assert part.protected == ("golden/**",)
    assert part.setup == (("make", "data"),)
    assert part.files == {"Makefile": "data:"}
    assert part.sources["python"] == 'harvest.toml [folder."."] python'
    assert part.distributions == {"shop": "1.2"}  # guessed, as the file cannot say it


def test_a_reviewed_folder_without_python_that_needs_pytest_alone_runs_in_this_interpreter():
    (reviewed,) = parse_recipes('[folder."."]\nrunner = "pytest"\ndependencies = ["pytest"]')
    (part,) = recipe({"pyproject.toml": PYPROJECT}, reviewed=(reviewed,))
    assert part.python is None


def test_the_folder_is_the_one_with_most_of_the_tests():
    tree = {"web/package.json": JS, "api/pyproject.toml": PYPROJECT, "api/src/shop/__init__.py": ""}
    parts = recipe(tree, "api/tests/test_a.py", "api/tests/test_b.py", "web/a.test.ts")
    assert (parts[0].folder, parts[0].command.folder, parts[0].command.runner) == ("api", "api", "pytest")
    assert parts[0].imports == ("api/src",)
    (web, _) = recipe(tree, "web/a.test.ts")
    assert (web.folder, web.command.runner) == ("web", "vitest")
    assert recipe({"setup.py": "", "shop.py": ""}, "tests/in/test_a.py")[0].folder == "."


def test_a_reviewed_folder_holds_the_tests_below_it():
    reviewed = parse_recipes('[folder."."]\npython="3.9"\n[folder."api"]\nrunner="pytest"\npython="3.11"')
    parts = recipe({"api/v1/setup.py": ""}, "api/v1/tests/test_a.py", reviewed=reviewed)
    assert (parts[0].folder, parts[0].python) == ("api", "3.11")


def test_a_javascript_project_is_installed_by_its_lock():
    tree = {"package.json": JS, "package-lock.json": "{}"}
    strict, relaxed = recipe(tree, "a.test.js")
    assert strict.command.runner == "vitest"
    assert strict.setup == (("npm", "ci", "--no-audit", "--no-fund"),)
    assert strict.files == tree
    assert strict.sources["runner"] == "package.json scripts.test"
    assert relaxed.relaxed


@pytest.mark.parametrize(
    ("tree", "runner"),
    [
        ({"package.json": '{"scripts": {"test": "node --test"}}'}, "node-test"),
        ({"package.json": '{"scripts": {"test": "npx jest --ci"}}'}, "jest"),
        (
            {"package.json": '{"scripts": {"build": "vitest", "testing": "jest", "test": "node --test"}}'},
            "node-test",
        ),
        ({"package.json": '{"scripts": {"build": "vitest", "test:all": "jest"}}'}, "jest"),
        ({"package.json": '{"scripts": {"build": "vitest"}, "devDependencies": {"jest": "1"}}'}, "jest"),
        ({"package.json": "{}", "b.test.js": "import test from 'tap'", "jest.config.mjs": ""}, "jest"),
        ({"package.json": '{"devDependencies": {"jest": "1"}}'}, "jest"),
        ({"package.json": "{}", "vitest.config.ts": ""}, "vitest"),
        ({"package.json": "{}", "b.test.js": "import test from 'node:test'"}, "node-test"),
    ],
)
def test_a_javascript_runner_is_found(tree, runner):
    assert recipe(tree, "a.test.js")[0].command.runner == runner


@pytest.mark.parametrize(
    ("script", "flags", "globs"),
    [
        ("node --test", (), ()),
        ("node --import=tsx/esm --test test/*.ts", ("--import=tsx/esm",), ("test/*.ts",)),
        (
            "xo && tsc; c8 node --no-warnings -r ts-node/register --test-only --test './spec/**/*.{ts,mts}'",
            ("--no-warnings", "--require=ts-node/register"),
            ("spec/**/*.ts", "spec/**/*.mts"),
        ),
        ("tsx --test src/a.check.ts", ("--import=tsx",), ("src/a.check.ts",)),
        ("cross-env NODE_OPTIONS='--loader tsx --inspect' node --test test", ("--loader=tsx",), ()),
        ("node --test a.js NODE_OPTIONS=--loader=tsx", (), ("a.js",)),
        ("node --test src/../x.js ./b.js", (), ("b.js",)),
        ("node --test ../x.js /x.js 'a", (), ()),
        ("node build.js && node --conditions dev --test ../x.js /x.js", ("--conditions=dev",), ()),
    ],
)
def test_flags_and_globs_of_a_script_of_node_are_kept(script, flags, globs):
    manifest = json.dumps({"scripts": {"test": script}})
    part = recipe({"web/package.json": manifest}, "web/test/a.ts")[0]
    assert (part.command.runner, part.command.run) == ("node-test", flags)
    assert part.tests == tuple(f"web/{glob}" for glob in globs)


def test_reviewed_flags_of_node_beat_those_of_the_script():
    (reviewed,) = parse_recipes('[folder."."]\nrunner = "node-test"\nrun = ["--import=a"]')
    manifest = json.dumps({"scripts": {"test": "node --import=tsx --test test/*.ts"}})
    part = recipe({"package.json": manifest}, "test/a.ts", reviewed=(reviewed,))[0]
    assert (part.command.run, part.tests) == (("--import=a",), ("test/*.ts",))


@pytest.mark.parametrize("text", ['{"scripts": {"test": "mocha"}}', "{", "[]", '{"scripts": []}', ""])
def test_an_unknown_javascript_runner_gives_no_recipe(text):
    assert recipe({"package.json": text}, "a.test.js") == ()


def test_a_project_is_no_dependency_of_itself_but_its_extras_count():
    manifest = """
[project]
name = "My.Shop"
[project.optional-dependencies]
test = ["my_shop[fast]", "pytest", "uvicorn[slow]", "git+https://host/x", "../local"]
fast = ["orjson", "git+https://host/y"]
slow = ["never"]
"""
    part = recipe({"pyproject.toml": manifest})[0]
    assert part.dependencies == ("pytest", "uvicorn[slow]", "orjson")
    assert part.sources["dependencies left out"] == "git+https://host/x, ../local, git+https://host/y"


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "pyproject.toml",
                "setup.py",
                "setup.cfg",
                "tox.ini",
                "noxfile.py",
                "Makefile",
                "package.json",
                "PKG-INFO",
                ".github/workflows/ci.yml",
                "requirements-dev.txt",
                "shop.py",
                ".python-version",
            ]
        ),
        st.text(max_size=60)
        | st.sampled_from(
            [
                "[project]\ndependencies=1",
                "[testenv]\ndeps",
                "a: [",
                "pytest: *x",
                "test",
                "setup(name=1, extras_require=[])",
                "[tool]\ntox=1",
                "[project]\noptional-dependencies=[1]\nscripts=3\nclassifiers=[2]",
            ]
        ),
    )
)
def test_no_manifest_can_break_a_recipe(tree):
    for part in recipe(tree):
        assert part.command.runner == "pytest"
        assert all("\n" not in item and not item.startswith("-") for item in part.dependencies)


def test_the_relaxed_recipe_lets_go_of_an_old_pytest_and_its_plugins():
    project = '[project]\nname = "x"\nrequires-python = ">=3.8"\n'
    plugins = ("pytest-timeout==1.4.2 ; python_version>'3'", "pytest-xdist[psutil]<2", "py==1.4")
    project += f"[dependency-groups]\ntest = {json.dumps(['pytest<5', 'six<2', *plugins])}\n"
    strict, relaxed = recipe({"pyproject.toml": project, "x.py": ""})
    assert strict.dependencies == ("pytest<5", "six<2", *plugins)
    free = ("pytest-timeout; python_version>'3'", "pytest-xdist[psutil]", "py")
    assert relaxed.dependencies == ("pytest", "six<2", *free)


def test_reviewed_folders_of_modules_lie_below_their_folder():
    (reviewed,) = parse_recipes('[folder."api"]\nrunner = "pytest"\npaths = ["lib", "."]\nfiles = ["a.txt"]')
    part = recipe({"api/a.txt": "x", "a.txt": "y"}, "api/tests/test_a.py", reviewed=(reviewed,))[0]
    assert (part.imports, part.files) == (("api/lib", "api"), {"a.txt": "x"})
    assert part.sources["paths"] == 'harvest.toml [folder."api"] paths'


def test_a_project_whose_tests_have_variables_has_a_python_of_its_own():
    assert recipe({"tox.ini": "[testenv]\nsetenv = TZ=UTC\n"})[0].python == "3.10"


def test_a_requirement_with_a_marker_does_not_keep_another_of_its_name_out():
    manifest = """
[project]
name = "shop"
dependencies = ["attrs"]
[project.optional-dependencies]
one = ["yarl==3; python_version < '3.8'", "attrs[x]"]
two = ["yarl==5", "multidict"]
three = ["yarl==7", "multidict>=2", "Shop[one]"]
"""
    _, wide, *_ = recipe({"pyproject.toml": manifest})
    assert wide.dependencies == ("attrs", "pytest", "yarl==3; python_version < '3.8'", "yarl==5", "multidict")
    assert wide.extras == ("one", "two")


def test_what_npm_needs_is_kept_but_no_password_and_nothing_that_is_installed():
    tree = {
        "package.json": json.dumps({"scripts": {"test": "jest"}, "workspaces": ["packages/*"]}),
        "packages/a/package.json": '{"name": "a"}',
        "packages/a/node_modules/b/package.json": "{}",
        ".npmrc": "registry = one",
    }
    part = recipe(tree, "a.test.js")[0]
    assert set(part.files) == {"package.json", "packages/a/package.json", ".npmrc"}
    assert (part.setup, part.sources["setup"]) == (
        (("npm", "ci", "--no-audit", "--no-fund"),),
        "package.json dependencies",
    )
    (alone,) = recipe({**tree, "package.json": '{"scripts": {"test": "jest"}}'}, "a.test.js")
    assert (alone.files, alone.setup) == ({}, ())
    secret = recipe({**tree, ".npmrc": "//host/:_authToken=x"}, "a.test.js")[0]
    assert set(secret.files) == {"package.json", "packages/a/package.json"}
