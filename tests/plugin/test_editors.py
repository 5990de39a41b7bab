"""Editors: they draw the tree of tests from the paths of nodes, and run tests by path and name."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.project import Project, item_names

ADDED = """
from dataclasses import replace

def pytest_tfgrpo_scenarios(scenarios):
    one = next(s for s in scenarios if s.id == "eval0")
    return [*scenarios, replace(one, id="added", prompt="How many words has 'x y z'?")]
"""
MARKED = """
@pytest.mark.parametrize("n", range(2))
@pytest.mark.tfgrpo(domain="text", split="eval", prompt="How many words has 'a b {n}'?")
def test_it(rollout, n):
    assert rollout.answer == "3"

class TestOther:
    class TestInner:
        def test_inner(self):
            pass
"""
DEEPEST = 100
"""Folders above a file after which the editor takes its walk for endless, and shows no test at all."""


class Explorer:
    """The tree of tests as the pytest plugin of the Python extension of VS Code makes it.

    Each item belongs to the file of its parent, or to that of its outermost class. Each file is nested in the
    folders above it, up to that of the session; where a file lies elsewhere, to the folder that both share.
    """

    def __init__(self) -> None:
        self.ids: dict[Path, list[str]] = {}
        """What an editor runs the tests by, by file."""
        self.folders: set[Path] = set()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        for item in session.items:
            rest = item.nodeid.split("::")[1:]
            if hasattr(item, "callspec"):
                _, outside = item.nodeid.rsplit("::", 1)[0].rsplit(".py", 1)  # of a parametrized function
                assert item.originalname + item.name[item.name.index("[") :] == item.name, outside
            parent = item.parent
            while isinstance(parent, pytest.Class):
                parent = parent.parent
            assert parent is not None
            self.ids.setdefault(parent.path, []).append("::".join([str(item.path), *rest]))
        top = session.path
        for file in self.ids:
            if not file.is_relative_to(top):
                top = Path(os.path.commonpath([file, top]))
            self._nest(file, top)

    def _nest(self, file: Path, top: Path) -> None:
        folder, steps = file.parent, 0
        while folder != top:
            self.folders.add(folder)
            folder, steps = folder.parent, steps + 1
            assert steps <= DEEPEST, f"{file} is endlessly far from {top}"


def explored(project: Project, *args: str) -> dict[str, list[str]]:
    """Return what an editor shows: by file, relative to the root, the ids of its tests."""
    explorer = Explorer()
    result = project.pytester.inline_run(
        "-p", "no:cacheprovider", "--collect-only", *args, plugins=[explorer]
    )
    assert result.ret == 0
    return {
        os.path.relpath(file, project.root): [one.partition("::")[2] for one in ids]
        for file, ids in explorer.ids.items()
    }


@pytest.fixture
def gated(project: Project) -> Project:
    """Return a project with everything that makes items, below folders, and with gates."""
    project.tasks(name="deep/er/suite", train=1, eval=1).checker(MARKED).conftest(ADDED)
    project.tasks("more-{split}{n}", "How many words has {split} {n} more, a b c?", "more", train=1, eval=1)
    project.write("gates.yaml", "gates: {smoke: {min_mean: 0.5}}")
    return project.ini(actor="python:agent:right", gates="gates.yaml", gate_min_mean=0.5, group_size=2)


PLAIN = {
    "deep/er/suite.scenario.json": ["eval0"],
    "more.scenario.json": ["more-eval0"],
    "test_agent.py": [
        "TestOther::TestInner::test_inner",
        "test_it[0-tfgrpo-eval-r0]",
        "test_it[1-tfgrpo-eval-r0]",
    ],
}
OF_THE_RUN = ["added", "gate[smoke]", "gate"]


def test_the_tree_has_every_item_below_a_file(gated: Project) -> None:
    assert explored(gated) == PLAIN | {"pytest.ini": OF_THE_RUN}
    learned = explored(gated, "--tfgrpo")
    assert {file: len(names) for file, names in learned.items()} == {
        "deep/er/suite.scenario.json": 4,
        "more.scenario.json": 4,
        "test_agent.py": 1 + 2 * 2 * 5,
        "pytest.ini": 4,
    }
    assert learned["pytest.ini"] == ["added[baseline]", "added[epoch3-eval]", "gate[smoke]", "gate"]


def test_an_ini_file_outside_of_the_root_is_no_part_of_the_tree(gated: Project) -> None:
    gated.write("deep/gates.yaml", "gates: {smoke: {min_mean: 0.5}}")
    found = explored(gated, "--rootdir=deep", "-c", "pytest.ini", "deep")
    assert found == {"deep/er/suite.scenario.json": ["eval0"], "deep/tfgrpo": OF_THE_RUN}


def test_a_run_without_an_ini_file_makes_a_tree_too(gated: Project) -> None:
    (gated.root / "pytest.ini").unlink()
    found = explored(gated, "--tfgrpo-actor=python:agent:right", "--tfgrpo-gate-min-mean=0.5")
    assert found == PLAIN | {"tfgrpo": ["added", "gate"]}


def test_a_run_by_the_ids_of_the_tree_runs_everything_and_its_gates(gated: Project) -> None:
    ids = [f"{gated.root / file}::{name}" for file, names in explored(gated).items() for name in names]
    result = gated.run("-v", *ids)
    assert result.ret == 0
    assert item_names(result)[-3:] == [f"pytest.ini::{name}" for name in OF_THE_RUN]
    result.assert_outcomes(passed=len(ids))


@pytest.mark.parametrize("testpaths", ["", "testpaths = dee* more.scenario.json test_*.py gone"])
def test_a_gate_alone_runs_the_suite_that_it_judges_and_no_other_test(gated: Project, testpaths: str) -> None:
    with (gated.root / "pytest.ini").open("a") as ini:
        ini.write(f"\n{testpaths}\n")
    result = gated.run("-v", "pytest.ini::gate", "--junitxml=junit.xml")
    assert result.ret == 0
    ran = sum(map(len, PLAIN.values())) - 1 + len(OF_THE_RUN)
    result.assert_outcomes(passed=ran, deselected=3)  # those to train with, and the test of something else
    assert item_names(result)[-3:] == [f"pytest.ini::{name}" for name in OF_THE_RUN]
    assert "not checked" not in result.stdout.str()  # the suite is whole
    cases = ElementTree.parse(gated.root / "junit.xml").iter("testcase")
    assert [c.get("name") for c in cases if c.get("classname") == "pytest.ini"] == OF_THE_RUN


def test_a_gate_is_named_from_another_folder(gated: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(gated.root / "deep")
    assert item_names(gated.run("-v", "../pytest.ini::gate"))[-1] == "../pytest.ini::gate"


def test_a_gate_beside_some_scenarios_judges_these(gated: Project) -> None:
    gated.conftest("")
    result = gated.run("-v", "pytest.ini::gate", "more.scenario.json::more-eval0")
    assert item_names(result) == [
        "more.scenario.json::more-eval0",
        *(f"pytest.ini::{n}" for n in OF_THE_RUN[1:]),
    ]


def test_a_gate_that_the_run_has_not_is_an_error_that_names_those_it_has(gated: Project) -> None:
    result = gated.run("pytest.ini::gate[smok]")
    assert (result.ret, gated.calls) == (pytest.ExitCode.USAGE_ERROR, [])
    result.stderr.fnmatch_lines(
        ["*no gate pytest.ini::gate[[]smok]: the run has pytest.ini::gate[[]smoke], pytest.ini::gate"]
    )
    gated.write("pytest.ini", "[pytest]\ntfgrpo_actor = python:agent:right\n")
    result = gated.run("pytest.ini::gate")
    assert (result.ret, gated.calls) == (pytest.ExitCode.USAGE_ERROR, [])
    result.stderr.fnmatch_lines(["*no gate pytest.ini::gate: the run has none; set tfgrpo_baseline"])


def test_a_gate_beside_tests_of_something_else_needs_scenarios(gated: Project) -> None:
    gated.conftest("")
    result = gated.run("pytest.ini::gate", "test_agent.py::TestOther")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*pytest.ini::gate needs the scenarios of its run; select these too"])


def test_a_test_result_names_the_file(gated: Project) -> None:
    result = gated.run("-o", "junit_family=xunit1", "--junitxml=junit.xml")
    assert result.ret == 0
    found = {
        (case.get("classname"), case.get("name"), case.get("file"))
        for case in ElementTree.parse(gated.root / "junit.xml").iter("testcase")
    }
    assert {("pytest.ini", name, "pytest.ini") for name in OF_THE_RUN} <= found
    assert ("deep.er.suite.scenario.json", "eval0", "deep/er/suite.scenario.json") in found
