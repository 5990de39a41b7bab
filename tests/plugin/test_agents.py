"""Agents that misbehave cost one rollout, not the run."""

import pytest
from support.project import Project


def test_keys_that_nobody_knows_change_no_score_and_are_shown(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write(
        "talker.py",
        """
def solve(context):
    frame = {"kind": "tool", "name": "count", "output": "3", "span": "a7"}
    return {"answer": "3", "frames": [frame], "finish_reason": "password=hunter2horse"}
""",
    )
    project.scenarios("extra").ini(task_id="demo", record="recording.jsonl")
    project.run("--tfgrpo", "--tfgrpo-actor", "python:talker:solve")
    assert {row["gt_score"]["mean"] for row in project.report()["epochs"]} == {1.0}
    assert project.cli("show", "e3.extra-eval0.r0") == 0
    shown = capsys.readouterr().out
    assert '  extra:\n    {\n     "span": "a7"\n    }\n' in shown
    assert '\nextra:\n  {\n   "finish_reason": "password=[redacted:named]"\n  }\n' in shown
    recorded = (project.root / "recording.jsonl").read_text()
    assert recorded.count('"extra":{"span":"a7"}') > 0
    assert "hunter2horse" not in recorded
    project.run("--tfgrpo", "--tfgrpo-actor", "replay:recording.jsonl")
    assert project.cli("show", "e3.extra-eval0.r0") == 0
    assert '"finish_reason": "password=[redacted:named]"' in capsys.readouterr().out
