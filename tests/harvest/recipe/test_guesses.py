"""Guesses: what tox, nox, hatch, requirements files, scripts and CI say of the tests."""

import pytest
from support.project_trees import project_files, recipe

from pytest_tfgrpo.harvest.recipe.guesses import guess
from pytest_tfgrpo.harvest.recipe.manifests import python_project

NOX = "import nox\n@nox.session\ndef tests(session):\n"
NOX += '    session.install("-r", "req.txt", "pytest-cov", ".[x]")\n'
WORKFLOW = """
on: push
jobs:
  test:
    strategy:
      matrix:
        python-version: ["3.8", "3.11"]
    steps:
      - run: |
          python -m pip install --upgrade pip
          pip install -r req.txt 'hypothesis>=6' -e .
          pytest
"""


def found(tree):
    files = project_files(tree)
    return guess(files, python_project(files))


@pytest.mark.parametrize(
    ("tree", "requirements", "source"),
    [
        (
            {
                "tox.ini": "[testenv]\ndeps =\n  pytest>=6  # why\n  py38: mock\n  -r req.txt\n  {env:X}\n"
                "  -c limits.txt\n  # no\n",
                "req.txt": "a\nb",
            },
            ("pytest>=6", "mock", "a", "b"),
            "tox.ini [testenv] deps",
        ),
        ({"setup.cfg": "[tox:testenv]\ndeps = pytest"}, ("pytest",), "setup.cfg [tox:testenv] deps"),
        (
            {
                "pyproject.toml": '[tool.tox]\nlegacy_tox_ini = """\n[testenv]\n'
                'deps =\n  pytest\n  x\ncommands = pytest\n"""'
            },
            ("pytest", "x"),
            "pyproject.toml [tool.tox] legacy_tox_ini",
        ),
        ({"noxfile.py": NOX, "req.txt": "a==1"}, ("a==1", "pytest-cov"), "noxfile.py tests"),
        (
            {"pyproject.toml": '[tool.hatch.envs.test]\ndependencies = ["pytest", "y"]'},
            ("pytest", "y"),
            "pyproject.toml [tool.hatch.envs.test]",
        ),
        (
            {
                "requirements/tests.txt": "-r base.txt\npytest==7 \\\n  --hash=sha256:aa\n-c limits.txt\n",
                "requirements/base.txt": "z",
            },
            ("z", "pytest==7"),
            "requirements/tests.txt",
        ),
        ({"setup.py": "setup(tests_require=['pytest', 'q'])"}, ("pytest", "q"), "setup.py tests_require"),
        (
            {"pyproject.toml": '[dependency-groups]\ntest = ["pytest", {include-group = "o"}]\no = ["w"]'},
            ("pytest", "w"),
            "pyproject.toml [dependency-groups] test",
        ),
        (
            {
                "pyproject.toml": '[tool.poetry.dev-dependencies]\npytest = "^7.1"\n'
                'tox = "*"\nlocal = {path = "../x"}'
            },
            ("pytest>=7.1,<8", "tox"),
            "pyproject.toml [tool.poetry] group dev",
        ),
        (
            {".github/workflows/tests.yml": WORKFLOW, "req.txt": "a"},
            ("a", "hypothesis>=6"),
            ".github/workflows/tests.yml",
        ),
        ({"Makefile": "test:\n\tpip install pytest foo\n\tpytest\n"}, ("pytest", "foo"), "Makefile"),
        (
            {"Makefile": "test:\n\tpip install -U pip setuptools wheel \\\n\t  pytest\n"},
            ("pytest",),
            "Makefile",
        ),
        (
            {"tox.toml": '[env_run_base]\ndeps = ["pytest", "-r req.txt"]\n', "req.txt": "a"},
            ("pytest", "a"),
            "tox.toml env_run_base.deps",
        ),
        (
            {"pyproject.toml": '[tool.tox.env_run_base]\ndeps = ["pytest", "b"]\n'},
            ("pytest", "b"),
            "pyproject.toml env_run_base.deps",
        ),
    ],
)
def test_what_tests_need_is_found_with_its_source(tree, requirements, source):
    told = found(tree)
    assert told.dependencies.requirements == requirements
    assert told.sources["dependencies"] == source


@pytest.mark.parametrize(
    ("tree", "pythons", "source"),
    [
        ({".python-version": "3.9.1\n3.10.2\n"}, ("3.9",), ".python-version"),
        (
            {
                ".github/workflows/a.yml": WORKFLOW.replace("3.8", "3.9"),
                ".github/workflows/tests.yml": WORKFLOW,
            },
            ("3.8", "3.11"),
            ".github/workflows/tests.yml",
        ),
        ({".gitlab-ci.yml": "tests:\n  python: [3.8, '3.9']\n"}, ("3.8", "3.9"), ".gitlab-ci.yml"),
        ({".travis.yml": "python: '3.7'\nscript: pytest\n"}, ("3.7",), ".travis.yml"),
        ({".github/workflows/docs.yml": "python-version: '3.7'\nrun: build\n"}, (), None),
        ({"notes.yml": WORKFLOW, ".github/in/tests.yml": WORKFLOW, "in/.travis.yml": WORKFLOW}, (), None),
        (
            {"tox.ini": "[tox]\nenvlist = py{38,39}, py310, pypy3"},
            ("3.8", "3.9", "3.10"),
            "tox.ini [tox] envlist",
        ),
        ({"tox.ini": "[tox]\nenv_list = pypy3{7,8}, 3.10"}, (), None),
        (
            {"tox.ini": "[tox]\nenvlist =\n  py3{11,10, 9},pypy3{8,7}\n  style"},
            ("3.11", "3.10", "3.9"),
            "tox.ini [tox] envlist",
        ),
        ({"tox.ini": "[tox]\nenvlist = py3.{8,9}"}, ("3.8", "3.9"), "tox.ini [tox] envlist"),
        ({".github/workflows/tests.yml": WORKFLOW}, ("3.8", "3.11"), ".github/workflows/tests.yml"),
    ],
)
def test_pythons_are_found_with_their_source(tree, pythons, source):
    told = found(tree)
    assert told.pythons == pythons
    assert told.sources.get("python") == source


def test_plain_variables_of_tox_are_kept_and_those_with_substitutions_are_not():
    text = "[testenv]\nsetenv =\n  TZ = UTC\n  PYTHONPATH = {toxinidir}\n  1X = 2\n"
    text += "  AT = {toxinidir}\n  B = $TZ\n  no\n"
    assert found({"tox.ini": text}).variables == {"TZ": "UTC"}


def test_variables_that_choose_programs_are_never_taken():
    tree = {"tox.ini": "[testenv]\nsetenv =\n  LD_PRELOAD = ./x.so\n  PATH = .\n  PYTHONPATH = src\n  A = 1"}
    assert recipe(tree)[0].variables == {"A": "1"}


def test_a_setup_script_is_read_and_not_run():
    text = """
raise SystemExit("ran")
NEEDS = ["a>=1"]
setup(name="x", version=get(), install_requires=NEEDS + ["b"], python_requires=">=3.7",
      extras_require={"test": ["pytest"]}, package_dir={"": "lib"},
      entry_points={"console_scripts": ["x = x:main"]})
"""
    project = python_project(project_files({"setup.py": text, "lib/x/__init__.py": "__version__ = '2.0'"}))
    assert (project.name, project.dependencies, project.requires_python) == ("x", ["a>=1", "b"], ">=3.7")
    assert (project.groups, project.roots) == ({"test": ["pytest"]}, ["lib"])
    assert project.entry_points == {"console_scripts": {"x": "x:main"}}
    assert project.version == "2.0"


def test_an_old_setup_cfg_is_read():
    text = """
[metadata]
name = Jinja2
version = attr: jinja2.__version__
[options]
package_dir =
    = src
python_requires = >= 3.7
[options.packages.find]
where = src
[options.entry_points]
babel.extractors =
    jinja2 = jinja2.ext:babel_extract[i18n]
"""
    tree = {"setup.cfg": text, "src/jinja2/__init__.py": '__version__ = "3.1.2"\n'}
    project = python_project(project_files(tree))
    assert (project.name, project.version, set(project.roots)) == ("Jinja2", "3.1.2", {"src"})
    assert recipe(tree)[0].imports == ("src",)


def test_requirements_files_that_include_each_other_end():
    tree = {
        "requirements-tests.txt": "-r requirements-dev.txt\na",
        "requirements-dev.txt": "-r requirements-tests.txt\nb",
    }
    assert set(found(tree).dependencies.requirements) == {"a", "b"}


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/../../b"])
def test_a_requirements_file_outside_the_tree_is_not_read(name):
    files = project_files({"requirements-tests.txt": f"-r {name}\nok"})
    assert found({"requirements-tests.txt": f"-r {name}\nok"}).dependencies.requirements == ("ok",)
    assert name not in files.names
