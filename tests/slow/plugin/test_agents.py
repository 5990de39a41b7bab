"""Agents that misbehave cost one rollout, not the run."""

import json
import shutil
import sys

import pytest
from support.project import Project

AGENT2 = """
import time


def solve(context):
    if not context.scenario.id.startswith("train"):
        return "3"
    kind = context.prompt.user.split()[0]
    if kind == "crash":
        raise RuntimeError("the agent fell over")
    if kind == "hang":
        time.sleep(1000)
    return {"garbage": 42, "oversize": "3" * 10_000_000}.get(kind, "3")
"""

PROGRAM = """
import json, os, signal, sys, time

task = json.load(sys.stdin)
kind = task["prompt"]["user"].split()[0] if task["scenario"]["id"].startswith("train") else ""
if kind == "crash":
    os.kill(os.getpid(), signal.SIGKILL)
if kind == "hang":
    time.sleep(1000)
if kind == "oversize":
    sys.stdout.write("3" * 10_000_000)
elif kind == "garbage":
    print(json.dumps({"answer": 42}))
else:
    print(json.dumps({"answer": "3"}))
"""

FAULTS = ("crash", "garbage", "hang", "oversize")


@pytest.mark.parametrize("actor", ["python:agent2:solve", f"command:{sys.executable} agent3.py"])
def test_whatever_an_agent_does_costs_its_own_rollout_alone(project: Project, actor: str) -> None:
    project.agent(AGENT2).write("agent3.py", PROGRAM)
    same = {"domain": "text", "checks": [{"kind": "exact", "value": "3"}]}
    values = [
        {"id": f"{split}-{kind}", "split": split, "prompt": f"{kind} {split}"}
        | {"timeout_s": 0.5 if (split, kind) == ("train", "hang") else 100}
        | same
        for split in ("train", "eval")
        for kind in ("fine", *FAULTS)
    ]
    project.write("suite.scenario.json", json.dumps(values))
    project.ini(actor=actor, group_size=2, epochs=2, contamination="warn")
    result = project.learn()
    assert result.ret == 0
    codes = ["timeout" if fault == "hang" else fault for fault in FAULTS]
    assert project.report()["faults"] == {"errors": {}, "failed": dict.fromkeys(codes, 2)}
    means = {row["id"]: [place["mean"] for place in row["epochs"]] for row in project.report()["scenarios"]}
    for kind in FAULTS:
        assert (set(means[f"train-{kind}"]), set(means[f"eval-{kind}"])) == ({0.0}, {1.0})
    assert set(means["train-fine"]) == {1.0}
    assert project.manifest()["status"] == "complete"
    said = " ".join(" ".join(result.outlines).split())
    counts = ", ".join(f"{code} 2" for code in sorted(codes))
    assert f"8 rollouts without an answer, scored 0: {counts}" in said


def test_an_agent_in_another_language_is_one_setting_away(project: Project) -> None:
    if shutil.which("perl") is None:
        pytest.skip("NOT TESTED: perl is not installed")
    project.write("agent.pl", 'my @all = <STDIN>;\nprint "{\\"answer\\": \\"3\\"}\\n";\n').scenarios()
    assert project.learn("--tfgrpo-actor", "command:perl agent.pl").ret == 0
    assert {row["gt_score"]["mean"] for row in project.report()["epochs"]} == {1.0}
