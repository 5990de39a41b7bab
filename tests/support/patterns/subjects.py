"""Proven changes to write patterns of."""

from __future__ import annotations

from typing import Any

from pytest_tfgrpo.patterns.authoring.subject import FixedTest, PatternSubject
from support.patterns.shelves import make_evidence

DIFF = "\n".join(
    [
        "diff --git a/shop/cart.py b/shop/cart.py",
        "index 1111111..2222222 100644",
        "--- a/shop/cart.py",
        "+++ b/shop/cart.py",
        "@@ -10,9 +10,12 @@ class Cart:",
        '     """A cart."""',
        " ",
        "     def total(self):",
        "-        total = 0",
        "-        for item in self.items:",
        "-            total += item.price",
        "-        return total",
        "+        counted = set()",
        "+        total = 0",
        "+        for item in self.items:",
        "+            if item.id not in counted:",
        "+                total += item.price",
        "+                counted.add(item.id)",
        "+        return total",
        " ",
        "     def empty(self):",
        "         self.items = []",
        "diff --git a/tests/test_cart.py b/tests/test_cart.py",
        "--- a/tests/test_cart.py",
        "+++ b/tests/test_cart.py",
        "@@ -1,2 +1,4 @@",
        " def test_empty():",
        "     assert True",
        "+def test_total_counts_each_item_once():",
        "+    assert cart().total() == 2",
        "",
    ]
)


def make_subject(**changes: Any) -> PatternSubject:
    """Return a fix of a cart's total."""
    known: dict[str, Any] = {
        "prompt": "# Bug\n\nThe total of a cart counts an item twice. Fix it, please.\n",
        "diff": DIFF,
        "domain": "shop",
        "evidence": make_evidence(),
        "tests": (
            FixedTest(id="tests/test_cart.py::test_total_counts_each_item_once", message="assert 4 == 2"),
        ),
    }
    return PatternSubject(**{**known, **changes})
