"""Agents that cheat at hidden tests: none scores."""

from pathlib import Path

import pytest
from support.cheats import FILES, RUNTIME
from support.fixes import SOLVED, SmallFix
from support.tools import require_tool


@pytest.fixture
def fix(tmp_path: Path) -> SmallFix:
    require_tool("bwrap")
    return SmallFix(folder=tmp_path)


SAMPLE = 6


@pytest.mark.faults
def test_a_module_that_cheats_scores_nothing(tmp_path, campaign):
    require_tool("bwrap")
    for number, cheat in enumerate(campaign.sample(sorted(RUNTIME), SAMPLE)):
        fix = SmallFix(folder=tmp_path / str(number))
        assert fix.attempt({"shop/cart.py": RUNTIME[cheat]}).credit == 0, cheat


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
