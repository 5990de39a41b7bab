"""Test functions marked with ``tfgrpo``."""

import ast
import json
import runpy
import textwrap
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.plugin.markers import LONG
from support.project import Project, item_names

from pytest_tfgrpo import plugin
from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire
from pytest_tfgrpo.plugin.items import markers
from pytest_tfgrpo.plugin.items.markers import scenario_of, siblings
from pytest_tfgrpo.runs.journal.journal_contents import load_run
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.records import checked


def test_one_item_per_rollout_in_epoch_order(project: Project) -> None:
    project.checker("""
@pytest.mark.tfgrpo(split="eval", **MARK)
def test_sweep(rollout):
    assert rollout.answer == "3"

@pytest.mark.tfgrpo(domain="text", prompt="How many words has 'd e f'?")
def test_train(rollout):
    assert rollout.answer == "3"
""")
    result = project.ini(actor="python:agent:half", group_size=2).learn("-v")
    assert item_names(result) == [
        "test_agent.py::test_train[tfgrpo-epoch1-r0]",
        "test_agent.py::test_train[tfgrpo-epoch1-r1]",
        "test_agent.py::test_train[tfgrpo-epoch2-r0]",
        "test_agent.py::test_train[tfgrpo-epoch2-r1]",
        "test_agent.py::test_sweep[tfgrpo-baseline-r0]",
        "test_agent.py::test_sweep[tfgrpo-baseline-r1]",
        "test_agent.py::test_sweep[tfgrpo-epoch3-eval-r0]",
        "test_agent.py::test_sweep[tfgrpo-epoch3-eval-r1]",
        "pytest.ini::gate",
    ]
    assert project.manifest()["status"] == "complete"


def test_in_plain_mode_a_marked_function_is_a_test_of_one_rollout(project: Project) -> None:
    project.checker("""
@pytest.mark.tfgrpo(split="eval", **MARK)
def test_sweep(rollout):
    assert rollout.answer == "3"

@pytest.mark.tfgrpo(domain="text", prompt="train")
def test_train(rollout):
    raise AssertionError
""")
    project.run().assert_outcomes(passed=1, deselected=1)
    project.ini(actor="python:agent:wrong").run().assert_outcomes(failed=1, deselected=1)


def scores(project: Project) -> list[float | None]:
    """Return the gt means of the sweeps."""
    return [row["gt_score"]["mean"] for row in project.report()["epochs"] if row["mode"] != "train"]


BODIES = {
    "pass": 1.0,
    "assert rollout.answer == 'no'": 0.0,
    "pytest.fail('no')": 0.0,
    "tfgrpo.score(0.4, 'half way')": 0.4,
    "tfgrpo.score(0.4, 'half way'); assert False": 0.4,
    "tfgrpo.score(0.1); tfgrpo.score(0.9)": 0.9,
}
"""Bodies of test functions, and the scores that they give."""


def test_what_the_function_does_is_the_score(project: Project) -> None:
    project.checker(
        "".join(
            f"@pytest.mark.tfgrpo(split='eval', prompt='How many are {n}?')\n"
            f"def test_it{n}(rollout):\n    {body}\n\n"
            for n, body in enumerate(BODIES)
        )
    )
    project.learn().assert_outcomes(passed=2 * len(BODIES) + 1)
    rows = {row["id"].split(".")[1]: row["epochs"] for row in project.report()["scenarios"]}
    for n, score in enumerate(BODIES.values()):
        assert {place["mean"] for place in rows[f"test_it{n}"]} == {score}


@pytest.mark.parametrize(
    "body",
    ["def test_it(rollout):\n    raise KeyError('the checker broke')", "def test_it(rollout, broken): pass"],
)
def test_a_checker_that_breaks_is_an_error_and_fails_only_with_its_whole_group(
    project: Project, body: str
) -> None:
    fixture = "@pytest.fixture\ndef broken():\n    raise OSError('no database')\n"
    project.checker(fixture + "@pytest.mark.tfgrpo(split='eval', **MARK)\n" + body + "\n")
    result = project.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    rows = project.report()["epochs"]
    assert [(row["errors"], row["gt_score"]["mean"]) for row in rows] == [(2, None)]


def test_a_checker_that_breaks_now_and_then_does_not_fail_the_item_and_gives_no_score(
    project: Project,
) -> None:
    body = "def test_it(rollout):\n    tfgrpo.score(0.4)\n    assert rollout.index or 1 / 0\n"
    project.checker("@pytest.mark.tfgrpo(split='eval', **MARK)\n" + body)
    project.learn().assert_outcomes(passed=3)
    rows = project.report()["epochs"]
    assert [(row["errors"], row["gt_score"]["n"], row["gt_score"]["mean"]) for row in rows] == [(1, 1, 0.4)]


@pytest.mark.parametrize("how", ["pytest.skip('not here')", "pass"])
def test_a_skip_excludes_the_scenario(project: Project, how: str) -> None:
    mark = "@pytest.mark.skipif(True, reason='not here')\n" if how == "pass" else ""
    body = f"{mark}@pytest.mark.tfgrpo(split='eval', **MARK)\ndef test_it(rollout):\n    {how}\n"
    project.checker(body).scenarios(train=0, sweep=1)
    result = project.learn()
    result.assert_outcomes(passed=2, skipped=2)
    assert [row["groups"] for row in project.report()["epochs"]] == [1]


LEARNING = """
import pytest

@pytest.mark.tfgrpo(domain={domain!r}, split="eval", prompt="How many words has 'a b c'?")
def test_sweep(rollout):
    assert rollout.answer == "3"

@pytest.mark.parametrize("n", range(6))
@pytest.mark.tfgrpo(domain="text", prompt="How many words has letter {{n}}?")
def test_train(rollout, n):
    assert rollout.answer == "3"
"""


@pytest.mark.parametrize(("domain", "skipped"), [("text", 0), ("other", 2)])
def test_where_no_lesson_changed_a_prompt_the_functions_of_the_final_sweep_judge_for_both(
    project: Project, domain: str, skipped: int
) -> None:
    project.write("test_agent.py", LEARNING.format(domain=domain))
    result = project.ini(actor="python:agent:learner", group_size=2).learn("-rs")
    assert result.parseoutcomes().get("skipped", 0) == skipped
    rows = {row["mode"]: row for row in project.report()["epochs"]}
    assert rows["baseline"]["gt_score"]["n"] == 1
    if domain == "other":
        result.stdout.fnmatch_lines(["*no lesson changed its prompt: the answers of the final sweep count*"])
        assert rows["baseline"]["gt_score"] == rows["eval"]["gt_score"]
        assert (rows["baseline"]["rollouts"], rows["baseline"]["shared"]) == (0, 1)


def test_parametrised_functions_are_a_scenario_each_and_prompts_name_their_parameters(
    project: Project,
) -> None:
    project.checker("""
@pytest.mark.parametrize("text", ["a b c", "d e"])
@pytest.mark.tfgrpo(domain="text", split="eval", prompt="How many words has {text}?")
def test_it(rollout, text):
    assert rollout.answer == str(len(text.split()))
""")
    project.learn()
    found = {s.prompt for s in load_run(project.runs()[-1]).scenarios}
    assert found == {"How many words has a b c?", "How many words has d e?"}
    assert scores(project) == [0.5]


def test_async_and_class_tests_work_and_the_nearest_mark_wins(project: Project) -> None:
    project.checker("""
@pytest.mark.asyncio
@pytest.mark.tfgrpo(split="eval", **MARK)
async def test_with_asyncio(rollout):
    tfgrpo.score(0.5)

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
@pytest.mark.tfgrpo(domain="text", split="eval", prompt="another")
async def test_with_anyio(rollout):
    assert rollout.answer == "no"

@pytest.mark.tfgrpo(split="train", prompt="of any test")
class TestAgent:
    @pytest.mark.tfgrpo(domain="text", split="eval", prompt="a third")
    def test_in_a_class(self, rollout, tmp_path):
        assert rollout.answer == "3"
        assert not list(tmp_path.iterdir())
        (tmp_path / "mine").touch()
""")
    flag = "--override-ini=asyncio_default_fixture_loop_scope=function"
    project.plugins("asyncio", "anyio").learn(flag).assert_outcomes(passed=7)
    assert scores(project) == [0.5]


def test_a_checker_can_look_into_the_workspace(project: Project) -> None:
    project.agent("""
def write(context):
    (context.workspace / "x.txt").write_text("hello")
    return "done"
""")
    project.checker("""
@pytest.mark.tfgrpo(split="eval", **MARK)
def test_it(rollout, rollout_workspace):
    assert (rollout_workspace / "x.txt").read_text() == "hello"
""")
    project.ini(actor="python:agent2:write").learn().assert_outcomes(passed=3)
    assert scores(project) == [1.0]


def test_a_failed_rollout_scores_zero_without_running_the_function(project: Project) -> None:
    body = "@pytest.mark.tfgrpo(split='eval', **MARK)\ndef test_it(rollout):\n    open('ran', 'w')\n"
    project.checker(body).ini(actor="python:agent:crash")
    project.learn().assert_outcomes(passed=2, failed=1)  # the gate: nobody answered
    assert scores(project) == [0.0]
    assert not (project.root / "ran").exists()
    project.run().assert_outcomes(failed=1)


def test_a_checker_that_never_runs_makes_its_epoch_incomplete(project: Project) -> None:
    body = "@pytest.mark.tfgrpo(split='eval', **MARK)\ndef test_it(rollout):\n    pass\n"
    project.checker(body)
    project.conftest("def pytest_runtest_protocol(item):\n    return 'eval-r1' in item.nodeid or None\n")
    result = project.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert project.manifest()["status"] == "incomplete"
    assert "its test function did not run" in project.manifest()["reason"]
    result.stdout.fnmatch_lines(["gate  FAILED", "*complete: epoch3-eval is incomplete*"])


def test_fixtures_are_fresh_for_each_rollout(project: Project) -> None:
    body = """
@pytest.fixture
def basket():
    return []

@pytest.mark.tfgrpo(split="eval", **MARK)
def test_it(rollout, basket):
    basket.append(rollout.index)
    assert basket == [rollout.index]
"""
    project.checker(body).learn().assert_outcomes(passed=3)
    assert scores(project) == [1.0]


def test_choosing_one_rollout_brings_the_whole_scenario(project: Project) -> None:
    body = (
        "@pytest.mark.tfgrpo(split='eval', **MARK)\ndef test_it(rollout):\n    pass\ndef test_other(): pass\n"
    )
    project.checker(body)
    project.learn("test_agent.py::test_it[tfgrpo-epoch3-eval-r1]").assert_outcomes(passed=3)


def marked(folder: Path, mark: pytest.MarkDecorator) -> pytest.Item:
    """Return what the plugin looks at of a test function with a mark."""
    node = SimpleNamespace(
        nodeid="test_agent.py::test_it",
        location=("test_agent.py", 6, "test_it"),
        path=folder / "test_agent.py",
        iter_markers=lambda name: [mark.mark],
    )
    return cast("pytest.Item", node)


@pytest.mark.parametrize(
    ("mark", "error", "message"),
    [
        (pytest.mark.tfgrpo("text"), pytest.UsageError, "*keywords only*"),
        (pytest.mark.tfgrpo(domain="text"), ScenarioError, "*prompt*"),
        (pytest.mark.tfgrpo(domain="text", prompt="x", split="test"), ScenarioError, "*split*"),
        (
            pytest.mark.tfgrpo(domain="text", prompt="x", split="dev"),
            pytest.UsageError,
            "*cannot check split='dev'*",
        ),
        (pytest.mark.tfgrpo(domain="text", prompt="x", promt="y"), ScenarioError, "*promt*"),
        (pytest.mark.tfgrpo(domian="text", prompt="x"), ScenarioError, "*did you mean 'domain'?*"),
        (
            pytest.mark.tfgrpo(prompt="x", fixtures="db"),
            pytest.UsageError,
            "*fixtures must be a list of names*",
        ),
        (pytest.mark.tfgrpo(prompt="x", agent=3), pytest.UsageError, "*agent must be the name of a fixture*"),
    ],
)
def test_a_bad_mark_is_an_error_that_names_what_is_wrong(
    tmp_path: Path, mark: pytest.MarkDecorator, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refused:
        scenario_of(marked(tmp_path, mark))
    assert any(fnmatch(line, message) for line in str(refused.value).splitlines())
    assert "test_agent.py:" in str(refused.value)


@pytest.mark.parametrize(
    ("mark", "message"),
    [("'text'", "*keywords only*"), ("domain='text', prompt='x', promt='y'", "*promt*")],
)
def test_a_bad_mark_is_a_usage_error(project: Project, mark: str, message: str) -> None:
    project.checker(f"@pytest.mark.tfgrpo({mark})\ndef test_it(rollout): pass\n")
    result = project.learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert any(fnmatch(line, message) for line in text.splitlines())
    assert "INTERNALERROR" not in text
    assert "Traceback" not in text


def test_the_fixture_needs_the_mark(project: Project) -> None:
    project.write("test_x.py", "def test_it(rollout): pass\n")
    result = project.run()
    result.stdout.fnmatch_lines(["*needs the mark `tfgrpo`*"])


def test_scoring_outside_a_marked_test_is_an_error(project: Project) -> None:
    project.write("test_x.py", "import pytest_tfgrpo as t\ndef test_it():\n    t.score(1)\n")
    project.run().stdout.fnmatch_lines(["*outside a test function marked*"])


def test_a_plain_run_shows_as_much_as_the_verbosity_says(project: Project) -> None:
    project.checker(LONG.replace("**MARK", "split='eval', **MARK")).ini(actor="python:agent:right")
    shown = [project.run(flag, "-k", "test_equal").stdout.str() for flag in ("-v", "-vv")]
    assert [f"assert ['{'3' * 60}', 0, 1, 2, 3, 4, 5, " in text for text in shown] == [False, True]


class Folder(pytest.Collector):
    """Collects the nodes that it was given."""

    nodes: list[Any]

    def collect(self) -> list[Any]:
        return self.nodes


class Node(pytest.Item):
    """An item of a scenario for one agent; a plain test where that is None."""

    agent: str | None

    def runtest(self) -> None:
        """Never called."""


def test_the_items_of_one_scenario_and_agent_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def node(name: str, agent: str | None) -> Node:
        made = Node.__new__(Node)
        made.name, made.agent, made.parent = name, agent, folder
        return made

    folder = Folder.__new__(Folder)
    rows = [("a", ""), ("b", ""), ("a", "x"), ("a", None), ("a", ""), ("a", "x"), ("c", None)]
    first, _, of_x, plain, again, also_x, alone = folder.nodes = [node(*row) for row in rows]
    folder.nodes.insert(2, Folder.__new__(Folder))
    slots = {"": SimpleNamespace(agent=""), "x": SimpleNamespace(agent="x")}
    monkeypatch.setattr(markers, "slot_of", lambda one: slots.get(one.agent))
    monkeypatch.setattr(markers, "base_id", lambda one: one.name)
    assert siblings(first) == siblings(again) == siblings(plain) == [first, again]
    assert siblings(of_x) == [of_x, also_x]
    assert siblings(alone) == [alone]
    first.parent = None
    assert siblings(first) == [first]


def test_the_id_of_parameters_alone_is_told_with_that_of_a_rollout(project: Project) -> None:
    project.checker("""
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.tfgrpo(**MARK, split="eval")
def test_par(n, rollout):
    pass
""")
    result = project.run("test_agent.py::test_par[1]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "*not found: *",
            "ERROR: test_agent.py::test_par is a scenario * test_agent.py::test_par[[]1-tfgrpo-eval-r0]*",
        ]
    )
    project.run("test_agent.py::test_par[1-tfgrpo-eval-r0]").assert_outcomes(passed=1)
    assert "is a scenario" not in project.run("test_agent.py::test_none[1]").stderr.str()


def test_the_line_of_the_marker_names_every_field_of_a_scenario_that_a_mark_takes() -> None:
    schema = json.loads(files("pytest_tfgrpo.core.schemas").joinpath("scenario.schema.json").read_text())
    wanted = schema["properties"].keys() - {"id", "setup", "teardown"} | {"fixtures", "agent"}
    (function,) = ast.parse(f"def {plugin.MARKER.partition('):')[0]}): pass").body
    assert isinstance(function, ast.FunctionDef)
    assert {argument.arg for argument in function.args.args} == wanted


def test_only_fixtures_for_users_are_listed(project: Project) -> None:
    shown = project.run("--fixtures").stdout.str()
    assert "rollout_workspace" in shown
    assert "slot" not in shown


def test_the_code_of_a_marked_function_is_part_of_its_scenario(tmp_path: Path) -> None:
    def made(body: str, *, mark: str = "prompt='x'", above: str = "", indent: str = "") -> Scenario:
        source = f"@pytest.mark.tfgrpo({mark})\ndef test_it(rollout):\n    {body}\n"
        path = tmp_path / "test_agent.py"
        path.write_text(f"import pytest\n{above}\n{textwrap.indent(source, indent)}")
        found = runpy.run_path(str(path), {})
        function = found["TestIt"].test_it if indent else found["test_it"]
        node = marked(tmp_path, cast("Any", SimpleNamespace(mark=function.pytestmark[0])))
        vars(node)["function"] = function
        return scenario_of(node)

    first = made("assert rollout")
    assert made("assert rollout", mark="prompt='x', min_score=0.5, tags=('a',)").stamp == first.stamp
    assert made("assert rollout", above="LIMIT = 3").stamp == first.stamp
    in_class = made("assert rollout", above="class TestIt:", indent="    ")
    assert in_class.checker_sha256 == first.checker_sha256
    assert made("assert not rollout").stamp != first.stamp
    assert from_wire(Scenario, json.loads(json.dumps(to_wire(first)))) == first
    assert checked(first, tmp_path, KINDS).stamp == first.stamp
    nowhere = marked(tmp_path, pytest.mark.tfgrpo(prompt="x"))
    assert scenario_of(nowhere).checker_sha256 == ""
