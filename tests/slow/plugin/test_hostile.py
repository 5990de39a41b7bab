"""What hostile actors, names and files can do to a terminal, a path or an exit code: nothing."""

import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
from support.project import Project

HANGING = """\
import os
import sys
import time
from pathlib import Path

Path(sys.argv[1], f"pid-{os.getpid()}").touch()
time.sleep(600)
"""


def test_sigterm_ends_a_run_cleanly_and_its_agents_with_it(project: Project) -> None:
    project.scenarios(train=0, sweep=1).write("hang.py", HANGING)
    actor = shlex.join([sys.executable, "hang.py", str(project.root)])
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--tfgrpo", "--tfgrpo-actor", f"command:{actor}"]
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and len(list(project.root.glob("pid-*"))) < 2:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert project.manifest()["reason"] == "interrupted", output
    agents = [int(path.name.removeprefix("pid-")) for path in project.root.glob("pid-*")]
    assert len(agents) >= 2
    for agent in agents:
        with pytest.raises(ProcessLookupError):
            os.kill(agent, 0)


HUGE = """
def act(context):
    import sys
    frame = {"kind": "tool", "name": "x", "cost_usd": 10**400 if context.seed % 2 else 0.1}
    return {"answer": "3", "frames": [frame]}
"""


@pytest.mark.parametrize("actor", ["python:agent2:act", "command:sh agent.sh"])
def test_a_cost_of_400_digits_is_the_agents_malformed_answer(project: Project, actor: str) -> None:
    frame = '{"frame": {"kind": "tool", "name": "x", "cost_usd": 1' + "0" * 400 + "}}"
    project.write("agent.sh", f"echo '{frame}'\necho '{{\"answer\": \"3\"}}'\n")
    project.scenarios(train=0, sweep=2).agent(HUGE).ini(actor=actor, eval_rollouts=4)
    result = project.run("--tfgrpo-out", "out")
    failures = [e["failure"] for e in project.events("rollout") if e["status"] == "failed"]
    assert failures
    for failure in failures:
        assert failure == {
            "code": "garbage",
            "message": "frame 1: Frame/cost_usd: a number of 401 digits is too large",
        }
    assert "Overflow" not in result.stdout.str()


HALVES = r"""
def act(context):
    frame = {"kind": "tool", "name": "t\\udfff", "output": "\\ud800", "error": "x\\ud83d"}
    return {"answer": "4 \\ud800 é 日本", "frames": [frame], "odd\\ud800": "\\ud800"}
"""
ODD_HOOKS = r"""
from pytest_tfgrpo.gate.verdict import RuleResult


class Rule:
    name = "house \\ud800"

    def judge(self, run, baseline, settings):
        return RuleResult(name=self.name, outcome="fail", message="m\\ud800 日本", advice="a\\udfff")


def pytest_tfgrpo_gate_rules():
    return [Rule()]


def pytest_tfgrpo_report_section():
    return ["odd \\ud800 é 日本"]


def pytest_tfgrpo_rollout():
    raise OSError("odd \\ud800")
"""


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_half_a_surrogate_pair_can_be_printed_and_written_anywhere(
    project: Project, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", f"{encoding}:strict")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root / "summary.md"))
    project.scenarios(train=2, sweep=2).conftest(ODD_HOOKS.replace("\\\\", "\\"))
    project.agent(HALVES.replace("\\\\", "\\")).ini(actor="python:agent2:act", group_size=2)
    process = project.start("--junit-xml", "junit.xml")
    output, _ = process.communicate(timeout=100)
    assert process.returncode == pytest.ExitCode.TESTS_FAILED
    for sign in ("INTERNALERROR", "UnicodeEncodeError", "Traceback"):
        assert sign not in output
    written = [path for path in (project.root / "out").rglob("*") if path.is_file()]
    for path in (*written, project.root / "summary.md", project.root / "junit.xml"):
        path.read_text("utf-8")
    assert {path.name for path in written} > {"report.html", "report.json", "manifest.json"}
    assert project.report()["sections"] == ["odd \ud800 é 日本"]
