"""Code that asks who calls it or replaces other code: what a change newly brings of it."""

from __future__ import annotations

import pytest

from pytest_tfgrpo.patterns.synthesis.told_apart import told_apart

CALLERS = (
    *("_getframe", "_getframemodulename", "_current_frames", "currentframe", "f_back"),
    *("getouterframes", "extract_stack", "format_stack", "walk_stack"),
)
TESTED = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "_pytest")

CART = b"def total(prices):\n    return 0\n\n\nclass Cart:\n    pass\n"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        *((f"import sys\nx = sys.{name}\n", [f"`{name}`"]) for name in CALLERS),
        *((f"import os\nx = {name!r} in os.environ\n", [f"`{name}`"]) for name in TESTED),
        ("from inspect import currentframe as f\n", ["`currentframe`"]),
        ("import shop.cart\nshop.cart.total = max\n", ["another `shop.cart.total`"]),
        ("import shop.cart as c\nc.total = max\n", ["another `c.total`"]),
        ("from shop import cart\nsetattr(cart, 'total', max)\n", ["another `cart.total`"]),
        ("from shop.cart import Cart as C\nC.total = max\n", ["another `C.total`"]),
        ("from shop import cart\ncart.size = 3\nsetattr(cart, name, 1)\nsetattr(cart)\n", []),
        ("from shop import cart\ngetattr(cart, 'total')\ncart.setattr(cart, 'total')\n", []),
        ("class cart: pass\ncart.total = max\n", []),
        ("import numpy\nnumpy.total = 3\n", []),
        ("def f(:\n", []),
        ("x = 'a text of PYTEST_VERSION in words'\n", []),
    ],
)
def test_what_a_change_brings_is_named_with_its_file(code: str, found: list[str]) -> None:
    before = {"shop/cart.py": CART, "a.py": b"x = 1\n"}
    after = {**before, "a.py": code.encode()}
    assert told_apart(before, after, ["a.py"]) == tuple(f"{one} in a.py" for one in found)
    assert told_apart({**before, "a.py": code.encode()}, after, ["a.py"]) == ()
    assert told_apart(before, after, ["shop/cart.py", "a.txt", "gone.py"]) == ()


def test_each_thing_is_named_once_a_file_in_the_order_of_the_files() -> None:
    code = b"import sys\nsys._getframe(1)\nsys._getframe(2).f_back\n"
    found = told_apart({}, {"b.py": code, "a.py": code, "c.js": code}, ["b.py", "a.py", "c.js"])
    assert [one.rpartition(" ")[2] for one in found] == ["b.py", "b.py", "a.py", "a.py"]
    assert {one.partition(" ")[0] for one in found} == {"`_getframe`", "`f_back`"}
