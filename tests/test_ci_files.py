"""The CI files that others copy or name: what must hold for each of them, without running it."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import ROOT
from support.examples import blocks_of
from support.workflows import EXAMPLES, read

from pytest_tfgrpo import cli
from pytest_tfgrpo.core.files import SCENARIO_SUFFIXES

WORKFLOWS = ("ci.yml", "ci-paid.yml", "replay.yml")
ACTION = read(ROOT / "action.yml")
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
MAJOR = re.compile(r"actions/[a-z-]+(/[a-z]+)?@v\d+")


def faults(workflow: Mapping[str, Any]) -> Iterator[str]:
    """Yield what makes a workflow unsafe or wasteful."""
    if "pull_request_target" in workflow["on"]:
        yield "code of anybody runs beside secrets"
    if workflow.get("permissions") != {"contents": "read"}:
        yield "permissions"
    if not workflow.get("concurrency", {}).get("cancel-in-progress"):
        yield "jobs of old commits go on"
    for name, job in workflow["jobs"].items():
        if "timeout-minutes" not in job:
            yield f"{name}: no time limit"
        if "env" in job:
            yield f"{name}: each step gets what one needs"
        yield from (f"{name}: {fault}" for step in job["steps"] for fault in step_faults(step))


def step_faults(step: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a step of a job or of a composite action."""
    if "${{" in step.get("run", ""):
        yield "an expression in the text of a script"
    if "secrets." in str({key: value for key, value in step.items() if key != "env"}):
        yield "a secret outside of env"
    if "uses" in step and not MAJOR.fullmatch(step["uses"]):
        yield f"{step['uses']} is no major version"
    if step.get("uses", "").startswith("actions/checkout@") and step["with"] != {
        "persist-credentials": False
    }:
        yield "the checkout keeps its token"
    if step.get("uses", "").startswith("actions/setup-python@") and step["with"]["cache"] != "pip":
        yield "packages are loaded again"


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_to_copy_is_safe(name: str) -> None:
    assert [*faults(read(EXAMPLES / name))] == []


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("  pull_request:", "  pull_request_target:", "code of anybody runs beside secrets"),
        ("contents: read", "contents: write", "permissions"),
        ("cancel-in-progress: true", "cancel-in-progress: false", "jobs of old commits go on"),
        ("    timeout-minutes: 60\n", "", "paid: no time limit"),
        ("checkout@v6", "checkout@main", "offline: actions/checkout@main is no major version"),
        ("persist-credentials: false", "persist-credentials: true", "offline: the checkout keeps its token"),
        ('told="The', 'told="${{ github.head_ref }}', "offline: an expression in the text of a script"),
        ("  paid:\n", "  paid:\n    env: {}\n", "paid: each step gets what one needs"),
    ],
)
def test_each_fault_of_a_workflow_is_seen(tmp_path: Path, before: str, after: str, fault: str) -> None:
    text = (EXAMPLES / "ci-paid.yml").read_text()
    assert before in text
    file = tmp_path / "ci.yml"
    file.write_text(text.replace(before, after))
    assert fault in set(faults(read(file)))


def test_a_key_is_given_to_the_step_that_pays_and_to_the_one_that_looks_for_it() -> None:
    jobs = read(EXAMPLES / "ci-paid.yml")["jobs"]
    with_key = {
        (name, step["name"])
        for name, job in jobs.items()
        for step in job["steps"]
        if "secrets." in str(step.get("env"))
    }
    assert with_key == {("offline", "Is there a key?"), ("paid", "Eval scenarios and gates")}
    assert jobs["paid"]["needs"] == "offline"
    assert jobs["paid"]["if"] == "needs.offline.outputs.key == 'yes'"


def test_the_action_takes_no_input_into_a_script_and_uses_each() -> None:
    steps = ACTION["runs"]["steps"]
    assert ACTION["runs"]["using"] == "composite"
    assert [fault for step in steps for fault in step_faults(step)] == []
    assert {step["shell"] for step in steps if "run" in step} == {"bash"}
    assert all(one["description"] and one["default"] for one in ACTION["inputs"].values())
    used = set(re.findall(r"\$\{\{ inputs\.([a-z-]+) \}\}", str(steps)))
    assert used == ACTION["inputs"].keys()


def test_the_pipeline_of_gitlab_pays_once_at_a_time_and_only_with_a_key() -> None:
    pipeline = read(EXAMPLES / "gitlab-ci.yml")
    assert pipeline["default"]["interruptible"]
    jobs = {name: pipeline[name] for name in pipeline["stages"]}
    for job in jobs.values():
        assert job["timeout"]
        assert job["artifacts"]["when"] == "always"
        assert job["artifacts"]["reports"] == {"junit": "junit.xml"}
    assert jobs["paid"]["rules"] == [{"if": "$OPENAI_API_KEY"}]
    assert jobs["paid"]["resource_group"]
    assert {"key": "tfgrpo-$CI_PIPELINE_ID", "paths": ["out"], "when": "always"} in jobs["paid"]["cache"]
    assert "OPENAI_API_KEY" not in pipeline["variables"] | jobs["paid"]["variables"]


def test_each_hook_calls_a_command_that_there_is() -> None:
    assert [hook["id"] for hook in HOOKS] == ["tfgrpo-stamps", "tfgrpo-scenarios"]
    for hook in HOOKS:
        program, *words = shlex.split(hook["entry"])
        assert program == "tfgrpo"
        assert cli.parser().parse_args(words).work.startswith("suite.")
        assert (hook["language"], hook["pass_filenames"]) == ("python", False)


def test_the_hook_of_scenarios_sees_each_of_their_files() -> None:
    pattern = HOOKS[1]["files"]
    assert all(re.search(pattern, f"deep/a{suffix}") for suffix in SCENARIO_SUFFIXES)
    assert not any(re.search(pattern, name) for name in ("a.yaml", "scenario.py", "a.scenario.yaml.bak"))


def test_the_page_names_inputs_and_hooks_that_there_are() -> None:
    blocks = {
        word: yaml.safe_load(block.text)
        for block in blocks_of((ROOT / "docs" / "ci.md").read_text(encoding="utf-8"))
        for word in block.words
        if word in ("action", "hooks")
    }
    (step,) = (step for step in blocks["action"]["steps"] if "tfgrpo" in step["uses"])
    assert step["with"].keys() <= ACTION["inputs"].keys()
    (repository,) = blocks["hooks"]["repos"]
    assert [hook["id"] for hook in repository["hooks"]] == [hook["id"] for hook in HOOKS]
    assert repository["repo"].endswith(step["uses"].partition("@")[0])
    assert repository["rev"] == step["uses"].partition("@")[2]
