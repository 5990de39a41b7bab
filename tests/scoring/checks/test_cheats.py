"""Agents that cheat at hidden tests: none scores."""

import pytest
from support.cheats import FILES
from support.fixes import BASE, HIDDEN, SmallFix

from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.scoring.checks.hidden.fresh_tree import make_tree, read_base


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
