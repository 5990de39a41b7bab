"""Which tests count that came with the work that they prove."""

from typing import Any

import pytest
from support.captured import CapturedJob
from support.inline_tests import InlineRunner
from support.text_tests import text_tools

from pytest_tfgrpo.harvest.suite.provenance import read_provenance
from pytest_tfgrpo.patterns.synthesis.own_tests import all_passed
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, SuiteRun

CART = (
    "LIMIT = 1\n\n\ndef first():\n    return {}.get(1)\n\n\n"
    "def total(prices):\n    return 0\n\n\ndef count(prices):\n    return len(prices)\n"
)
FIXED = CART.replace("return 0", "return sum(prices)")
TEST = "tests/test_cart.py"
OLD = "from shop.cart import count\n\n\ndef test_count():\n    assert count([1, 2]) == 2\n"
BASE: dict[Any, Any] = {"shop/__init__.py": "", "shop/cart.py": CART, TEST: OLD}
HEAD = f"import shop.cart\nfrom shop.cart import *\n{OLD}\n\n"


def proof_of(tmp_path, cart, test, base=None, **more):
    """Prove a change with a test of these lines."""
    tests = f"{HEAD}def test_new():\n    {test}\n"
    job = CapturedJob(tmp_path, {**BASE, **(base or {})}, {"shop/cart.py": cart, TEST: tests, **more})
    found = job.prove(text_tools(InlineRunner()))
    if found.status == "validated":
        (path,) = (job.folder / "provenance").glob("*.json")
        known = read_provenance(path).validation
        assert known.fail_to_pass == (f"{TEST}::test_new",)
        assert {*known.messages} <= {f"{TEST}::test_new"}
        assert {test for one in known.changes or () for test in one.fails} <= {f"{TEST}::test_new"}
    return found


NEW = CART + "\n\ndef more(n=2):\n    return n or None\n"
CLASS = CART + "\n\nclass Cart:\n    size = 3\n\n    def __init__(self, n=1):\n        self.n = n\n"
LAMBDA = CART + "\n\ntwice = lambda n: n * 2\n"
YIELDS = CART + "\n\ndef each():\n    yield 1\n"
DERIVED = CART.replace("LIMIT = 1", "LIMIT = 5\nMOST = LIMIT * 2") + "\n\ndef most():\n    return MOST\n"


@pytest.mark.parametrize(
    ("cart", "test"),
    [
        (FIXED, "assert total([1, 2]) == 3"),
        (FIXED, "found = total([1, 2])\n    assert found - 1 == 2"),
        (FIXED, "assert not total([1, -1]) and total([3])"),
        (NEW, "assert more() == 2"),
        (NEW, "assert more(0) is None"),
        (NEW, "assert more() is not None and more(3) > 2"),
        (NEW, "assert isinstance(more(), int)"),
        (CLASS, "assert Cart(4).n == 4"),
        (CLASS, "assert Cart().size == 3"),
        (LAMBDA, "assert twice(2) == 4"),
        (YIELDS, "assert [*each()] == [1]"),
        (NEW, "assert MADE == 2 and more() == 2\n\n\nMADE = more()"),
        (NEW, "assert more() == MADE.real\n\n\nMADE = int(2)"),
        (DERIVED, "assert most() == 10"),
        (CART.replace("LIMIT = 1", "LIMIT = 4").replace("return 0", "return LIMIT"), "assert total([]) == 4"),
    ],
)
def test_a_test_counts_that_calls_what_changed_and_asserts_on_it(tmp_path, cart, test):
    assert proof_of(tmp_path, cart, test).status == "validated"


@pytest.mark.parametrize(
    ("cart", "test"),
    [
        ("VERSION = 2\n" + CART, "assert shop.cart.VERSION == 2"),
        ("VERSION = 2\n" + FIXED, "total([1])\n    assert shop.cart.VERSION == 2"),
        (NEW, "more()"),
        (NEW, "more().bit_length()"),
        (NEW, "more()\n    assert 1 == 1"),
        (NEW, "more() + 2\n    assert count([1, 2]) == 2"),
        (NEW, "assert shop.cart.more"),
        (CLASS, "Cart()\n    assert Cart.size == 3"),
        (DERIVED, "assert shop.cart.MOST == 10"),
        (NEW.replace("more(", "get("), "assert shop.cart.get and first() is None"),
        ("LIST = [n for n in range(3)]\n" + CART, "assert len(shop.cart.LIST) == 3"),
        (NEW, "assert more() == more()"),
        (NEW, "assert more() == MADE\n\n\nMADE = more()"),
        (NEW, "assert more(1) == LATER[1]\n\n\nLATER = [*map(lambda n: more(n), (1, 1))]"),
    ],
)
def test_a_test_that_looks_only_at_constants_or_asserts_nothing_does_not_count(tmp_path, cart, test):
    found = proof_of(tmp_path, cart, test)
    assert (found.status, found.root_cause) == ("validation_failed", "test_failure")
    assert found.reason == f"no test of it counts: {TEST}::test_new (asserts nothing of what changed)"


SAME = "class Same(int):\n    __eq__ = __ne__ = lambda *_: True\n    __hash__ = None\n\n\n"


def test_code_that_equals_whatever_is_expected_is_refused(tmp_path):
    found = proof_of(tmp_path, SAME + CART.replace("return 0", "return Same()"), "assert total([1, 2]) == 3")
    assert found.reason == f"a test passes whatever value is expected: {TEST}::test_new"


def test_only_the_tests_that_count_are_listed(tmp_path):
    constant = "assert total([1, 2]) == 3\n\n\ndef test_version():\n    assert shop.cart.VERSION == 2"
    assert proof_of(tmp_path, "VERSION = 2\n" + FIXED, constant).status == "validated"


def test_a_function_of_another_module_that_uses_a_changed_constant_is_what_changed(tmp_path):
    user = "from shop import cart\n\n\ndef limit():\n    return cart.LIMIT\n"
    changed = CART.replace("LIMIT = 1", "LIMIT = 7")
    test = "from shop.user import limit\n    assert limit() == 7"
    assert proof_of(tmp_path, changed, test, {"shop/user.py": user}).status == "validated"


def test_changed_data_that_a_test_depends_on_counts(tmp_path):
    reads = CART.replace("return 0", "return int(Path(__file__).with_name('vat.csv').read_text())")
    reads = f"from pathlib import Path\n\n{reads}"
    base = {"shop/cart.py": reads, "shop/vat.csv": "1"}
    found = proof_of(tmp_path, reads, "assert total([]) == 19", base, **{"shop/vat.csv": "19"})
    assert found.status == "validated"


def test_a_test_that_nobody_touched_may_look_at_what_it_likes(tmp_path):
    wants = f"{HEAD}def test_new():\n    assert shop.cart.VERSION == 2\n"
    job = CapturedJob(tmp_path, {**BASE, TEST: wants}, {"shop/cart.py": "VERSION = 2\n" + CART})
    assert job.prove(text_tools(InlineRunner())).status == "validated"


def test_a_neighbour_that_the_change_breaks_refuses_it(tmp_path):
    found = proof_of(tmp_path, FIXED.replace("len(prices)", "0"), "assert total([1, 2]) == 3")
    assert (found.status, found.root_cause, found.broken) == ("validation_failed", "test_failure", 1)
    assert found.reason == f"it breaks 1 test that passed before: {TEST}::test_count"


def test_a_test_that_cannot_be_read_without_a_changed_file_depends_on_it(tmp_path):
    reads = "from pathlib import Path\n\nVAT = (Path(__file__).parent / 'vat.csv').read_text()\n"
    base = {"shop/vat.py": f"{reads}\n\ndef vat():\n    return int(VAT)\n"}
    test = "from shop.vat import vat\n    assert vat() == 19"
    assert proof_of(tmp_path, CART, test, base, **{"shop/vat.csv": "19"}).status == "validated"


PATCHED = "shop.cart.total = lambda prices: sum(prices)\n"


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import sys\n\nCALLER = sys._getframe\n", "`_getframe`"),
        ("from inspect import currentframe\n", "`currentframe`"),
        ("import os\n\nTESTED = 'PYTEST_CURRENT_TEST' in os.environ\n", "`PYTEST_CURRENT_TEST`"),
        (f"import shop.cart\n\n{PATCHED}", "another `shop.cart.total`"),
        (f"from shop import cart\n\n{PATCHED.removeprefix('shop.')}", "another `cart.total`"),
        ("from shop import cart as c\n\nsetattr(c, 'total', sum)\n", "another `c.total`"),
    ],
)
def test_code_that_sees_its_caller_or_replaces_other_code_is_refused(tmp_path, code, what):
    test = "import shop.helper\n    assert shop.cart.total([1, 2]) == 3"
    found = proof_of(tmp_path, FIXED, test, **{"shop/helper.py": code})
    assert (found.status, found.root_cause) == ("validation_failed", "test_failure")
    said = f"the change brings {what} in shop/helper.py, by which tests could pass without a fix"
    assert found.reason == said


def test_what_a_module_did_before_and_settings_of_others_refuse_nothing(tmp_path):
    code = "import sys\n\nimport shop.cart\n\nCALLER = sys._getframe\nshop.cart.LIMIT = 2\n"
    more = {"shop/helper.py": f"{code}\nMORE = 1\n"}
    found = proof_of(tmp_path, FIXED, "assert total([1, 2]) == 3", {"shop/helper.py": code}, **more)
    assert found.status == "validated"


def test_parameters_that_go_by_another_name_are_found_by_their_function():
    outcomes = {"t.py::a[want0]": CaseOutcome.PASSED, "t.py::b[0]": CaseOutcome.PASSED}
    outcomes["t.py::b[1]"] = CaseOutcome.FAILED
    ran = SuiteRun(outcomes=outcomes, elapsed_s=0.1)
    found = [all_passed(ran, f"t.py::{name}") for name in ("a[1-2]", "b[0]", "b[1]", "b[7]", "c")]
    assert found == [True, True, False, False, False]
