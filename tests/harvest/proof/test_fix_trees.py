"""The three trees of a fix, and which of its modules no check takes from an agent."""

from __future__ import annotations

import pytest

from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees, by_name, left_out_by_checks
from pytest_tfgrpo.sandbox.archives import ArchiveEntry


def tree(**files: str) -> dict[str, ArchiveEntry]:
    """Return a tree by the names of its files, ``__`` for a slash and each with ``.py``."""
    names = {f"{name.replace('__', '/')}.py": text for name, text in files.items()}
    return by_name(ArchiveEntry(name=name, data=text.encode()) for name, text in names.items())


TREES = FixTrees(
    base=tree(a="old", gone="old", tests__a="old", tests__gone="old", both="old"),
    hidden=tree(tests__a="hidden", both="hidden"),
    reference=tree(a="fix", both="fix", new="fix"),
    removed=("gone.py",),
    removed_tests=("tests/gone.py",),
)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        (
            "base",
            {"a.py": "old", "gone.py": "old", "tests/a.py": "old", "tests/gone.py": "old", "both.py": "old"},
        ),
        ("base_with_tests", {"a.py": "old", "gone.py": "old", "tests/a.py": "hidden", "both.py": "hidden"}),
        ("fix", {"a.py": "fix", "tests/a.py": "hidden", "both.py": "hidden", "new.py": "fix"}),
    ],
)
def test_what_is_protected_lies_above_all_and_what_is_removed_is_gone(name, files):
    assert {path: entry.data.decode() for path, entry in TREES.tree(name).items()} == files


def test_the_archives_hold_the_three_parts(tmp_path):
    found = TREES.archives()
    assert len({found.base, found.hidden, found.reference}) == 3
    assert TREES.archives() == found


@pytest.mark.parametrize(
    ("base", "reference", "left_out"),
    [
        ((), ("json.py", "shop.py"), ("json.py",)),
        (("json.py",), ("json.py",), ()),
        ((), ("shop/json.py",), ("shop/json.py",)),
        (("shop/__init__.py",), ("shop/json.py",), ()),
        (("json/a.py",), ("json/b.py",), ()),
        (("json/deep/a.py",), ("json/b.py", "shop/json.pyd", "json.txt"), ("shop/json.pyd",)),
    ],
)
def test_a_new_module_that_stands_in_for_another_is_left_out(base, reference, left_out):
    def made(names):
        return by_name(ArchiveEntry(name=name, data=b"") for name in names)

    trees = FixTrees(base=made(base), hidden={}, reference=made(reference))
    assert left_out_by_checks(trees, None) == left_out
