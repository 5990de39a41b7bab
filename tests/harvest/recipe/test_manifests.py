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
    text = "from setuptools import setup\nsetup(name='shop', version='2', **more)\n"
    project = found(setup_py=text)
    assert (project.name, project.version) == ("shop", "2")


def test_the_head_of_a_source_distribution_is_read_and_its_description_is_not() -> None:
    text = (
        "Metadata-Version: 2.1\nName: shop\nVERSION: 1.5\nSummary: x\n  Name: folded\nno colon\n"
        "Classifier: Programming Language :: Python :: 3.10\nRequires-Python: >=3.9\n\nVersion: 9\n"
    )
    project = found(pkg_info=text)
    assert (project.name, project.version, project.requires_python) == ("shop", "1.5", ">=3.9")
    assert project.pythons == ("3.10",)
