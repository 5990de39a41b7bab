"""The dev split as the user meets it: its items, what is skipped, and what is said where it is too small."""

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from support.project import Project

from pytest_tfgrpo.runs import splits

DEV = 20
MARKED = """
import pytest

@pytest.mark.tfgrpo(prompt="How many?", split="dev")
def test_count(rollout):
    assert rollout.answer == "3"
"""


def with_dev(project: Project, dev: int = DEV, *, train: int = 2, sweep: int = 1) -> Project:
    """Write a suite with an explicit dev split, whose answer is 3."""
    return project.tasks(train=train, dev=dev, eval=sweep)


@pytest.fixture
def suite(project: Project) -> Project:
    project.ini(actor="python:agent:learner", group_size=4, epochs=3, eval_rollouts=2, lesson_dropout=0)
    return with_dev(project)


def test_a_dev_item_shows_its_last_group_and_is_skipped_where_nobody_was_asked(suite: Project) -> None:
    result = suite.learn("-v", "-rs", "--junitxml=junit.xml")
    result.stdout.fnmatch_lines(["*suite.scenario.json::dev0[[]epoch1[]] PASSED*"])
    assert result.ret == 0
    skipped = re.findall(r"SKIPPED \[\d+\].*: (.*)", result.stdout.str())
    assert set(skipped) == {"no lesson was in question"}
    properties = {
        case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
        for case in ET.parse(suite.root / "junit.xml").iter("testcase")
    }
    assert properties["dev0[epoch1]"]["tfgrpo_mode"] == "dev"
    assert re.fullmatch(r".*\.e1d\d\.dev0", str(properties["dev0[epoch1]"]["tfgrpo_group"]))


def test_the_lines_of_metrics_tell_training_from_the_dev_split(suite: Project) -> None:
    suite.learn()
    lines = [json.loads(line) for line in (suite.runs()[-1] / "metrics.jsonl").read_text().splitlines()]
    counted = Counter((line["epoch"], line["mode"]) for line in lines if line["tool"] is None)
    rows = suite.report()["epochs"]
    assert counted == {
        **{(row["epoch"], row["mode"]): row["rollouts"] for row in rows},
        **{(row["epoch"], "dev"): row["dev"]["rollouts"] for row in rows if "dev" in row},
    }
    assert {mode for _, mode in counted} == {"baseline", "train", "dev", "eval"}


def test_what_does_harm_is_not_learned(suite: Project) -> None:
    suite.ini(actor="python:agent:unlearner", group_size=4, epochs=2, eval_rollouts=2, lesson_dropout=0)
    result = suite.learn()
    report = suite.report()
    assert report["library"]["lessons"] == []
    assert report["acceptance"]["epochs"][0]["verdict"] == "rejected"
    result.stdout.fnmatch_lines(["dev split  epoch1 leaves out 1 lesson; *"])


def test_a_prompt_that_no_lesson_changed_is_not_asked(suite: Project) -> None:
    other = {"id": "odd", "domain": "other", "split": "dev", "prompt": "Say three.", "checks": [
        {"kind": "exact", "value": "3"}]}  # fmt: skip
    suite.write("odd.scenario.json", json.dumps(other))
    result = suite.learn("-v", "-rs", "-p", "no:randomly")
    result.stdout.fnmatch_lines(["*odd.scenario.json::odd[[]epoch1[]] SKIPPED (no lesson in question *"])
    assert "odd" not in suite.calls


@pytest.mark.parametrize("arguments", [(), ("--tfgrpo-dry-run",)])
def test_too_few_dev_scenarios_are_said_so_and_their_items_deselected(
    suite: Project, arguments: tuple[str, ...]
) -> None:
    with_dev(suite, dev=7)
    result = suite.learn(*arguments)
    text = " ".join(result.stdout.str().split())
    assert (
        "arning: lessons are kept without a test: that takes 20 dev scenarios or more, so the 7 that there"
        in text
    )
    assert "add some, or set tfgrpo_acceptance = off" in text
    assert not any(id_.startswith("dev") for id_ in suite.calls)
    if not arguments:
        assert "14 deselected" in text
        assert any("so the 7 that there are" in warning for warning in suite.report()["warnings"])


def test_a_dry_run_tells_how_much_the_dev_split_may_take(suite: Project) -> None:
    result = suite.learn("--tfgrpo-dry-run")
    result.stdout.fnmatch_lines(["epoch1-dev *0.3 *20 *4 *up to 80", "total *18 to 180"])


def test_plain_mode_runs_no_dev_scenario(suite: Project) -> None:
    suite.ini(actor="python:agent:right")
    suite.run().assert_outcomes(passed=1, deselected=2 + DEV)


def test_a_test_function_of_the_dev_split_is_a_usage_error(project: Project) -> None:
    project.write("test_agent.py", MARKED)
    result = project.learn()
    assert result.ret != 0
    assert "cannot check split='dev'" in result.stdout.str() + result.stderr.str()


def test_a_majority_cannot_decide(suite: Project) -> None:
    one = {"id": "m", "split": "dev", "prompt": "Say three.", "truth": "majority"}
    suite.write("m.scenario.json", json.dumps(one))
    result = suite.learn()
    assert "truth: majority is only for split: train" in result.stdout.str()


def test_a_dev_item_fails_only_when_all_its_rollouts_are_errors(suite: Project) -> None:
    suite.write(
        "flaky.py",
        """
import agent
from pytest_tfgrpo import ProviderError

def solve(context):
    if context.scenario.id == "dev0" or (context.scenario.id == "dev1" and context.seed % 2):
        raise ProviderError("503 from the provider")
    return agent.learner(context)
""",
    )
    suite.ini(actor="python:flaky:solve", group_size=4, epochs=2, eval_rollouts=6, lesson_dropout=0)
    result = suite.learn("-v")
    result.stdout.fnmatch_lines(["*::dev0[[]epoch1[]] FAILED*", "*::dev1[[]epoch1[]] PASSED*"])
    result.assert_outcomes(failed=1, passed=2 + DEV - 1 + 2 + 1)


def test_choosing_some_dev_scenarios_decides_nothing(suite: Project) -> None:
    result = suite.learn("-k", "dev0 or train or eval")
    assert "so the 1 that there are stay unused" in " ".join(result.stdout.str().split())
    assert result.ret == 0


def test_a_failed_dev_item_alone_decides_nothing_and_says_why(suite: Project) -> None:
    suite.ini(actor="python:agent:provider", group_size=2, epochs=2, eval_rollouts=2, lesson_dropout=0)
    result = suite.learn("suite.scenario.json::dev3[epoch1]")
    result.stdout.fnmatch_lines(
        [
            "only dev scenarios are selected; they validate what train scenarios teach, "
            "so select train scenarios as well"
        ]
    )


@pytest.mark.parametrize("which", ["latest", "its id"])
def test_a_run_of_another_split_by_hash_goes_on_with_the_one_it_has(
    project: Project, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    project.ini(actor="python:agent:learner", group_size=2, epochs=2, eval_rollouts=1, lesson_dropout=0)
    project.tasks(train=30, eval=1)
    with monkeypatch.context() as patch:
        patch.setattr(
            splits, "_chosen", lambda known, _: {s.id for s in known if s.split == "train"} - {"train0"}
        )
        project.learn("--tfgrpo-budget-s", "0.001")
    folder = project.runs()[-1]
    result = project.learn("--tfgrpo-resume", "latest" if which == "latest" else folder.name)
    assert result.ret != pytest.ExitCode.USAGE_ERROR
    assert project.runs() == [folder]
    assert Counter(s["split"] for s in project.report()["scenarios"]) == {"train": 1, "dev": 29, "eval": 1}
