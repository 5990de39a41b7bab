"""The command ``tfgrpo learn hook``: texts that work as they are."""

import re
from typing import get_args

import pytest
import yaml
from support.tools import tfgrpo

from pytest_tfgrpo.cli import parser
from pytest_tfgrpo.cli.learn.arguments import HOOKS
from pytest_tfgrpo.patterns.capture import hooks
from pytest_tfgrpo.patterns.jobs.manifest import CaptureTrigger, TestAuthor


@pytest.mark.parametrize("kind", HOOKS)
def test_each_calls_the_command_with_options_that_it_has(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tfgrpo("learn", "hook", kind)
    assert text == hooks.HOOKS[kind].text
    (call,) = re.findall(r"tfgrpo learn capture (--(?:.|\\\n)*)", text)
    words = re.findall(r'--[a-z-]+|"[^"]*"|[\w$]+', call)
    flags = [word for word in words if word.startswith("--")]
    assert {"--approver"} <= set(flags)
    given = [
        word
        for flag in flags
        for word in (flag, {"--trigger": "merge", "--tests-by": "agent"}.get(flag, "x"))
    ]
    known, unknown = parser().parse_known_args(["learn", "capture", *given])
    assert unknown == []
    assert known.trigger in get_args(CaptureTrigger)
    assert known.tests_by in get_args(TestAuthor)


def test_every_kind_is_listed() -> None:
    assert set(HOOKS) == set(hooks.HOOKS)


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_commands_of_agents_have_front_matter(kind: str) -> None:
    _, front, body = hooks.HOOKS[kind].text.split("---\n", 2)
    assert set(yaml.safe_load(front)) >= {"description", "argument-hint"}
    assert "$ARGUMENTS" in body


def test_the_job_is_yaml_and_hands_texts_of_others_over_in_variables() -> None:
    job = yaml.safe_load(hooks.HOOKS["ci"].text)["jobs"]["capture"]
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    assert len(scripts) == 2
    assert not any("${{" in script for script in scripts)
