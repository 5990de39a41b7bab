"""The check kind ``tests``: hidden tests on a fresh copy of what an agent made."""

from pathlib import Path

import pytest
from support.fixes import SOLVED, SmallFix
from support.tools import require_tool


@pytest.fixture
def fix(tmp_path: Path) -> SmallFix:
    require_tool("bwrap")
    return SmallFix(folder=tmp_path)


def test_the_fix_has_full_credit_and_the_base_none(fix, tmp_path):
    assert fix.attempt({"shop/cart.py": SOLVED}).credit == 1
    nothing = SmallFix(folder=tmp_path / "second").attempt({})
    assert nothing.credit == 0
    assert "2 of 2 tests of the fix do not pass: tests/test_cart.py::test_total, " in nothing.reason
