"""A plugin that uses every hook."""

from typing import Any

import pytest
from support.plugin.hooks import MADE
from support.preparing import refusal
from support.project import Project

PLUGIN = """
import json
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_tfgrpo import CheckKind, Trajectory
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.gate.verdict import RuleResult

SEEN = Path(__file__).with_name("seen.jsonl")


def saw(**what):
    with SEEN.open("a") as file:
        file.write(json.dumps(what) + "\\n")


class Actor:
    name, paid, identity = "mine", False, {"version": 1}

    async def __call__(self, call):
        return Trajectory(answer="3" if call.seed % 2 else "333")

    def bound(self, call_count):
        return {"usd": 0.0, "tokens": 0}

    async def aclose(self):
        saw(closed=True)


class Brevity:
    name, weight = "brevity", 0.5

    def __call__(self, batch):
        return [1.0 / len(r.answer) if r.answer else 0.0 for r in batch.rollouts]


class Optimizer:
    name, identity = "mine", {"version": 1}

    async def propose(self, context):
        from pytest_tfgrpo.learning.optimizer.registry import open_optimizer

        saw(optimizer=context.epoch, groups=len(context.groups))
        return await open_optimizer("heuristic").propose(context)


class Rule:
    name = "house rule"

    def judge(self, run, baseline, settings):
        return RuleResult(name=self.name, outcome="pass", message="the house is in order")


def evaluate(check, context):
    right = context.answer == check.params["digit"]
    return CheckResult(kind=check.kind, weight=check.weight, credit=float(right))


def pytest_tfgrpo_actor(config, spec):
    return Actor() if spec == "mine" else None


def pytest_tfgrpo_rewarders(config):
    return [Brevity()]


def pytest_tfgrpo_optimizer(config, spec):
    return Optimizer() if spec == "mine" else None


def pytest_tfgrpo_scenarios(config, scenarios):
    kept = [s for s in scenarios if s.id != "suite-train1"]
    return kept + [replace(kept[0], id="added", prompt="A new one", stamp="9" * 64)]


def pytest_tfgrpo_checks(config):
    schema = {"type": "object", "properties": {"digit": {"type": "string"}}, "required": ["digit"],
              "additionalProperties": False}
    return {"digit": CheckKind(name="digit", params=schema, evaluate=evaluate, blocking=False)}


def pytest_tfgrpo_gate_rules(config):
    return [Rule()]


def pytest_tfgrpo_rollout(config, rollout):
    saw(rollout=rollout.rollout_id)


def pytest_tfgrpo_epoch(config, result):
    saw(epoch=result.phase.label)


def pytest_tfgrpo_experience(config, experience):
    saw(experience=experience.summary32)


def pytest_tfgrpo_run(config, run):
    saw(run=run.status)


def pytest_tfgrpo_report_section(config, run):
    return [f"greetings from the plugin: {run.status}"]
"""


@pytest.fixture
def plugged(project: Project) -> Project:
    check = {"kind": "digit", "digit": "3"}
    project.scenarios(train=3, sweep=2, checks=[check]).conftest(PLUGIN)
    return project.ini(actor="mine", optimizer="mine", group_size=4)


def seen(project: Project) -> list[dict[str, Any]]:
    import json

    return [json.loads(line) for line in (project.root / "seen.jsonl").read_text().splitlines()]


def test_every_hook_takes_part(plugged: Project) -> None:
    result = plugged.learn("-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["pytest.ini::added[[]epoch1[]] PASSED*"])
    result.stdout.fnmatch_lines(["*house rule*in order*", "*greetings from the plugin: complete*"])
    told = seen(plugged)
    assert [t["epoch"] for t in told if "epoch" in t] == ["epoch1", "epoch2", "baseline", "epoch3-eval"]
    assert [t["groups"] for t in told if "optimizer" in t] == [3, 3]
    assert sum("rollout" in t for t in told) == 3 * 4 * 2 + 2 * 4  # one answer serves both sweeps
    assert [t["run"] for t in told if "run" in t] == ["complete"]
    assert {"closed": True} in told
    ids = {s["id"] for s in plugged.report()["scenarios"]}
    assert "added" in ids
    assert "suite-train1" not in ids


def test_who_is_supplied_without_an_identity_is_a_usage_error(plugged: Project) -> None:
    plugged.conftest(PLUGIN.replace('name, identity = "mine", {"version": 1}', 'name = "mine"'))
    result = plugged.learn()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*hook pytest_tfgrpo_optimizer: *Optimizer* has no attribute 'identity'*"])


def test_a_weighted_rewarder_takes_part_in_the_reward(plugged: Project) -> None:
    from pytest_tfgrpo.runs.journal.journal_contents import load_run

    plugged.learn()
    for phase in load_run(plugged.runs()[-1]).phases:
        for group in phase.groups:
            for rollout, score in zip(group.rollouts, group.scores, strict=True):
                brevity = 1.0 / len(rollout.answer)
                assert score.extra == {"brevity": brevity}
                assert score.reward == pytest.approx((score.gt_score + 0.5 * brevity) / 1.5)


def test_observers_that_break_become_warnings(project: Project) -> None:
    hooks = ("rollout(config, rollout)", "epoch(config)", "experience(config)", "run(config)")
    project.scenarios(train=3).ini(actor="python:agent:learner", group_size=4)
    project.conftest(
        "".join(
            f"def pytest_tfgrpo_{hook}:\n    raise OSError('cut {hook[:3]}')\n"
            for hook in (*hooks, "report_section(config)")
        )
    )
    result = project.learn()
    assert result.ret == 0
    for hook in (*hooks, "report_section(config)"):
        name = hook.partition("(")[0]
        result.stdout.fnmatch_lines([f"*pytest_tfgrpo_{name} raised OSError: cut {hook[:3]}"])


@pytest.mark.parametrize(
    "hook",
    [
        "actor(config, spec)",
        "rewarders(config)",
        "optimizer(config, spec)",
        "scenarios(scenarios)",
        "checks()",
        "gate_rules()",
    ],
)
def test_a_supplier_that_breaks_is_an_error_before_anything_is_paid_for(project: Project, hook: str) -> None:
    project.scenarios().conftest(f"def pytest_tfgrpo_{hook}:\n    raise OSError('no such thing')\n")
    name = hook.partition("(")[0]
    assert refusal(project, "--tfgrpo") == f"hook pytest_tfgrpo_{name} raised OSError: no such thing"


@pytest.mark.parametrize(
    ("hook", "code"),
    [("scenarios(scenarios)", pytest.ExitCode.USAGE_ERROR), ("checks()", pytest.ExitCode.INTERRUPTED)],
)
def test_pytest_says_which_supplier_breaks(project: Project, hook: str, code: pytest.ExitCode) -> None:
    project.scenarios().conftest(f"def pytest_tfgrpo_{hook}:\n    raise OSError('no such thing')\n")
    result = project.learn()
    assert result.ret == code
    name = hook.partition("(")[0]
    text = result.stdout.str() + result.stderr.str()
    assert f"hook pytest_tfgrpo_{name} raised OSError: no such thing" in text
    assert "Traceback" not in text
    assert project.calls == []


def test_every_hook_is_called_on_the_main_thread(project: Project) -> None:
    names = ["rollout", "epoch", "experience", "run", "report_section"]
    hooks = "".join(f"def pytest_tfgrpo_{name}():\n    here('{name}')\n" for name in names)
    project.conftest(f"""
import threading
from pathlib import Path

def here(name):
    with Path(__file__).with_name("threads.log").open("a") as file:
        file.write(f"{{name}} {{threading.current_thread() is threading.main_thread()}}\\n")

{hooks}
""")
    project.scenarios(train=12, sweep=2).ini(actor="python:agent:learner", group_size=4).learn()
    told = set((project.root / "threads.log").read_text().splitlines())
    assert told == {f"{name} True" for name in names}


def test_a_rewarder_that_hangs_aborts_its_epoch_and_leaves_no_experience(project: Project) -> None:
    rewarder = """
import time

class Slow:
    name, weight = "slow", 1.0

    def __call__(self, batch):
        if any(rollout.mode == "train" for rollout in batch.rollouts):
            time.sleep(1000)
        return [1.0] * len(batch.rollouts)

def pytest_tfgrpo_rewarders():
    return [Slow()]
"""
    project.scenarios(train=3, sweep=2).conftest(rewarder)
    project.ini(actor="python:agent:learner", group_size=4, rewarder_timeout_s=1, baseline_sweep="early")
    result = project.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    manifest = project.manifest()
    assert manifest["status"] == "aborted"
    assert "rewarders (slow) exceeded rewarder_timeout_s = 1" in manifest["reason"]
    baseline, aborted = project.report()["epochs"]
    assert (baseline["rollouts"], aborted["gt_score"]["n"]) == (8, 0)
    assert aborted["rollouts"] > 0
    assert manifest["tfgrpo"]["experiences"] == []
    assert (project.runs()[-1] / "metrics.jsonl").read_text().count('"tool": null') == 8 + aborted["rollouts"]


def test_a_built_in_check_kind_cannot_be_replaced(project: Project) -> None:
    project.scenarios().conftest("def pytest_tfgrpo_checks():\n    return {'exact': None}\n")
    result = project.learn()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*'exact' is taken*"])


def test_a_gate_rule_that_breaks_fails_the_gate(project: Project) -> None:
    rule = "class Rule:\n    name = 'r'\n    def judge(self, *a):\n        raise OSError('x')\n"
    project.scenarios().conftest(rule + "def pytest_tfgrpo_gate_rules():\n    return [Rule()]\n")
    assert project.learn().ret == pytest.ExitCode.TESTS_FAILED


def test_scenarios_that_a_hook_makes_are_stamped_like_those_of_a_file(project: Project) -> None:
    project.conftest(MADE).ini(actor="python:agent:half")
    project.run().assert_outcomes(failed=6 - sum(_solved(project)), passed=sum(_solved(project)))
    seeds = {line.split()[1] for line in (project.root / "calls.log").read_text().splitlines()}
    assert len(seeds) == 6


def _solved(project: Project) -> list[bool]:
    lines = (project.root / "calls.log").read_text().splitlines()
    return [int(line.split()[1]) % 2 == 1 for line in lines[:6]]


@pytest.mark.parametrize("arguments", [(), ("--tfgrpo",), (".",)])
def test_a_hook_is_called_without_a_scenario_file(project: Project, arguments: tuple[str, ...]) -> None:
    project.conftest(MADE).write("test_x.py", "def test_x(): pass\n").write("out.txt", "")
    result = project.run("-v", *arguments)
    assert result.ret == 0
    assert set(project.calls) == {f"made{n}" for n in range(6)}
    assert "no scenario was collected" not in result.stdout.str()


def test_a_hook_in_a_folder_is_called_without_a_scenario_file(project: Project) -> None:
    project.write("deep/er/conftest.py", MADE).write("deep/er/test_x.py", "def test_x(): pass\n")
    project.run().assert_outcomes(passed=7)


@pytest.mark.parametrize("selection", [("test_x.py::test_x",), ("-k", "test_x"), ("-m", "not slow")])
def test_a_hook_adds_nothing_to_tests_selected_by_name(project: Project, selection: tuple[str, ...]) -> None:
    project.conftest(MADE).write("test_x.py", "def test_x(): pass\n")
    project.run(*selection).assert_outcomes(passed=1)
    assert project.calls == []


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ('replace(one, checks=(Check(kind="exakt"),))', "unknown check kind 'exakt'; did you mean 'exact'?"),
        ('replace(one, checks=(Check(kind="exact", params={"valu": "3"}),))', "did you mean 'value'?"),
        ('replace(one, checks=(Check(kind="number", params={}),))', "missing key 'value'"),
        ("replace(one, checks=())", "missing key 'checks'"),
        ('replace(one, split="test")', "'test' is not one of"),
        ('replace(one, id="a b")', "'a b' does not match"),
        ('replace(one, prompt="")', "needs at least one of 'prompt', 'input'"),
        ("replace(one, min_score=2)", "2 is greater than the maximum of 1"),
        ('replace(one, truth="judge")', "truth: judge needs a rubric"),
        ('replace(one, checker="test_x.py::test_x")', "remove checker"),
        ('replace(one, id="other", split="train")', "set the same split for both"),
        (
            'replace(one, attachments=(Attachment(name="a", path=Path("/none"), sha256=""),))',
            "cannot read /none",
        ),
        ("3", "3 is not a Scenario"),
        ("replace(one, id=[])", "unhashable"),
    ],
)
def test_a_scenario_that_a_file_may_not_have_is_an_error(project: Project, scenario: str, said: str) -> None:
    error = refusal(returning(project, scenario), "--tfgrpo")
    assert error.startswith("hook pytest_tfgrpo_scenarios: ")
    assert said in error


def test_such_a_scenario_is_a_usage_error(project: Project) -> None:
    result = returning(project, "replace(one, checks=())").learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (error,) = [line for line in result.errlines if line.startswith("ERROR")]
    assert error.startswith("ERROR: hook pytest_tfgrpo_scenarios: ")
    assert "missing key 'checks'" in result.stderr.str()
    assert "Traceback" not in result.stderr.str()
    assert project.calls == []


def returning(project: Project, scenario: str) -> Project:
    """Write scenarios, and a hook that puts another one into the place of the first."""
    kept = "*scenarios" if '"other"' in scenario else "*scenarios[1:]"
    project.conftest(
        "from dataclasses import replace\nfrom pathlib import Path\n"
        "from pytest_tfgrpo.core.scenarios import Attachment, Check\n"
        "def pytest_tfgrpo_scenarios(scenarios):\n"
        f"    one = scenarios[0]\n    return [{kept}, {scenario}]\n"
    )
    return project.scenarios(train=0)


def test_what_a_hook_changes_counts_for_the_items_of_the_file(project: Project) -> None:
    project.conftest(
        "from dataclasses import replace\n"
        "def pytest_tfgrpo_scenarios(scenarios):\n    return [replace(s, min_score=0.0) for s in scenarios]\n"
    )
    project.scenarios().ini(actor="python:agent:wrong").run().assert_outcomes(passed=2, deselected=2)
