"""What the terminal and the report say of rollouts without an answer."""

import json

from support.project import Project

from pytest_tfgrpo.core.texts.text import gist

CRASHING = """
def solve(context):
    if context.seed % 2:
        helper(context)
    return "3"


def helper(context):
    raise KeyError(f"no field in row {context.seed}")


def cut_off(context):
    if "<experiences" not in context.prompt.system and context.seed % 2:
        raise OSError("x" * 3000 + "\\nthe last line")
    return {"answer": "3", "frames": [{"kind": "tool", "name": "a" if context.seed % 4 else "b"}]}


def lonely(context):
    raise ConnectionRefusedError("[Errno 111] Connection refused")
"""


def said(project: Project, *args: str) -> str:
    return " ".join(project.learn(*args).stdout.str().split())


def test_a_crash_is_told_by_its_exception_with_sweeps_and_an_example(project: Project) -> None:
    project.agent(CRASHING).scenarios(train=2, sweep=4).ini(actor="python:agent2:solve", group_size=4)
    text = said(project, "-v")
    (row,) = project.report()["fault_messages"]
    assert (row["kind"], row["code"]) == ("failed", "crash")
    assert row["text"].startswith("KeyError: 'no field in row ")
    assert sum(row["sweeps"].values()) == row["n"] == project.report()["faults"]["failed"]["crash"]
    assert set(row["sweeps"]) == {"baseline", "epoch1", "epoch2", "epoch3-eval"}
    assert f"{row['n']} x crash: {row['text']} (baseline {row['sweeps']['baseline']}" in text
    assert f"tfgrpo show {row['example']}" in text


def test_what_the_clusters_tell_is_not_told_twice(project: Project) -> None:
    project.agent(CRASHING).scenarios(train=2, sweep=4).ini(actor="python:agent2:solve", group_size=4)
    assert said(project).count("KeyError: ") == 1


def test_a_crash_of_training_alone_has_a_line_with_an_id(project: Project) -> None:
    project.agent(
        "def solve(context):\n"
        "    if 'train' in context.task.id:\n"
        "        raise RuntimeError('only there')\n"
        "    return '4'\n"
    )
    project.scenarios(train=2, sweep=2).ini(actor="python:agent2:solve")
    project.learn().stdout.re_match_lines([r"  8 x crash: RuntimeError: only there +e1\.suite-train\d\.r\d"])


def test_a_failing_item_shows_the_exception_and_the_end_of_its_traceback(project: Project) -> None:
    project.agent(CRASHING).scenarios(train=0, sweep=2).ini(actor="python:agent2:solve", eval_rollouts=4)
    shown = project.run().stdout.str()
    assert "failed: crash: KeyError: 'no field in row" in shown
    assert "in helper" in shown
    assert "tfgrpo show" not in shown


def test_a_long_message_keeps_its_end(project: Project) -> None:
    project.agent(CRASHING).scenarios(train=0, sweep=2).ini(actor="python:agent2:cut_off", eval_rollouts=4)
    assert "the last line" in project.run().stdout.str()


def test_a_refused_connection_of_a_python_agent_is_an_error_and_not_scored(project: Project) -> None:
    project.agent(CRASHING).scenarios(train=0, sweep=2).ini(actor="python:agent2:lonely")
    result = project.run()
    result.stdout.fnmatch_lines(
        ["*every rollout is an error: network: ConnectionRefusedError: *Connection refused*"]
    )
    assert result.ret == 1


def test_sweeps_that_differ_in_failures_are_warned_of(project: Project) -> None:
    project.agent(
        "def solve(context):\n"
        "    taught = '<experiences' in context.prompt.system\n"
        "    if 'eval' in context.task.id and not taught and context.seed % 2:\n"
        "        raise RuntimeError('flaky')\n"
        "    tool = 'count' if context.seed % 3 == 0 else 'guess'\n"
        "    frame = {'kind': 'tool', 'name': tool}\n"
        "    return {'answer': '3' if tool == 'count' else '4', 'frames': [frame]}\n"
    )
    project.scenarios(train=6, sweep=4).ini(
        actor="python:agent2:solve", group_size=6, acceptance="off", eval_mode="separate"
    )
    project.learn()
    found = [w for w in project.report()["warnings"] if "without an answer: a part" in w]
    before, after = project.report()["epochs"][0], project.report()["epochs"][-1]
    assert (before["mode"], after["mode"]) == ("baseline", "eval")
    assert project.report()["library"]["lessons"]
    (warning,) = found
    assert "has 0 errors and 0 rollouts without an answer: a part of the difference" in warning


def test_a_run_without_faults_says_nothing_of_them(project: Project) -> None:
    project.scenarios().ini(actor="python:agent:right")
    project.learn()
    assert "fault_messages" not in project.report()
    assert "without an answer" not in json.dumps(project.report()["warnings"])


def test_the_gist_of_a_traceback_is_its_exception() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nValueError: no idea\n'
    assert gist(trace) == "ValueError: no idea"
    assert gist(trace + "with: a second line\n  indented") == "with: a second line"
    assert gist(f"the program ended with status 1; its stderr ends: {trace}") == (
        "the program ended with status 1; its stderr ends: ValueError: no idea"
    )
    assert gist(trace[36:]) == "ValueError: no idea"
    again = "During handling of the above exception, another exception occurred:"
    assert gist(f"the program ended with status 1; its stderr ends: 048, in send\n{again}\n\n{trace}") == (
        "the program ended with status 1; its stderr ends: ValueError: no idea"
    )
    assert gist("plain words\nof two lines") == "plain words of two lines"
