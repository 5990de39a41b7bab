"""The check kind ``tests``: hidden tests on a fresh copy of what an agent made."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.fixes import BASE, HIDDEN, NODES, PASS_TO_PASS, SOLVED, SmallFix
from support.tools import require_tool

HALF = SOLVED.replace("sum(prices)", "3 if prices else 1")


@pytest.fixture
def fix(tmp_path: Path) -> SmallFix:
    return SmallFix(folder=tmp_path / "suite")


@pytest.fixture
def isolated(fix: SmallFix) -> SmallFix:
    require_tool("bwrap")
    return fix


def test_the_fix_has_full_credit_and_the_base_none(isolated, tmp_path):
    assert isolated.attempt({"shop/cart.py": SOLVED}).credit == 1
    nothing = SmallFix(folder=tmp_path / "second").attempt({})
    assert nothing.credit == 0
    assert "2 of 2 tests of the fix do not pass: tests/test_cart.py::test_total, " in nothing.reason


@pytest.mark.parametrize(("credit", "share"), [("all", 0.0), ("share", 0.5)])
def test_half_a_fix_has_its_share_where_shares_are_given(isolated, credit, share):
    result = isolated.attempt({"shop/cart.py": HALF}, credit=credit)
    assert result.credit == share
    assert "1 of 2 tests of the fix do not pass: tests/test_cart.py::test_total_of_nothing" in result.reason


def test_tests_that_a_report_names_by_modules_run_from_their_files(isolated):
    run = [sys.executable, "-m", "pytest", "-p", "no:tfgrpo", "--junitxml={report}", "{tests}"]
    named = {"fail_to_pass": ["tests.test_cart::test_total"], "pass_to_pass": ["tests.test_cart::test_count"]}
    found = isolated.attempt({"shop/cart.py": SOLVED}, runner={"name": "command", "run": run}, **named)
    assert (found.credit, found.reason) == (1, "")


def test_a_share_needs_all_that_passed_before(isolated):
    broken = SOLVED.replace("len(prices)", "0")
    result = isolated.attempt({"shop/cart.py": broken}, credit="share")
    assert result.credit == 0
    assert result.reason.startswith("1 tests do not pass any more: tests/test_cart.py::test_count (assert 0")


def test_hidden_tests_see_nothing_of_the_suite(isolated):
    look = f"import os; return sum(prices) * os.path.exists({str(isolated.folder / 'archives')!r})"
    looking = BASE["shop/cart.py"].replace("return 0", look)
    assert isolated.attempt({"shop/cart.py": looking}).credit == 0


def test_without_isolation_the_same_tests_run(fix):
    assert fix.attempt({"shop/cart.py": SOLVED}, sandbox="none").credit == 1


def test_the_agents_own_folder_stays_as_it_is(isolated, tmp_path):
    isolated.attempt({"shop/cart.py": SOLVED, "notes.txt": "x", "tests/test_cart.py": "x"})
    left = isolated.folder / "workspace"
    names = {str(path.relative_to(left)) for path in left.rglob("*") if path.is_file()}
    assert names == {*BASE, "notes.txt"}
    assert (left / "tests" / "test_cart.py").read_text() == "x"


def test_what_a_fix_removes_of_its_tests_is_gone(tmp_path):
    base = {**BASE, "tests/old.txt": "x", "tests/data/a.txt": "x", "tests/data/b/c.txt": "x"}
    fix = SmallFix(folder=tmp_path, base=base)
    finds = "import pathlib\n\n\ndef test_total():\n    here = pathlib.Path(__file__).parent\n"
    finds += "    assert not (here / 'old.txt').exists() and not (here / 'data').exists()\n"
    fix = replace(fix, hidden={"tests/test_cart.py": finds})
    lists = {"fail_to_pass": ["tests/test_cart.py::test_total"], "pass_to_pass": []}
    found = fix.attempt({}, removed=["tests/old.txt", "tests/data"], **lists)
    assert found.credit == 1, found.reason


def test_the_tests_listed_are_those_that_run(isolated):
    hidden = {**HIDDEN, "tests/test_other.py": "import time\ntime.sleep(600)\n"}
    fix = SmallFix(folder=isolated.folder / "other", hidden=hidden)
    assert fix.attempt({"shop/cart.py": SOLVED}).credit == 1
    missing = SmallFix(folder=isolated.folder / "missing")
    result = missing.attempt({"shop/cart.py": SOLVED}, pass_to_pass=[*PASS_TO_PASS, NODES + "test_none"])
    assert "test_none (was not run)" in result.reason
