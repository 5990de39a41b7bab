"""Prompts and forms with several authors in them: whatever each wrote, a reader finds who said what."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from support.builders import make_experience, make_frame, make_rollout, make_scenario
from support.completers import ScriptedCompleter
from support.teachers import (
    context_of,
    learn,
    library_of,
    operation,
    question,
    says,
    scored,
    staged,
    suite,
)
from support.voices import blocks_of, hostile, read_name, read_text, read_value, read_voices, usual

import pytest_tfgrpo
from pytest_tfgrpo.core.records import CheckResult, Failure, Frame, JudgeResult
from pytest_tfgrpo.core.scenarios import Attachment, Check, Criterion, SimulatedUser
from pytest_tfgrpo.engine.conversations.simulated_user import told
from pytest_tfgrpo.learning.optimizer.llm.critique import expected
from pytest_tfgrpo.learning.optimizer.llm.transcript import READ, SHOWN, transcript
from pytest_tfgrpo.scoring.judge.prompt import TEXT_MAX, shown

few = settings(max_examples=15, deadline=None)
plain = hostile.map(lambda text: text.replace("\x1b", "")[:80])
filled = plain.filter(str.strip)


def says_of(voice: str, opening: str) -> Any:
    assert voice.startswith(f"{opening} ")
    return read_text(voice.removeprefix(f"{opening} "))


def talk(*rows: tuple[str, str | None], frame: Frame) -> tuple[Frame, ...]:
    """Return the frames of a conversation: user and the answer before it, with `frame` in each turn."""
    users = [make_frame("script", kind="user", input=before, output=user) for user, before in rows]
    return tuple(one for user in users for one in (user, frame))


@few
@given(plain, plain, plain, plain, filled)
def test_a_judge_reads_who_said_what(user: str, agent: str, name: str, given_: str, came: str) -> None:
    frame = make_frame(name, input={given_: given_}, output=came)
    rollout = make_rollout(answer=agent, frames=talk((user, None), (user, agent), frame=frame))
    scenario = make_scenario(prompt=filled_prompt(user), input=[given_], rubric=(Criterion(text=agent),))
    scenario = replace(scenario, attachments=(Attachment(name=name, path=Path("x"), sha256="0" * 64),))
    text = shown(scenario, rollout)
    assert read_text(text["answer"]) == usual(agent)
    assert says_of(read_voices(text["criteria"])[0], "c1:") == usual(agent)
    prompt, data, attached = read_voices(text["task"])
    assert says_of(prompt, "prompt:") == usual(filled_prompt(user))
    assert json.loads(str(says_of(data, "input:"))) == [given_]
    assert read_name(attached.removeprefix("attached: ")) == (usual(name), "")
    first, step, answer, second, again, end = read_voices(text["steps"])
    assert says_of(first, "user:") == says_of(second, "user:") == usual(user)
    assert says_of(answer, "agent:") == usual(agent)
    assert end == "(what the agent said last is the answer)"
    assert again == step
    called, rest = read_name(step.removeprefix("1. "))
    value, rest = read_value(rest.removeprefix("("))
    assert (called, value) == (usual(name), {given_: given_})
    assert read_value(rest.removeprefix(") -> ")) == (usual(came), "")


def filled_prompt(text: str) -> str:
    return f"Do {text}"


@few
@given(plain, plain, plain, filled, filled)
def test_a_teacher_reads_who_said_what(user: str, agent: str, name: str, came: str, error: str) -> None:
    frame = make_frame(name, input=came, output=came, error=error)
    rollout = make_rollout(
        answer=filled_prompt(agent),
        frames=talk((user, None), (user, f"No. {agent}"), frame=frame),
        failure=Failure(code="timeout", message=error),
        checks=(CheckResult(kind="exact", weight=1.0, credit=0.0, reason=error),),
        opinion=JudgeResult(score=0.5, reason=came),
        run_id="RUN-0",
    )
    first, step, answer, second, _, end, failed, check, judge = read_voices(
        transcript(rollout, make_scenario())
    )
    assert says_of(first, "1. user says:") == says_of(second, "3. user says:") == usual(user)
    called, rest = read_name(step.removeprefix("2. tool "))
    value, rest = read_value(rest.removeprefix(" "))
    why, rest = read_value(rest.removeprefix(" failed with "))
    assert (called, value, why) == (usual(name), came, usual(error))
    assert says_of(rest, " ->") == usual(came)
    assert says_of(answer, "answer:") == usual(f"No. {agent}")
    assert says_of(end, "answer:") == usual(filled_prompt(agent))
    assert says_of(failed, "failed:") == usual(f"timeout: {error}")
    assert says_of(check, "check exact: failed,") == usual(error)
    assert says_of(judge, "judge:") == usual(came)


@settings(max_examples=5, deadline=None)
@given(plain)
def test_a_critique_and_a_consolidation_part_what_they_are_about(text: str) -> None:
    lesson = " ".join(f"Count {text}".split())
    library = library_of(make_experience(1, summary32=lesson))
    scenarios = suite(2, prompt=filled_prompt(text))
    teacher = ScriptedCompleter(staged(critique=says(operation(lesson=lesson[:500])), consolidation=says()))
    learn(
        context_of(
            [scored(s, answer=lambda n: f"{n} {text}") for s in scenarios], scenarios, library=library
        ),
        teacher,
    )
    critique, *_, consolidation = map(question, teacher.requests)
    found = dict(blocks_of(critique))
    assert read_text(found["task"]) == usual(filled_prompt(text))
    (line,) = found["lessons"].split("\n")
    assert read_value(line.rpartition(" tasks | ")[2] or line)[0] == usual(lesson)
    assert all(name.startswith("attempt") or name in ("task", "expected", "lessons") for name in found)
    for row in dict(blocks_of(consolidation))["proposals"].split("\n"):
        assert re.fullmatch(r"P\d \| ADD \| better [\d.]+, worse [\d.]+ \| do \| .*", row)
        assert read_value(row.partition(" | do | ")[2])[1] == ""


@few
@given(plain)
def test_checks_and_users_are_parted(text: str) -> None:
    scenario = make_scenario(checks=(Check(kind="exact", params={"value": text}),) * 2)
    for row in expected(scenario).split("\n"):
        assert read_value(row.partition(", weight 1: ")[2]) == ({"value": text}, "")
    user = SimulatedUser(goal=text, persona=filled_prompt(text), knows=filled_prompt(text), stop=text or "x")
    openings = [voice.partition(":")[0] for voice in read_voices(told(user)) if ":" in voice]
    assert [name for name in openings if name.startswith(("Who", "What", "The conv"))] == [
        "Who you are",
        "What you want",
        "What you know, and tell only when it is asked for or needed",
        "The conversation is over when",
    ]


def test_long_talks_are_shortened_voice_by_voice() -> None:
    frame = make_frame("look", input="x" * 5_000, output="y\n" * 5_000)
    rows = [(f"user: {n} " * 900, f"agent: {n} " * 900) for n in range(200)]
    rollout = make_rollout(answer="z", frames=talk(*rows, frame=frame))
    for text, most in (
        (shown(make_scenario(), rollout)["steps"], 2 * TEXT_MAX),
        (transcript(rollout, make_scenario()), READ),
        (transcript(rollout, make_scenario(), SHOWN), 1.3 * SHOWN),
    ):
        assert len(text) <= most
        assert all(
            re.match(r"user: |agent: |\d+\. |answer: |\(|check exact", voice) for voice in read_voices(text)
        )


PACKAGE = Path(pytest_tfgrpo.__file__).parent
BUILDERS = {
    "engine/conversations/simulated_user.py",
    "learning/optimizer/llm/critique.py",
    "learning/optimizer/llm/numbered_lessons.py",
    "learning/optimizer/llm/optimizer.py",
    "learning/optimizer/llm/teacher.py",
    "learning/optimizer/llm/transcript.py",
    "report/judging/label_file.py",
    "report/rollout.py",
    "scoring/judge/prompt.py",
    *(["arena/contestants/reflection.py"] if (PACKAGE / "arena").is_dir() else []),
    *(["harvest/prompt/statement_model.py"] if (PACKAGE / "harvest").is_dir() else []),
    *(["patterns/authoring/prompt.py"] if (PACKAGE / "patterns").is_dir() else []),
}
"""Modules that write what a judge, a teacher, a simulated user or a labelling person reads."""
OTHERS = {
    "actors/openai/conversation.py": "the actor's own messages, one author each",
    "arena/ring.py": "what a contestant asks its teacher",
    "llm/limits/budget.py": "a message without content, to count",
    "llm/calls.py": "a greeting of ours",
    "llm/request_body.py": "system text for servers that take none, before the first message",
}


def test_whatever_writes_messages_to_models_writes_voices() -> None:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text("utf-8")
        if "Message(" in source or "fenced(" in source or "core.voices" in source:
            found[path.relative_to(PACKAGE).as_posix()] = ast.parse(source)
    writes = {
        name
        for name, tree in found.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Message", "fenced")
        and name != "llm/templates.py"
    }
    assert writes <= BUILDERS | OTHERS.keys()
    uses = {
        name
        for name, tree in found.items()
        if any(getattr(node, "module", "") == "pytest_tfgrpo.core.voices" for node in ast.walk(tree))
    }
    assert uses >= BUILDERS


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_no_builder_cuts_what_others_said_by_itself(name: str) -> None:
    source = (PACKAGE / name).read_text("utf-8")
    assert not re.search(r"\bcut\(|\bjoined\(", source)
