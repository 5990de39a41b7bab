"""Which tests a validation runs: the changed ones, and those of the touched packages."""

import pytest

from pytest_tfgrpo.harvest.proof.tests_to_run import MOST, files_to_run, nearest_tests

TREE = (
    *("shop/cart.py", "shop/tests/test_cart.py", "shop/tests/test_tax.py", "shop/tests/data.py"),
    *("web/page.py", "web/tests/test_page.py", "tests/test_all.py", "tests/slow/test_cart.py"),
    *("tests/slow/test_page.py", "tests/deep/cart_test.py", "setup.py"),
)


@pytest.mark.parametrize(
    ("changed", "sources", "expected"),
    [
        (("tests/test_all.py",), ("setup.py",), ("tests/test_all.py",)),
        (("shop/tests/test_tax.py",), ("x.py",), ("shop/tests/test_cart.py", "shop/tests/test_tax.py")),
        (
            ("tests/test_all.py",),
            ("shop/cart.py",),
            (
                *("shop/tests/test_cart.py", "shop/tests/test_tax.py", "tests/deep/cart_test.py"),
                *("tests/slow/test_cart.py", "tests/test_all.py"),
            ),
        ),
        (("tests/gone.py",), (), ()),
    ],
)
def test_the_tests_of_touched_packages_run_beside_the_changed_ones(changed, sources, expected):
    assert files_to_run(changed, sources, TREE, (), ".") == expected


def test_tests_outside_the_folder_of_the_recipe_do_not_run():
    tree = (*TREE, "shopping/test_cart.py")
    assert files_to_run(("shop/tests/test_tax.py",), ("shop/cart.py",), tree, (), "shop") == (
        "shop/tests/test_cart.py",
        "shop/tests/test_tax.py",
    )


def test_what_runs_is_bounded_and_the_changed_ones_are_always_of_it():
    tree = [f"tests/test_{n:05}.py" for n in range(10_000)]
    found = files_to_run((tree[-1],), (), tree, (), ".")
    assert len(found) == MOST + 1 == 201
    assert tree[-1] in found


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("shop/tests/data.py", ("shop/tests/test_cart.py", "shop/tests/test_tax.py")),
        ("tests/slow/__init__.py", ("tests/slow/test_cart.py", "tests/slow/test_page.py")),
        ("web/tests/data/x.json", ("web/tests/test_page.py",)),
        ("tests/gone.json", ()),
    ],
)
def test_the_nearest_tests_a_changed_file_of_tests_are_those_that_need_it(changed, expected):
    tree = (*TREE, "tests/slow/__init__.py", "web/tests/data/x.json")
    assert nearest_tests((changed,), tree, ()) == expected


def test_the_tests_of_each_changed_file_are_those_that_need_them():
    tree = (*TREE, "web/tests/data/x.json")
    assert nearest_tests(("shop/tests/data.py", "web/tests/data/x.json"), tree, ()) == (
        *("shop/tests/test_cart.py", "shop/tests/test_tax.py", "web/tests/test_page.py"),
    )
    many = ["tests/data.json", *(f"tests/test_{n:05}.py" for n in range(MOST + 9))]
    assert nearest_tests(many[:1], many, ()) == tuple(many[1 : MOST + 1])


@pytest.mark.parametrize(
    "test", ["cart.spec.js", "cart-spec.js", "cart_spec.rb", "cart-test.js", "cart_tests.py", "CART.test.ts"]
)
def test_a_test_is_named_after_a_source_in_whatever_form(test):
    tree = (f"checks/{test}", "checks/other.spec.js", "checks/carts.spec.js")
    assert files_to_run((), ("lib/cart.js",), tree, ("checks/*",), ".") == (f"checks/{test}",)


@pytest.mark.parametrize("source", ["lib/Cart.ts", "lib/_cart.py", "lib/CART.py"])
def test_a_test_is_named_after_a_source_in_whatever_case(source):
    assert files_to_run((), (source,), TREE, (), ".") == (
        "shop/tests/test_cart.py",
        "tests/deep/cart_test.py",
        "tests/slow/test_cart.py",
    )
