"""The CI files that others copy or name: their shell steps, in projects with and without prompt packs."""

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from support import ROOT
from support.tools import require_tool
from support.workflows import EXAMPLES, Job, read, run_job, run_script, run_steps

from pytest_tfgrpo import cli

PAID = EXAMPLES / "ci-paid.yml"
GITLAB = EXAMPLES / "gitlab-ci.yml"
ACTION = ROOT / "action.yml"
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
KEY = "key-of-the-suite"
AGENT = f"""
import os

def solve(context):
    assert os.environ["OPENAI_API_KEY"] == "{KEY}"
    with open("calls.log", "a") as file:
        file.write(f"{{context.scenario.id}} {{context.seed}}\\n")
    frame = {{"kind": "model", "name": "m", "cost_usd": 0.01}}
    return {{"answer": os.environ.get("ANSWER", "3"), "frames": [frame]}}

solve.paid = True
"""
INI = """
[pytest]
tfgrpo_actor = python:agent:solve
tfgrpo_gate_min_mean = 0.5
tfgrpo_concurrency = 1
"""
SCENARIOS = 6
CALLS = 3 * SCENARIOS


@pytest.fixture
def checkout(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a paid agent, as a runner checks it out."""
    require_tool("bash")
    for name in ("OPENAI_API_KEY", "ANSWER"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "checkout"
    assert cli.main(["init", str(folder)]) == 0
    (folder / "pyproject.toml").unlink()
    shutil.rmtree(folder / "fixtures")
    if getattr(request, "param", "") != "packs":
        shutil.rmtree(folder / "prompt-packs")
    rows = (f"words-{n},eval,How many words has letter {n} a b?,3\n" for n in range(SCENARIOS))
    (folder / "words.scenarios.csv").write_text("id,split,prompt,answer\n" + "".join(rows))
    (folder / "agent.py").write_text(AGENT)
    (folder / "pytest.ini").write_text(INI)
    (folder / "requirements.txt").write_text("pytest-tfgrpo\n")
    return folder


BOTH = pytest.mark.parametrize("checkout", ["packs", "no packs"], indirect=True)


def has_packs(checkout: Path) -> bool:
    return (checkout / "prompt-packs").is_dir()


def again(folder: Path) -> None:
    """Leave what a checkout has, for the next attempt on another machine; calls are counted on."""
    shutil.rmtree(folder / "out")
    (folder / "junit.xml").unlink()


def calls(folder: Path) -> list[str]:
    log = folder / "calls.log"
    return log.read_text().splitlines() if log.exists() else []


def gate(folder: Path) -> str:
    (case,) = (
        case
        for case in ElementTree.parse(folder / "junit.xml").iter("testcase")
        if case.get("name") == "gate"
    )
    return next((child.tag for child in case if child.tag != "properties"), "passed")


def offline(checkout: Path, key: str, event: str) -> Job:
    values = {"secrets.OPENAI_API_KEY": key, "github.event_name": event}
    return run_job(PAID, "offline", checkout, values=values)


def paid(checkout: Path, cache: Path, *, budget: str = "", answer: str = "3") -> Job:
    values = {"secrets.OPENAI_API_KEY": KEY, "vars.EVAL_BUDGET_USD": budget}
    return run_job(PAID, "paid", checkout, values=values, environ={"ANSWER": answer}, cache=cache)


@BOTH
def test_a_pull_request_from_a_fork_runs_what_is_free_and_says_what_is_not(checkout: Path) -> None:
    job = offline(checkout, "", "pull_request")
    assert not job.failed, job.output
    assert (job.outputs, calls(checkout)) == ({}, [])
    assert job.summary.startswith("The paid gate does not run: OPENAI_API_KEY is empty")
    assert ("no prompt pack in" in job.output) is not has_packs(checkout)
    assert "ok  6 scenarios in 1 file: 6 eval" in job.output
    assert "words.scenarios.csv::words-5" in job.output


def test_the_branch_without_its_key_is_red_and_with_it_goes_on(checkout: Path) -> None:
    assert offline(checkout, "", "push").failed
    job = offline(checkout, KEY, "push")
    assert (job.failed, job.outputs, job.summary) == (False, {"key": "yes"}, "")
    assert KEY not in job.output


def test_a_fork_replays_the_recording_and_a_changed_answer_is_red(checkout: Path) -> None:
    record = run_script(
        ["pytest --tfgrpo-record=recording.jsonl"],
        checkout,
        {"TFGRPO_ALLOW_PAID": "true", "OPENAI_API_KEY": KEY},
    )
    assert not record.failed, record.output
    paid_for = calls(checkout)
    for job in (offline(checkout, "", "pull_request"), gitlab("offline", checkout)):
        assert not job.failed, job.output
    recording = checkout / "recording.jsonl"
    recording.write_text(recording.read_text().replace('"answer":"3"', '"answer":"4"'))
    assert offline(checkout, "", "pull_request").failed
    assert calls(checkout) == paid_for


def test_a_budget_that_is_used_up_is_red_and_the_job_again_pays_for_nothing_twice(
    checkout: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    first = paid(checkout, cache, budget="0.05")
    assert first.failed
    assert 0 < len(calls(checkout)) < CALLS
    again(checkout)
    second = paid(checkout, cache, budget="1")
    assert not second.failed, second.output
    assert len(calls(checkout)) == len(set(calls(checkout))) == CALLS
    assert gate(checkout) == "passed"
    assert second.summary.startswith("## tfgrpo: gate passed\n")
    assert all(second.uploaded.values()), second.uploaded


def test_a_job_that_came_to_its_end_is_judged_anew_when_it_runs_again(checkout: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = paid(checkout, cache, answer="4")
    assert (first.failed, gate(checkout), len(calls(checkout))) == (True, "failure", CALLS)
    again(checkout)
    second = paid(checkout, cache)
    assert not second.failed, second.output
    assert (gate(checkout), len(calls(checkout))) == ("passed", 2 * CALLS)


def gitlab(job: str, checkout: Path, **environ: str) -> Job:
    pipeline = read(GITLAB)
    variables = pipeline[job].get("variables", {})
    return run_script(pipeline[job]["script"], checkout, {**variables, **environ})


@BOTH
def test_gitlab_runs_both_jobs_and_goes_on_with_what_a_first_attempt_left(checkout: Path) -> None:
    free = gitlab("offline", checkout)
    assert not free.failed, free.output
    assert "The paid gate does not run" in free.output
    first = gitlab("paid", checkout, OPENAI_API_KEY=KEY, TFGRPO_BUDGET_USD="0.05")
    assert first.failed
    (checkout / "junit.xml").unlink()
    second = gitlab("paid", checkout, OPENAI_API_KEY=KEY)
    assert not second.failed, second.output
    assert len(calls(checkout)) == len(set(calls(checkout))) == CALLS
    found = [sorted(checkout.glob(path)) for path in read(GITLAB)["paid"]["artifacts"]["paths"]]
    assert all(found)


@pytest.mark.parametrize("checkout", ["packs"], indirect=True)
def test_gitlab_ends_at_the_line_that_fails(checkout: Path) -> None:
    (checkout / "prompt-packs" / "starter" / "system.md").write_text("changed")
    job = gitlab("offline", checkout)
    assert job.failed
    assert "review the change and run 'tfgrpo stamp'" in job.output
    assert "ok  6 scenarios" not in job.output


def act(checkout: Path, cache: Path, arguments: str = "", **environ: str) -> Job:
    action = read(ACTION)
    values = {f"inputs.{name}": one["default"] for name, one in action["inputs"].items()}
    values |= {"inputs.arguments": arguments} if arguments else {}
    return run_steps(action["runs"]["steps"], checkout, values=values, environ=environ, cache=cache)


@BOTH
def test_the_action_is_green_and_goes_on_with_what_a_first_attempt_left(
    checkout: Path, tmp_path: Path
) -> None:
    settings = {"OPENAI_API_KEY": KEY, "TFGRPO_ALLOW_PAID": "true"}
    assert act(checkout, tmp_path / "cache", TFGRPO_BUDGET_USD="0.05", **settings).failed
    again(checkout)
    job = act(checkout, tmp_path / "cache", **settings)
    assert not job.failed, job.output
    assert len(calls(checkout)) == len(set(calls(checkout))) == CALLS
    assert all(job.uploaded.values()), job.uploaded


def test_no_word_of_an_input_is_taken_for_a_command(checkout: Path, tmp_path: Path) -> None:
    hostile = "--tfgrpo-eval-rollouts=3 ; touch pwned $(touch pwned) `touch pwned` \" * ' -k words"
    job = act(checkout, tmp_path / "cache", hostile, OPENAI_API_KEY=KEY, TFGRPO_ALLOW_PAID="true")
    assert job.failed
    assert not (checkout / "pwned").exists()


@BOTH
def test_hooks_pass_a_good_project_and_stop_a_broken_one(checkout: Path) -> None:
    def codes() -> list[int]:
        return [run_script([hook["entry"]], checkout, {}).steps[0][1] for hook in HOOKS]

    assert codes() == [0, 0]
    file = checkout / "words.scenarios.csv"
    file.write_text(file.read_text() + "words-0,eval,Again?,3\n")
    assert codes() == [0, 1]
    if has_packs(checkout):
        (checkout / "prompt-packs" / "starter" / "system.md").write_text("changed")
        assert codes() == [1, 1]
