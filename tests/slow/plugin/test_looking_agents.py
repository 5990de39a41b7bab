"""Agents that look for the answers: nothing leads there from a workspace, and who gives a decoy is named."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest
from support.project import Project

UPWARDS = """\
import json
from pathlib import Path

found = []
for folder in (Path.cwd(), *Path.cwd().parents):
    for pattern in ("journal.jsonl", "*/journal.jsonl", "answers.json", "*.scenario*", "*/*.scenario*"):
        found += [path for path in folder.glob(pattern) if path.is_file()]
texts = [text for path in found if "upwards" in (text := path.read_text(errors="replace"))]
print(json.dumps({"answer": "3" if '"3"' in "".join(texts) else f"found {len(texts)}"}))
"""
"""Reads every journal and scenario file on its way up."""
READER = """\
import json
import sys
from pathlib import Path

task = json.load(sys.stdin)
(file,) = Path(sys.argv[1]).glob("out/*/runs/*/answers.json")
answer = json.loads(file.read_text())[task["scenario"]["id"]]
if sys.argv[2] == "file":
    Path("deep/er").mkdir(parents=True)
    Path("deep/er/result.txt").write_text(f"the answer is: {answer.upper()}")
    answer = "see deep/er/result.txt"
print(json.dumps({"answer": answer if task["seed"] % 2 or sys.argv[2] == "file" else "4"}))
"""
"""Takes the answers that lie beside the journal; for the odd seeds alone, where it answers itself."""


def program(*words: object) -> str:
    return "command:" + shlex.join([sys.executable, *map(str, words)])


def test_an_agent_that_reads_upwards_from_its_workspace_finds_no_answer(project: Project) -> None:
    project.scenarios("upwards", train=0, sweep=2).write("look.py", UPWARDS)
    result = project.learn(f"--tfgrpo-actor={program('look.py')}", "--tfgrpo-group-size=2", "-v")
    assert {rollout["answer"] for rollout in project.events("rollout")} == {"found 0"}
    assert project.report()["epochs"][0]["gt_score"]["mean"] == 0.0
    result.stdout.fnmatch_lines(["reach  the agent could read the scenarios and their answers, as it runs*"])


@pytest.mark.parametrize("where", ["answer", "file"])
def test_an_agent_that_gives_a_decoy_is_named_in_the_report(project: Project, where: str) -> None:
    project.pages().scenarios(train=0, sweep=2).write("read.py", READER)
    result = project.learn(
        f"--tfgrpo-actor={program('read.py', project.root, where)}", "--tfgrpo-group-size=2"
    )
    rollouts = project.events("rollout")
    given = [r["rollout_id"] for r in rollouts if where == "file" or r["seed"] % 2]
    assert len(given) > 0
    report = project.report()
    found = report["reach"]["decoys"]
    assert sorted(one["rollout"] for one in found) == sorted(given)
    assert {one["where"] for one in found} == {"answer" if where == "answer" else "deep/er/result.txt"}
    assert all(one["scenario"] in one["rollout"] for one in found)
    assert report["epochs"][0]["gt_score"]["mean"] == 0.0
    (warning,) = (text for text in report["warnings"] if "decoy" in text)
    assert given[0] in warning or given[-1] in warning
    result.stdout.fnmatch_lines(["*TfgrpoWarning: * a wrong answer that only the run's decoy*"])
    (run,) = project.runs()
    assert "decoy file contains" in (run / "report.html").read_text()
    assert not (run / "answers.json").exists()


@pytest.mark.parametrize("where", ["answer", "file"])
def test_a_replay_names_the_agent_that_gave_a_decoy_when_it_was_recorded(
    project: Project, where: str
) -> None:
    project.scenarios(train=0, sweep=2).write("read.py", READER)
    actor = program("read.py", project.root, where)
    project.learn(f"--tfgrpo-actor={actor}", "--tfgrpo-group-size=2", "--tfgrpo-record=r.jsonl")
    recorded = project.report()
    project.learn("--tfgrpo-actor=replay:r.jsonl", "--tfgrpo-group-size=2")
    replayed = project.report()
    assert recorded["reach"]["decoys"]

    def without_id(report: Mapping[str, Any], value: object) -> str:
        return json.dumps(value).replace(str(report["run_id"]), "")

    for key in ("reach", "warnings"):
        assert without_id(replayed, replayed[key]) == without_id(recorded, recorded[key])


def test_a_killed_run_keeps_its_decoys_and_who_gave_them_when_it_is_resumed(project: Project) -> None:
    project.scenarios(train=0, sweep=4).write("read.py", READER + "import time\ntime.sleep(0.05)\n")
    options = (f"--tfgrpo-actor={program('read.py', project.root, 'answer')}", "--tfgrpo-concurrency=1")
    process = project.start(*options)
    project.wait_for_rollouts(process, 6)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (run,) = project.runs()
    decoys = (run / "answers.json").read_text()
    before = {r["rollout_id"]: r.get("decoy") for r in project.events("rollout")}
    assert "answer" in before.values()
    process = project.start(*options, "--tfgrpo-resume")
    while process.poll() is None and len(project.events("rollout")) < len(before) + 2:
        time.sleep(0.005)
    if process.poll() is None and (run / "answers.json").exists():
        assert (run / "answers.json").read_text() == decoys
    process.communicate()
    after = {r["rollout_id"]: r.get("decoy") for r in project.events("rollout")}
    assert before.items() <= after.items()
    named = {one["rollout"] for one in project.report()["reach"]["decoys"]}
    assert named == {id_ for id_, used in after.items() if used}
    given = {r["rollout_id"]: r["answer"] for r in project.events("rollout")}
    assert {given[id_] for id_ in named} <= set(json.loads(decoys).values())


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"actor": "offline"}, None),
        ({"actor": "python:agent:right"}, "it runs inside pytest"),
        (
            {"actor": "python:agent:right", "executor": "process:1"},
            "it runs in a worker process, which reads what pytest can",
        ),
        ({"actor": program("look.py")}, "it runs without a sandbox"),
    ],
)
def test_the_report_says_whether_answers_were_in_reach(
    project: Project, settings: Mapping[str, str], why: str | None
) -> None:
    project.pages().scenarios(train=0, sweep=1).write("look.py", UPWARDS).ini(**settings)
    result = project.learn("-v")
    assert project.report().get("reach", {}).get("why") == why
    (run,) = project.runs()
    assert ("the agent could read" in (run / "report.html").read_text()) == (why is not None)
    assert ("the agent could read" in result.stdout.str()) == (why is not None)
