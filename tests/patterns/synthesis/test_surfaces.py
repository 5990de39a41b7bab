"""What can be run of a project without tests."""

import json

import pytest

from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles
from pytest_tfgrpo.patterns.synthesis.surfaces import nearest_surface

SCRIPT = "def main():\n    pass\n\n\nif __name__ == '__main__':\n    main()\n"
PYTHON = {
    "pyproject.toml": "[project]\nname = 'shop'\n[project.scripts]\nshop = 'shop.cli:main'\n",
    "src/shop/cli.py": "def main(): pass\n", "src/shop/cart.py": "", "src/shop/jobs/__main__.py": "",
    "src/shop/jobs/mail.py": "", "tools/worker.py": SCRIPT, "tools/data.py": "", "tests/test_x.py": SCRIPT,
}  # fmt: skip
NODE = {"package.json": json.dumps({"bin": {"shop": "./bin/shop.js"}}), "bin/shop.js": "", "lib/a.js": ""}


@pytest.mark.parametrize(
    ("files", "changed", "command", "source"),
    [
        (PYTHON, "src/shop/cart.py", "shop", "entry point shop = shop.cli:main"),
        (PYTHON, "src/shop/jobs/mail.py", "python -m shop.jobs", "src/shop/jobs/__main__.py"),
        (PYTHON, "tools/worker.py", "python tools/worker.py", "tools/worker.py"),
        (PYTHON, "tools/data.py", "python tools/worker.py", "tools/worker.py"),
        (NODE, "lib/a.js", "node bin/shop.js", "package.json bin shop"),
    ],
)
def test_the_nearest_that_can_be_run_is_found_by_path_and_manifests(files, changed, command, source):
    tree = ProjectFiles(read=lambda path: files[path].encode(), names=frozenset(files))
    found = nearest_surface(tree, [changed])
    assert found is not None
    assert (found.command, found.source) == (command, source)


def test_where_nothing_can_be_run_there_is_none():
    assert nearest_surface(ProjectFiles(read=lambda _: b"x", names=frozenset({"a.py"})), ["a.py"]) is None
