"""Coding agents through the command actor: how they are told their task, and how they end."""

import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.tools import require_tool

from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult

Ask = Callable[..., AttemptResult]
Agent = Callable[..., str]

ECHO = """
    import json, sys
    told = json.dumps([sys.argv[1:], sys.stdin.read()])
    print(json.dumps({"type": "result", "subtype": "success", "result": told}))
"""
CLAUDE = {"command_output": "claude"}


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """Write a program into the root folder; return the spec that runs it with some arguments."""

    def write(body: str, arguments: str = "") -> str:
        (tmp_path / "agent.py").write_text(textwrap.dedent(body))
        return f"command:'{sys.executable}' agent.py {arguments}"

    return write


def told(outcome: AttemptResult) -> Any:
    assert outcome.failure is None, outcome.failure
    return json.loads(outcome.answer)


@pytest.mark.parametrize(
    ("arguments", "argv", "stdin"),
    [
        ("-p", ["-p"], "sys\n\nuser"),
        ("--system {system}", ["--system", "sys"], "user"),
        ("{user}", ["user"], "sys"),
        ("{system} {user}", ["sys", "user"], ""),
        ("--ask={prompt}", ["--ask=sys\n\nuser"], ""),
        ("{seed}:{temperature}", [f"{2**62 + 1}:0.7"], "sys\n\nuser"),
        ("'{\"a\": {}}' {} {other} $HOME", ['{"a": {}}', "{}", "{other}", "$HOME"], "sys\n\nuser"),
    ],
)
def test_the_prompt_comes_as_text_where_the_command_line_says(
    ask: Ask, agent: Agent, arguments: str, argv: list[str], stdin: str
) -> None:
    prompt = Prompt(system="sys", user="user")
    assert told(ask(agent(ECHO, arguments), settings=CLAUDE, prompt=prompt)) == [argv, stdin]


def test_the_workspace_can_be_named(ask: Ask, agent: Agent, tmp_path: Path) -> None:
    argv, _ = told(ask(agent(ECHO, "--cd {workspace}"), settings=CLAUDE))
    assert argv == ["--cd", str(tmp_path / "work")]


def test_our_own_programs_may_have_the_prompt_as_an_argument_too(ask: Ask, agent: Agent) -> None:
    body = "import json, sys; print(sys.argv[1], json.load(sys.stdin)['schema'])"
    assert (
        ask(agent(body, "{user}"), prompt=Prompt(system="", user="6 x 7?")).answer == "6 x 7? tfgrpo.task/1"
    )


def test_what_is_put_in_is_not_looked_at_again_nor_run_nor_taken_for_an_option(
    ask: Ask, agent: Agent
) -> None:
    prompt = Prompt(system="{user} $(id)", user="--dangerous; `id`")
    argv, _ = told(ask(agent(ECHO, "{system} {user} --x={user} -{user}"), settings=CLAUDE, prompt=prompt))
    assert argv == ["{user} $(id)", " --dangerous; `id`", "--x=--dangerous; `id`", "---dangerous; `id`"]


def test_a_prompt_of_any_length_and_any_characters_comes_on_stdin(ask: Ask, agent: Agent) -> None:
    prompt = Prompt(system="", user="-\0\n" + "ä" * 200_000)
    body = """
        import json, sys
        text = sys.stdin.buffer.read().decode()
        print(json.dumps({"type": "result", "subtype": "success", "result": f"{len(text)} {text[:3]!r}"}))
    """
    assert ask(agent(body), settings=CLAUDE, prompt=prompt).answer == "200003 '-\\x00\\n'"


@pytest.mark.parametrize(
    ("user", "reason"),
    [("x" * 300_000, "the prompt then comes on stdin"), ("a\0b", "null character"), ("\udc80", "")],
)
def test_a_prompt_that_is_no_argument_is_not_the_agents_fault(
    ask: Ask, agent: Agent, user: str, reason: str
) -> None:
    outcome = ask(agent(ECHO, "{prompt}"), settings=CLAUDE, prompt=Prompt(system="", user=user))
    if reason:
        assert outcome.failure is not None
        assert (outcome.status, outcome.failure.code) == ("error", "spawn")
        assert reason in outcome.failure.message
    else:
        assert told(outcome)[0] == ["?"]


def test_a_word_of_the_command_line_may_be_longer_than_a_file_name(ask: Ask, agent: Agent) -> None:
    argv, _ = told(ask(agent(ECHO, "x" * 300), settings=CLAUDE))
    assert argv == ["x" * 300]


def test_in_a_sandbox_a_prompt_makes_nothing_visible(ask: Ask, agent: Agent, tmp_path: Path) -> None:
    require_tool("bwrap")
    secret = tmp_path.parent / "secret.txt"
    secret.write_text("")
    outcome = ask(
        agent(ECHO, "{user}"),
        settings={**CLAUDE, "sandbox": "bwrap"},
        prompt=Prompt(system="", user=str(secret)),
    )
    assert told(outcome)[0] == [str(secret)]


SAID = """
    import json, os, signal, sys
    block = {"type": "text", "text": "I look."}
    message = {"id": "m", "content": [block], "usage": {"input_tokens": 3, "output_tokens": 4}}
    print(json.dumps({"type": "assistant", "message": message}), flush=True)
    result = {"type": "result", "subtype": "success", "result": "Done.", "total_cost_usd": 0.5}
"""


@pytest.mark.parametrize(
    ("end", "status", "code", "message"),
    [
        ("", "failed", "no_answer", "the stream ended without the event 'result'"),
        ("sys.exit('oh no')", "failed", "crash", "ended with status 1; its stderr ends: oh no"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "failed", "crash", "was killed by SIGKILL"),
        ("print('{')", "failed", "garbage", "line 2 of the stream is broken"),
        ("print(json.dumps(result)); sys.exit(3)", "failed", "crash", "ended with status 3"),
        ("print('x' * 9000)", "failed", "oversize", "more than 8000 bytes"),
        ("result['result'] = 'x' * 1001; print(json.dumps(result))", "failed", "oversize", "has 1001 bytes"),
        ("result['subtype'] = 'error_max_turns'; print(json.dumps(result)); sys.exit(1)",
         "failed", "max_turns", "gave up"),
        ("result.update(is_error=True, api_error_status=429); print(json.dumps(result)); sys.exit(1)",
         "error", "rate_limit", "the agent reported: Done."),
    ],
)  # fmt: skip
def test_however_an_agent_ends_what_it_did_is_kept(
    ask: Ask, agent: Agent, end: str, status: str, code: str, message: str
) -> None:
    outcome = ask(agent(textwrap.dedent(SAID) + end), settings=CLAUDE)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == (status, code)
    assert message in outcome.failure.message
    assert [f.output for f in outcome.frames] == ["I look."]
    assert sum(f.tokens for f in outcome.frames) == 7


@pytest.mark.parametrize(
    ("last", "cost_usd"), [("", None), ("print('{\"type\": \"res', end='', flush=True)", None),
                           ("print(json.dumps(result), flush=True)", 0.5)],
)  # fmt: skip
def test_at_the_time_limit_what_an_agent_did_is_kept(
    ask: Ask, agent: Agent, last: str, cost_usd: float | None
) -> None:
    body = f"{textwrap.dedent(SAID)}{last}\nimport time; time.sleep(600)"
    outcome = ask(agent(body), settings=CLAUDE, timeout_s=4)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == ("failed", "timeout")
    assert outcome.failure.message == "no answer within 4 s"
    assert [(f.output, f.tokens, f.cost_usd) for f in outcome.frames] == [("I look.", 7, cost_usd)]


@pytest.mark.parametrize("body", ["import sys; sys.exit('no login')", "print('Hello.')", ""])
def test_a_program_that_never_spoke_as_an_agent_is_not_its_fault(ask: Ask, agent: Agent, body: str) -> None:
    outcome = ask(agent(body), settings=CLAUDE)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == ("error", "spawn")
    assert "printed no claude event" in outcome.failure.message
    assert ("no login" in outcome.failure.message) == ("no login" in body)
