"""Agents that cheat at hidden tests: none scores."""

from pathlib import Path

import pytest
from support.cheats import FILES, RUNTIME
from support.fixes import BASE, HIDDEN, SOLVED, SmallFix
from support.tools import require_tool

from pytest_tfgrpo.harness.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.harness.scoring.checks.fresh_tree import make_tree, read_base


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


@pytest.mark.parametrize("name", [name for name in FILES if name != "report.xml"])
def test_a_file_that_cheats_does_not_reach_the_tests(tmp_path, name):
    scenario = SmallFix(folder=tmp_path).scenario()
    assert scenario.workspace is not None
    left, tree = tmp_path / "left", tmp_path / "tree"
    for file, text in (*BASE.items(), (name, FILES[name])):
        (left / file).parent.mkdir(parents=True, exist_ok=True)
        (left / file).write_text(text)
    tree.mkdir()
    hidden = [ArchiveEntry(name=file, data=text.encode()) for file, text in HIDDEN.items()]
    make_tree(left, tree, base=read_base(scenario.workspace, ()), hidden=hidden)
    found = {str(path.relative_to(tree)): path.read_text() for path in tree.rglob("*") if path.is_file()}
    assert found == {**BASE, **HIDDEN}


def test_tests_that_an_agent_deletes_are_run(fix):
    result = fix.attempt({"tests/test_cart.py": None, "pytest.ini": None})
    assert "2 of 2 tests of the fix do not pass" in result.reason
