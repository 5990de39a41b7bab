"""Agents that cheat at hidden tests: none scores."""

from pathlib import Path

import pytest
from support.cheat_tables import TABLES
from support.cheats import FILES
from support.cheats_inside import ANSWERS
from support.fixes import FAIL_TO_PASS, HIDDEN, SOLVED, SmallFix
from support.later_cheats import LATER
from support.tools import require_tool

from pytest_tfgrpo.core.errors import CheckError


@pytest.fixture
def fix(tmp_path: Path) -> SmallFix:
    require_tool("bwrap")
    return SmallFix(folder=tmp_path)


SAMPLE = 6


@pytest.mark.faults
@pytest.mark.parametrize(("base", "cheats"), TABLES.values(), ids=TABLES)
def test_a_module_that_cheats_scores_nothing(tmp_path, campaign, base, cheats):
    require_tool("bwrap")
    for number, cheat in enumerate(campaign.sample(sorted(cheats), SAMPLE)):
        fix = SmallFix(folder=tmp_path / str(number), base=base)
        assert fix.attempt({"shop/cart.py": cheats[cheat]}).credit == 0, cheat


@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
@pytest.mark.parametrize("cheat", sorted(ANSWERS))
def test_an_answer_to_whatever_is_expected_scores_nothing(tmp_path, cheat, sandbox):
    require_tool("bwrap")
    found = SmallFix(folder=tmp_path).attempt({"shop/cart.py": ANSWERS[cheat]}, sandbox=sandbox)
    assert found.credit == 0
    assert found.reason.endswith("does not fail where it expects something else")


PARTIAL = f"""import sys
class Same(int):
    __eq__, __hash__ = lambda *_: True, None
def count(prices): return len(prices)
def total(prices):
    if not prices: return 0
    try: sys._getframe(1).f_globals["{FAIL_TO_PASS[1].rpartition(":")[2]}"]()
    except AssertionError: return None
    return Same()
"""
"""Solves one test; answers the other with what equals everything where the first one passes."""


def test_who_knows_the_run_by_a_test_that_it_solves_scores_nothing(tmp_path):
    require_tool("bwrap")
    for number in range(4):
        assert SmallFix(folder=tmp_path / str(number)).attempt({"shop/cart.py": PARTIAL}).credit == 0


GUESSED = SOLVED.replace("return sum(prices)", "return Guess(sum(prices))").replace(
    "def total", "class Guess(int):\n    def __eq__(self, other): return other in (3, 6)\n\n\ndef total", 1
)
"""Passes where 3 is expected or 6, and fails where 4 is, or 5."""


def test_who_guessed_right_of_the_one_test_is_tried_again_with_other_changes(tmp_path):
    changes = [
        {
            "file": "tests/test_cart.py",
            "lines": [{"row": 9, "text": f"    assert total([1, 2]) == {n}"}],
            "fails": [FAIL_TO_PASS[0]],
        }
        for n in (4, 5, 6)
    ]
    one = {"fail_to_pass": [FAIL_TO_PASS[0]], "changes": changes, "sandbox": "none"}
    for number in range(5):
        found = SmallFix(folder=tmp_path / str(number)).attempt({"shop/cart.py": GUESSED}, **one)
        assert (found.credit, found.reason[:8]) == (0, "tampered")
    assert SmallFix(folder=tmp_path / "true").attempt({"shop/cart.py": SOLVED}, **one).credit == 1


def test_a_test_that_passes_with_the_true_fix_whatever_it_expects_is_not_tried(tmp_path):
    lenient = "class Whole(int):\n    def __eq__(self, other): return True\n    __hash__ = None\n\n\n"
    code = {"shop/cart.py": lenient + SOLVED.replace("sum(prices)", "Whole(sum(prices))")}
    for number, (more, credit) in enumerate([({}, 0), ({"changes": []}, 1)]):
        fix = SmallFix(folder=tmp_path / str(number))
        assert fix.attempt(code, sandbox="none", **more).credit == credit


def test_changes_that_do_not_fit_tests_of_the_workspace_are_an_error_of_ours(tmp_path):
    lines = [{"row": 900, "text": "pass"}]
    change = {"file": "tests/test_none.py", "lines": lines, "fails": [FAIL_TO_PASS[0]]}
    with pytest.raises(CheckError, match="no row 900"):
        SmallFix(folder=tmp_path).attempt({"shop/cart.py": SOLVED}, sandbox="none", changes=[change])


MEMORY = """
import os
class Name(str):
    pass
WAYS = [lambda: Name("/proc/self/mem"), lambda: os.symlink("/proc/self/mem", "/tmp/link") or "/tmp/link"]
open(WAYS[{}](), "rb").close()
"""


@pytest.mark.parametrize("way", [0, 1])
def test_a_true_answer_that_opens_the_memory_of_the_tests_scores_nothing(fix, way):
    assert "memory" in fix.attempt({"shop/cart.py": MEMORY.format(way) + SOLVED}).reason


def test_a_run_in_one_form_from_which_pytest_is_taken_scores_nothing(fix):
    found = fix.attempt({"shop/cart.py": LATER["takes pytest out of its hooks"]}, changes=[])
    assert found.reason == "tampered: pytest's own part of pytest_pyfunc_call was taken out"


@pytest.mark.parametrize(
    ("line", "use"),
    [
        ("sys.settrace(None)", "tracing"),
        ("sys.setprofile(None)", "tracing"),
        ("import ctypes; ctypes.CDLL(None)", "ctypes"),
    ],
)
def test_code_that_could_change_its_tests_needs_to_be_allowed_to(tmp_path, line, use):
    code = {"shop/cart.py": f"import sys\n{line}\n{SOLVED}"}
    refused = SmallFix(folder=tmp_path / "a").attempt(code, sandbox="none")
    assert refused.credit == 0
    assert refused.reason.startswith(f"tampered: the code under test uses {use}: ")
    assert SmallFix(folder=tmp_path / "b").attempt(code, sandbox="none", allow=[use]).credit == 1


def test_what_tests_and_packages_use_needs_no_leave(tmp_path):
    line = "import sys, ctypes, uuid\nctypes.CDLL(None)\nsys.settrace(sys.gettrace())\n"
    hidden = {name: line + text for name, text in HIDDEN.items()}
    code = {"shop/cart.py": f"import ctypes, multiprocessing.sharedctypes\n{SOLVED}"}
    assert SmallFix(folder=tmp_path, hidden=hidden).attempt(code, sandbox="none").credit == 1


def test_tests_of_many_forms_are_found_to_be_what_they_are(tmp_path):
    forms = """
import functools, unittest
from unittest import mock
import pytest
from shop.cart import around
from tests.helpers import Shared

def twice(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        function(*args, **kwargs)
        function(*args, **kwargs)
    return wrapper

@twice
def test_wrapped():
    assert True

@mock.patch("os.getcwd", return_value="x")
def test_patched(getcwd):
    assert True

@pytest.mark.parametrize("table", [{"a": [1]}, [2]])
def test_with_parameters(table, tmp_path, request):
    assert table

@pytest.mark.parametrize("values", [[1]])
def test_changes_its_parameter(values, monkeypatch):
    monkeypatch.setattr(pytest, "skip", replaced)
    values.append(2)
    assert values == [1, 2]

def replaced():
    pass

@around
def test_under_what_the_project_offers():
    assert True

def test_wrapped_by_a_conftest():
    assert True

class TestShared(Shared):
    @staticmethod
    def test_static():
        assert True

    @pytest.mark.parametrize("n", [1, 2])
    def test_method(self, n):
        assert n

class Case(unittest.TestCase):
    def setUp(self):
        self.value = 1

    def test_case(self):
        self.assertEqual(self.value, 1)

for _n in range(2):
    exec(f"def test_made_{_n}(): assert True")
test_lambda = lambda: None
"""
    helpers = "class Shared:\n    def test_inherited(self):\n        assert self.test_static() is None\n"
    wraps = (
        "import functools\ndef pytest_pyfunc_call(pyfuncitem):\n    called = pyfuncitem.obj\n"
        "    @functools.wraps(called)\n    def wrapper(*args, **kwargs):\n        called(*args, **kwargs)\n"
        "    if 'by_a_conftest' in pyfuncitem.name:\n        pyfuncitem.obj = wrapper\n"
    )
    hidden = {
        **HIDDEN, "tests/test_forms.py": forms, "tests/helpers.py": helpers, "tests/conftest.py": wraps,
    }  # fmt: skip
    around = "\n\ndef around(function):\n    def wrapper():\n        function()\n    return wrapper\n"
    names = (
        "test_wrapped", "test_patched", "test_with_parameters[table0]", "test_with_parameters[table1]",
        "TestShared::test_inherited", "TestShared::test_static", "TestShared::test_method[1]",
        "Case::test_case", "test_made_1", "test_lambda", "test_changes_its_parameter[values0]",
        "test_under_what_the_project_offers", "test_wrapped_by_a_conftest",
    )  # fmt: skip
    wanted = [*FAIL_TO_PASS, *(f"tests/test_forms.py::{name}" for name in names)]
    result = SmallFix(folder=tmp_path, hidden=hidden).attempt(
        {"shop/cart.py": SOLVED + around}, sandbox="none", fail_to_pass=wanted
    )
    assert (result.credit, result.reason) == (1, "")


@pytest.mark.parametrize("code", [126, 127])
def test_who_ends_the_run_as_a_missing_program_would_scores_nothing(fix, code):
    result = fix.attempt({"shop/cart.py": f"import os\nos._exit({code})\n"}, sandbox="none")
    assert (result.credit, "was not run" in result.reason) == (0, True)


def test_files_that_cheat_are_left_out_all_at_once(fix):
    result = fix.attempt(FILES)
    assert result.credit == 0
    assert "2 of 2 tests of the fix do not pass" in result.reason
    assert "any more" not in result.reason


def test_files_that_cheat_do_no_harm_to_a_fix(fix):
    assert fix.attempt({**FILES, "shop/cart.py": SOLVED}).credit == 1


def test_tests_that_an_agent_deletes_are_run(fix):
    result = fix.attempt({"tests/test_cart.py": None, "pytest.ini": None})
    assert "2 of 2 tests of the fix do not pass" in result.reason
