"""Runs that are killed or interrupted, and resumed."""

import json
import random
import signal
import time
from collections import Counter

import pytest
from support.frozen import Frozen
from support.plugin.resume import comparable, complete
from support.preparing import refusal
from support.project import Project

PLANNED = 3 * (4 + 6 * 2 + 4)


@pytest.fixture
def slow(project: Project) -> Project:
    project.agent("""
import asyncio
from pathlib import Path


async def solve(context):
    with Path(__file__).with_name("calls.log").open("a") as file:
        file.write(f"{context.scenario.id} {context.seed}\\n")
    await asyncio.sleep(0.01)
    right = context.seed % 3 == 0 or "<experiences" in context.prompt.system
    frame = {"kind": "tool", "name": "count" if right else "guess", "tokens": 3, "cost_usd": 0.001}
    return {"answer": "3" if right else "4", "frames": [frame]}
""")
    return project.ini(actor="python:agent2:solve", group_size=3, concurrency=2).scenarios(train=6, sweep=4)


def finish(project: Project, *args: str) -> None:
    process = project.start(*args)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output


def test_a_run_killed_at_random_points_resumes_to_the_same_report(slow: Project) -> None:
    finish(slow)
    (whole,) = slow.runs()
    expected = comparable(whole)
    (slow.root / "out").rename(slow.root / "reference")
    (slow.root / "calls.log").unlink()
    places = random.Random(5)
    kills = 0
    resume: list[str] = []
    for target in sorted(places.sample(range(1, PLANNED), 5)):
        process = slow.start(*resume)
        slow.wait_for_rollouts(process, target)
        time.sleep(places.random() * 0.02)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
        resume = ["--tfgrpo-resume"]
    assert kills >= 3
    finish(slow, *resume)
    (folder,) = slow.runs()
    assert comparable(folder) == expected
    assert slow.manifest()["status"] == "complete"
    # Each kill can cost what was in flight or finished within one group commit, and no more.
    assert PLANNED <= len(slow.calls) <= PLANNED + kills * 16
    rollouts = Counter(rollout["rollout_id"] for rollout in slow.events("rollout"))
    assert len(rollouts) == PLANNED
    again = {id_ for id_, times in rollouts.items() if times > 1}
    assert len(again) <= 2 * kills  # a side of a pair whose other side was not on file
    assert not [id_ for id_ in again if ".e1." in id_ or ".e2." in id_]


def test_an_interrupt_ends_cleanly_with_everything_on_disk_and_can_be_resumed(
    slow: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    process = slow.start()
    slow.wait_for_rollouts(process, 20)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert "the run is cancelled: interrupted" in output
    assert "Traceback" not in output
    (folder,) = slow.runs()
    manifest = slow.manifest()
    assert (manifest["status"], manifest["reason"]) == ("cancelled", "interrupted")
    assert slow.cli("runs") == 0
    assert f"{folder.name}  cancelled  fail " in capsys.readouterr().out
    paid = len(slow.calls)
    finish(slow, "--tfgrpo-resume", folder.name)
    assert slow.manifest()["status"] == "complete"
    assert len(slow.calls) <= PLANNED + 4
    assert len(slow.calls) > paid


def test_resume_refuses_what_has_changed_by_name(slow: Project) -> None:
    process = slow.start()
    slow.wait_for_rollouts(process, 5)
    process.kill()
    process.communicate()
    result = slow.learn("--tfgrpo-resume", "--tfgrpo-group-size=4", "--tfgrpo-eval-rollouts=3")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cannot be resumed: settings changed*"])
    slow.scenarios(train=7, sweep=4)
    slow.learn("--tfgrpo-resume").stderr.fnmatch_lines(["*cannot be resumed: scenarios changed*"])


def test_two_processes_cannot_resume_one_run_at_once(slow: Project) -> None:
    process = slow.start()
    slow.wait_for_rollouts(process, 5)
    process.kill()
    process.communicate()
    first = slow.start("--tfgrpo-resume")
    slow.wait_for_rollouts(first, 8)
    second = slow.learn("--tfgrpo-resume")
    assert second.ret == pytest.ExitCode.USAGE_ERROR
    second.stderr.fnmatch_lines(["*cannot be resumed: another process is running it*"])
    first.communicate(timeout=100)
    assert first.returncode == 0


def test_judged_rollouts_of_marked_functions_are_not_judged_again(project: Project) -> None:
    project.checker("""
import os, signal
from pathlib import Path

@pytest.mark.tfgrpo(domain="text", split="eval", prompt="How many words has 'a b c'?")
def test_it(rollout):
    log = Path(__file__).with_name("judged.log")
    with log.open("a") as file:
        file.write(rollout.rollout_id + "\\n")
    if len(log.read_text().splitlines()) == 3:
        import time
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    assert rollout.answer == "3"
""")
    project.ini(actor="python:agent:half", group_size=4)
    process = project.start()
    process.communicate(timeout=100)
    assert process.returncode == -signal.SIGKILL
    finish(project, "--tfgrpo-resume")
    judged = Counter((project.root / "judged.log").read_text().split())
    assert len(judged) == 4
    assert sum(judged.values()) <= 5
    assert project.manifest()["status"] == "complete"


def test_the_process_leaves_no_workspace_behind(slow: Project) -> None:
    finish(slow)
    assert not list((slow.root / "out").rglob("work"))
    assert (slow.root / "out").is_dir()


def test_a_resumed_test_function_finds_the_workspace_as_the_agent_left_it(project: Project) -> None:
    project.agent("""
def write(context):
    (context.workspace / "x.txt").write_text("hello")
    return "done"
""")
    project.checker("""
import os
from pathlib import Path

@pytest.mark.tfgrpo(domain="text", split="eval", prompt="Write hello into x.txt")
def test_it(rollout, rollout_workspace):
    if not Path(__file__).with_name("again").exists():
        Path(__file__).with_name("again").touch()
        raise KeyboardInterrupt
    assert (rollout_workspace / "x.txt").read_text() == "hello"
""")
    project.ini(actor="python:agent2:write")
    process = project.start()
    process.communicate(timeout=100)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    finish(project, "--tfgrpo-resume")
    assert [row["gt_score"]["mean"] for row in project.report()["epochs"]] == [1.0]
    assert not list((project.root / "out").rglob("x.txt"))


def test_each_difference_from_the_run_to_resume_is_named(project: Project) -> None:
    project.scenarios(train=12, sweep=12).ini(actor="python:agent:learner", group_size=4)
    project.learn()
    (project.runs()[-1].parent.parent / "library.json").rename(project.root / "library.json")
    manifest = {"id": "o", "domain": "*", "system": "system.md", "inject": [], "experience_slots": 4}
    project.write("other-packs/o/system.md", "Solve.\n")
    project.write("other-packs/o/manifest.json", json.dumps(manifest))
    assert project.cli("stamp", str(project.root / "other-packs")) == 0
    project.learn("--tfgrpo-budget-s", "0.001")
    assert project.manifest()["status"] == "incomplete"
    for what, flag in {
        "settings": "--tfgrpo-seed=9",
        "actor": "--tfgrpo-actor=python:agent:half",
        "packs": "--tfgrpo-prompt-packs=other-packs",
        "library": "--tfgrpo-library=library.json",
    }.items():
        said = refusal(project, "--tfgrpo", "--tfgrpo-resume", flag)
        assert f"cannot be resumed: {what} changed since" in said
    result = project.learn("--tfgrpo-resume", "-k", "eval0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cannot be resumed: scenarios changed since*"])
    assert project.learn("--tfgrpo-resume").ret == 0


def test_a_run_of_smaller_sweeps_by_default_is_resumed_with_their_size(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.scenarios(train=2, sweep=2).ini(actor="python:agent:right", concurrency=1)
    with monkeypatch.context() as earlier:
        earlier.setattr("pytest_tfgrpo.core.settings.SWEEP_ROLLOUTS", 2)
        learn(project, "--tfgrpo-budget-s=0.001")
    assert project.manifest()["status"] == "incomplete"
    refused = learn(project, "--tfgrpo-resume")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*have 2 rollouts of each scenario, not 5; set eval_rollouts = 2, or*"])
    other = learn(project, "--tfgrpo-resume", "--tfgrpo-eval-rollouts=2", "--tfgrpo-seed=3")
    other.stderr.fnmatch_lines(["*cannot be resumed: settings changed since*"])
    assert learn(project, "--tfgrpo-resume", "--tfgrpo-eval-rollouts=2").ret == 0
    assert [row["rollouts"] for row in project.report()["epochs"] if row["mode"] == "eval"] == [4]


def learn(project: Project, *args: str) -> pytest.RunResult:
    """Learn with sweeps of the size that a user has."""
    return project.pytester.runpytest_inprocess("-p", "no:cacheprovider", "--tfgrpo", *args)


@pytest.mark.parametrize("left", [(), ("report.json",), ("report.json", "report.html"), ("stale",)])
def test_a_complete_run_that_was_killed_before_its_files_is_only_reported(
    frozen: Frozen, left: tuple[str, ...]
) -> None:
    project = frozen(complete).pages()
    (folder,) = project.runs()
    expected, journal, calls = comparable(folder), (folder / "journal.jsonl").read_bytes(), project.calls
    if left == ("stale",):  # the manifest of an earlier end, before the run was resumed
        manifest = project.manifest() | {"status": "cancelled", "finished_at": "2026-01-31T12:00:00.000Z"}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    else:
        for name in {"exposures.jsonl", "report.json", "report.html", "manifest.json"} - set(left):
            (folder / name).unlink()
    result = project.learn("--tfgrpo-resume")
    assert result.ret == 0
    result.assert_outcomes(passed=4 * 2 + 12 * 2 + 1)
    assert comparable(folder) == expected
    assert (folder / "report.html").exists()
    assert project.manifest()["status"] == "complete"
    assert (folder / "journal.jsonl").read_bytes() == journal
    assert project.calls == calls
    assert project.runs() == [folder]
    project.learn("--tfgrpo-resume").stderr.fnmatch_lines(["*no incomplete run*"])


def test_a_run_reported_late_exits_by_its_gate(project: Project) -> None:
    project.scenarios(train=2, sweep=12).ini(actor="python:agent:unlearner")
    assert project.learn().ret == pytest.ExitCode.TESTS_FAILED
    (project.runs()[-1] / "manifest.json").unlink()
    result = project.learn("--tfgrpo-resume")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["gate  FAILED*"])
    assert project.manifest()["gate"]["outcome"] == "fail"


AGAIN = """
import os, signal
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_keyboard_interrupt(excinfo):
    os.kill(os.getpid(), signal.SIGINT)  # the second Ctrl-C comes while pytest shows the first
    import time
    time.sleep(1)
"""


def test_two_interrupts_leave_no_result_of_a_test_function_that_did_not_run(project: Project) -> None:
    project.checker("""
import os, signal
from pathlib import Path

@pytest.mark.tfgrpo(domain="text", split="eval", prompt="How many words has 'a b c'?")
def test_it(rollout):
    with Path(__file__).with_name("judged.log").open("a") as file:
        file.write(rollout.rollout_id + "\\n")
    if rollout.index == 2 and os.environ.get("INTERRUPT"):
        os.kill(os.getpid(), signal.SIGINT)
    assert rollout.answer == "3"
""")
    project.ini(actor="python:agent:right", group_size=6).conftest(AGAIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERRUPT", "1")
        project.start().communicate(timeout=100)
    assert len(project.events("judgement")) == 2
    assert not project.events("group")
    assert [end["status"] for end in project.events("finish")] in ([], ["cancelled"])
    finish(project, "--tfgrpo-resume")
    assert {result["outcome"] for result in project.events("judgement")} == {"score"}
    assert [row["gt_score"]["mean"] for row in project.report()["epochs"]] == [1.0]
    assert (
        max(Counter((project.root / "judged.log").read_text().split()).values()) == 2
    )  # the interrupted one


def test_a_test_function_that_ends_pytest_has_no_result(project: Project) -> None:
    project.checker("""
from pathlib import Path

@pytest.mark.tfgrpo(domain="text", split="eval", prompt="How many words has 'a b c'?")
def test_it(rollout):
    if not Path(__file__).with_name("again").exists():
        Path(__file__).with_name("again").touch()
        pytest.exit("enough", returncode=1)
    assert rollout.answer == "3"
""")
    project.ini(actor="python:agent:right")
    project.start().communicate(timeout=100)
    assert not project.events("judgement")
    finish(project, "--tfgrpo-resume")
    assert [row["gt_score"]["mean"] for row in project.report()["epochs"]] == [1.0]
