"""Undeclared imports, which pytest's own interpreter may have by luck."""

import pytest
from support.project_trees import project_files, recipe

from pytest_tfgrpo.harvest.recipe.undeclared import undeclared_import


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import os, shop.cart, sys as s\nfrom . import x\nfrom .y import z", ""),
        ("import json\nimport os.path, numpy.linalg as la", "numpy"),
        ("def f():\n    from attr.validators import x", "attr"),
        ("try:\n    from StringIO import StringIO\nexcept ImportError:\n    from io import StringIO", ""),
        ("import pytest\nfrom _pytest import x\nyaml = pytest.importorskip('yaml')", "yaml"),
        ("text = 'it may import numpy'  # import numpy", ""),
        ("import helper", ""),
        ("import", ""),
    ],
)
def test_the_first_import_that_nobody_has_is_found(text, found):
    tree = {"shop/cart.py": text, "tests/helper.py": "", "setup.py": "import numpy", "docs/a.py": "import x"}
    tree |= {"README.md": "import numpy", "shop/data.txt": "import pandas"}
    tree |= {f"{folder}/run.py": "import x" for folder in ("scripts", "examples", "tools", "benchmarks")}
    assert undeclared_import(project_files(tree)) == found


def test_a_project_that_needs_pytest_alone_but_imports_more_has_an_environment_of_its_own():
    (alone,) = recipe({"shop.py": "import json"})
    strict, relaxed = recipe({"shop.py": "import numpy"})
    assert (alone.python, strict.python, relaxed.python) == (None, "3.10", "3.10")
    assert strict.dependencies == ("pytest",)
