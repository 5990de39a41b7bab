"""What manifests say of a Python project, in every place that they may say it."""

import pytest
from support.project_trees import project_files

from pytest_tfgrpo.harvest.recipe.manifests import PythonProject, python_project

SETUP_CFG = """
[metadata]
name = shop
version = 1.2
classifiers =
    Programming Language :: Python :: 3.9
    Programming Language :: Python
[options]
python_requires = >=3.8
install_requires =
    attrs>=20
    # a remark
package_dir =
    = src
    other = elsewhere
[options.extras_require]
test =
    pytest
    # another
[options.entry_points]
console_scripts =
    shop = shop.cli:main
    nothing
[options.packages.find]
where = lib
"""


def found(**tree: str) -> PythonProject:
    names = {"setup_cfg": "setup.cfg", "setup_py": "setup.py", "pkg_info": "PKG-INFO"}
    return python_project(project_files({names[key]: text for key, text in tree.items()}))


def test_a_setup_cfg_is_read_in_all_its_sections() -> None:
    project = found(setup_cfg=SETUP_CFG)
    assert (project.name, project.version, project.requires_python) == ("shop", "1.2", ">=3.8")
    assert (project.pythons, project.dependencies) == (("3.9",), ["attrs>=20"])
    assert project.groups == {"test": ["pytest"]}
    assert project.entry_points == {"console_scripts": {"shop": "shop.cli:main"}}
    assert project.roots == ["src", "lib"]


@pytest.mark.parametrize("version", ["attr: shop.version", "file: VERSION"])
def test_a_version_that_stands_elsewhere_is_none(version: str) -> None:
    assert found(setup_cfg=f"[metadata]\nname = shop\nversion = {version}\n").version == ""


def test_a_setup_py_says_what_its_call_has_by_name() -> None:
    for call in ("setup", "setuptools.setup"):
        project = found(setup_py=f"{call}(name='shop', version='2', **more)\nother.set_up(name='no')\n")
        assert (project.name, project.version) == ("shop", "2")
    assert found(setup_cfg="[metadata]\nclassifier = Programming Language :: Python :: 3.9").pythons == (
        "3.9",
    )


def test_the_head_of_a_source_distribution_is_read_and_its_description_is_not() -> None:
    text = (
        "Metadata-Version: 2.1\nName: shop\nVERSION: 1.5\nSummary: x\n  Name: folded\nno colon\n"
        "Classifier: Programming Language :: Python :: 3.10\nRequires-Python: >=3.9\n\nVersion: 9\n"
    )
    project = found(pkg_info=text)
    assert (project.name, project.version, project.requires_python) == ("shop", "1.5", ">=3.9")
    assert project.pythons == ("3.10",)


def toml(text: str) -> PythonProject:
    return python_project(project_files({"pyproject.toml": text}))


def test_programs_and_plugins_of_a_project_are_its_entry_points() -> None:
    project = toml(
        "[tool.flit.module]\nsrc = ''\n[project]\nscripts = {a = 'm:a', bad = 1}\n"
        "gui-scripts = {b = 'm:b'}\n[project.entry-points.g]\nc = 'm:c'\n"
    )
    assert project.entry_points == {
        "console_scripts": {"a": "m:a"},
        "gui_scripts": {"b": "m:b"},
        "g": {"c": "m:c"},
    }
    assert project.roots == []


def test_a_group_holds_what_the_groups_hold_that_it_includes() -> None:
    groups = "\n".join(f'g{n} = ["x{n}", {{include-group = "g{n + 1}"}}]' for n in range(8))
    project = toml(f"[dependency-groups]\n{groups}\n")
    assert project.groups["g0"] == [f"x{n}" for n in range(6)]
    assert project.groups["g6"] == ["x6", "x7"]


def test_an_extra_counts_before_a_group_of_its_name() -> None:
    text = "[project.optional-dependencies]\ntest = ['a']\n[dependency-groups]\ntest = ['b']\n"
    project = toml(text)
    assert project.groups == {"test": ["a"]}
    assert project.sources["group test"] == "pyproject.toml [project.optional-dependencies] test"


def test_a_version_that_is_none_is_looked_for_in_the_modules_of_the_project() -> None:
    text = "[project]\nname = 'my-shop'\nversion = '{{ version }}'\n"
    tree = {
        "pyproject.toml": text,
        "aaa/__init__.py": "__version__ = '1'",
        "lib/my_shop/_version.py": "__version__: str = '3'",
        "my_shop/__init__.py": "import x\n__version__ = '2'",
        "tests/helpers/version.py": "version = '4'",
    }
    assert python_project(project_files(tree)).version == "2"
    del tree["my_shop/__init__.py"]
    assert python_project(project_files(tree)).version == "3"
    assert python_project(project_files({"pyproject.toml": text})).version == ""


ADDED = """
import sys
needs, more = [], ["never"]
needs = ["a"]
try:
    needs.append("b")
except ImportError:
    needs.append("c")
else:
    needs.append("d")
finally:
    needs.append("e")
if False:
    needs.append("f")
else:
    needs.extend(["g"])
if sys.platform == "win32":
    needs.append("h")
needs.insert(0, "i")
setup(install_requires=needs, tests_require=("t",), extras_require={"x": more, 3: ["y"], "z": {"u"}})
"""


def test_each_way_to_add_to_a_list_is_read_in_its_order() -> None:
    project = python_project(project_files({"setup.py": ADDED}))
    assert project.dependencies == ["a", "b", "c", "d", "e", "f", "g"]
    assert (project.tests_require, project.groups) == (["t"], {"x": [], "z": ["u"]})


POETRY = """
[tool.poetry]
name = "shop"
version = "1"
classifiers = ["Programming Language :: Python :: 3.9"]
packages = [{include = "shop", from = "lib/"}, {include = "other"}]
[tool.poetry.dependencies]
python = ">=3.8"
attrs = "^20"
[tool.poetry.group.lint.dependencies]
ruff = "*"
[tool.poetry.scripts]
shop = "shop.cli:main"
[tool.poetry.plugins."shop.plugins"]
one = "shop.one"
[tool.setuptools.packages.find]
where = ["src"]
[tool.setuptools.package-dir]
"" = "/py/"
[tool.flit.module]
src = "flit"
"""


def test_what_poetry_and_build_tools_say_is_read() -> None:
    project = toml(POETRY)
    assert (project.name, project.version, project.requires_python) == ("shop", "1", ">=3.8")
    assert (project.pythons, project.dependencies) == (("3.9",), ["attrs>=20,<21"])
    assert project.groups == {"lint": ["ruff"]}
    assert project.entry_points == {
        "console_scripts": {"shop": "shop.cli:main"},
        "shop.plugins": {"one": "shop.one"},
    }
    assert project.roots == ["lib", "src", "py", "flit"]
    assert project.sources["requires_python"] == "pyproject.toml [tool.poetry] dependencies.python"


def test_entry_points_of_a_setup_script_may_be_one_text() -> None:
    text = "setup(name='x', entry_points='''\n[console_scripts]\nRun = x:main\n[bad name]\na = b\n''')"
    assert python_project(project_files({"setup.py": text})).entry_points == {
        "console_scripts": {"run": "x:main"}
    }
    broken = python_project(project_files({"setup.py": "setup(entry_points='no', package_dir={'': 'lib'})"}))
    assert (broken.entry_points, broken.roots) == ({}, [])
