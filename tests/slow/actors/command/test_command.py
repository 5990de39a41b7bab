"""The command actor: programs in several languages, well-behaved and not."""

import asyncio
import json
import shutil
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.tools import require_tool

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.scenarios import Attachment, Prompt, Task
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.workspace import Workspace

Ask = Callable[..., AttemptResult]
Script = Callable[..., str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write an executable script into the root folder; return the spec that runs it."""

    def write(body: str, interpreter: str = "/bin/sh", name: str = "agent") -> str:
        path = tmp_path / name
        path.write_text(f"#!{interpreter}\n{textwrap.dedent(body)}")
        path.chmod(0o755)
        return f"command:./{name}"

    return write


def alive(pid: int) -> bool:
    """Say whether a process runs; one that has ended but is not yet reaped by init does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 100
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def failure(outcome: AttemptResult) -> tuple[str, str, str]:
    assert outcome.failure is not None
    return outcome.status, outcome.failure.code, outcome.failure.message


def test_a_shell_script_that_prints_text_is_an_agent(ask: Ask, script: Script) -> None:
    outcome = ask(script("echo '  3 words '"))
    assert outcome.answer == "3 words"
    (frame,) = outcome.frames
    assert (frame.kind, frame.name, frame.output) == ("model", "command", "3 words")
    assert frame.latency_ms > 0


def test_a_program_that_closes_its_output_may_still_write_files(
    ask: Ask, script: Script, tmp_path: Path
) -> None:
    outcome = ask(script("echo 3; exec >&- 2>&-; sleep 0.3; echo done > written"))
    assert (outcome.failure, outcome.answer) == (None, "3")
    assert (tmp_path / "work" / "written").read_text() == "done\n"


def test_the_task_comes_as_one_json_object_on_stdin(ask: Ask, script: Script, tmp_path: Path) -> None:
    outcome = ask(
        script("cat > seen.json; pwd"),
        task=Task(id="t", domain="d", prompt="p", input={"n": 1}, tools=("count",), timeout_s=9.0),
        prompt=Prompt(system="sys \u2028 tem", user="lone \ud800 surrogate"),
    )
    work = tmp_path / "work"
    assert outcome.answer == str(work)
    assert (work / "seen.json").read_bytes().count(b"\n") == 1
    assert json.loads((work / "seen.json").read_text()) == {
        "schema": "tfgrpo.task/1",
        "scenario": {
            "id": "t", "domain": "d", "prompt": "p", "input": {"n": 1}, "attachments": [],
            "tools": ["count"], "timeout_s": 9.0,
        },
        "prompt": {"system": "sys \u2028 tem", "user": "lone \ud800 surrogate"},
        "temperature": 0.7,
        "seed": 2**62 + 1,
        "workspace": str(work),
        "timeout_s": 100.0,
    }  # fmt: skip


def test_attachments_are_in_the_working_folder(ask: Ask, script: Script, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("from the attachment")
    workspace = Workspace(
        tmp_path / "work", (Attachment(name="in/data.txt", path=tmp_path / "data.txt", sha256=""),)
    )
    assert ask(script("cat in/data.txt"), workspace=workspace).answer == "from the attachment"


def test_an_agent_in_perl_speaks_json_lines(ask: Ask, script: Script) -> None:
    body = r"""
        use strict; $| = 1;
        my ($text) = <STDIN> =~ /"user": "[^"]*'([^']*)'/;
        my $n = () = $text =~ /\S+/g;
        print qq({"frame": {"kind": "tool", "name": "count_words", "input": {"text": "$text"},)
            . qq( "output": "$n", "tokens": 4, "cost_usd": 0.001}}\n);
        print qq({"answer": "$n", "tokens": 6, "model": "perl"}\n);
    """
    outcome = ask(script(body, require_tool("perl")))
    assert outcome.answer == "3"
    assert outcome.frames == (
        Frame(kind="tool", name="count_words", input={"text": "a b c"}, output="3", tokens=4, cost_usd=0.001),
        Frame(kind="model", name="perl", output="3", tokens=6),
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed; perl stands for it")
def test_an_agent_in_javascript_can_open_dev_stdin(ask: Ask, script: Script) -> None:
    body = """
        const task = JSON.parse(require("fs").readFileSync("/dev/stdin", "utf8"));
        console.log(JSON.stringify({answer: String(task.temperature)}));
    """
    assert ask(script(body, shutil.which("node") or "")).answer == "0.7"


def test_arguments_that_name_files_of_the_project_are_found_from_the_workspace(
    ask: Ask, tmp_path: Path
) -> None:
    (tmp_path / "my agent.py").write_text("import sys; print(sys.argv[1:])")
    assert ask(f"command:'{sys.executable}' 'my agent.py' --fast 'a b'").answer == "['--fast', 'a b']"


def test_the_environment_is_passed_on_without_what_belongs_to_the_test_run(
    ask: Ask, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, dropped = "SOME_PROVIDER_KEY", ("GIT_DIR", "PYTEST_ADDOPTS", "TFGRPO_SEED", "FEATURE_TFGRPO_GROUP")
    for name in (kept, *dropped):
        monkeypatch.setenv(name, "x")
    listing = ask(script("env"), answer_max_bytes=100_000).answer
    names = {line.partition("=")[0] for line in listing.splitlines()}
    assert {kept, "PATH"} <= names
    assert not names & {*dropped, "PYTEST_CURRENT_TEST"}


@pytest.mark.parametrize(
    ("body", "status", "code", "reason"),
    [
        ("", "failed", "no_answer", "printed no answer"),
        ("echo oh no >&2", "failed", "no_answer", "printed no answer; its stderr ends: oh no"),
        ("echo '{\"answer\": 3}'", "failed", "garbage", "must be a string, not 3"),
        ('echo thinking; echo \'{"answer": "3"}\'', "failed", "garbage", "line 1 is not"),
        ("echo 3; echo oh no >&2; exit 7", "failed", "crash", "ended with status 7; its stderr ends: oh no"),
        ("kill -9 $$", "failed", "crash", "was killed by SIGKILL"),
        ("kill -40 $$", "failed", "crash", "was killed by signal 40"),
        ("printf '\\377' >&2; exit 1", "failed", "crash", "its stderr ends: \ufffd"),
        ('echo \'{"error": "rate limited"}\'', "error", "provider", "the program reported: rate limited"),
        ('echo \'{"error": "rate limited"}\'; exit 1', "error", "provider", "rate limited"),
    ],
)
def test_faults_are_told_apart(
    ask: Ask, script: Script, body: str, status: str, code: str, reason: str
) -> None:
    found = failure(ask(script(body)))
    assert found[:2] == (status, code)
    assert reason in found[2]


def test_a_large_stderr_neither_blocks_nor_is_kept(ask: Ask, script: Script) -> None:
    _, code, message = failure(
        ask(script("import sys; sys.stderr.write('x' * 10_000_000 + 'end'); sys.exit(1)", sys.executable))
    )
    assert code == "crash"
    assert message.endswith("xend")
    assert len(message) < 3000


@pytest.mark.parametrize("body", ["print('x' * 10_000_000)", "while True: print('x' * 1000)"])
def test_too_much_output_ends_the_program(ask: Ask, script: Script, body: str) -> None:
    assert failure(ask(script(body, sys.executable)))[1:] == (
        "oversize",
        "the program printed more than 8000 bytes",
    )


def test_an_answer_over_the_limit_is_oversize(ask: Ask, script: Script) -> None:
    assert failure(ask(script("print('x' * 1001)", sys.executable)))[1] == "oversize"


def test_a_program_that_never_reads_its_stdin_is_no_problem(ask: Ask, script: Script) -> None:
    outcome = ask(script("exec 0<&-; echo 3"), prompt=Prompt(system="x" * 1_000_000, user="u"))
    assert outcome.answer == "3"


STUBBORN = """
    import os, signal, sys, time
    if {ignores}: signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        time.sleep(600)
    open("pids", "w").write(f"{{os.getpid()}} {{child}}")
    os.rename("pids", "pids.done")
    time.sleep(600)
"""


@pytest.mark.parametrize("ignores", [False, True])
def test_when_a_call_is_cancelled_the_whole_group_dies(
    script: Script, make_call: Callable[..., ActorCall], tmp_path: Path, ignores: bool
) -> None:
    actor = open_actor(script(STUBBORN.format(ignores=ignores), sys.executable), root=tmp_path, settings={})
    pids = tmp_path / "work" / "pids.done"

    async def scene() -> None:
        task = asyncio.create_task(attempt(actor, make_call()))
        while not pids.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert [ends(int(pid)) for pid in pids.read_text().split()] == [True, True]


def test_a_timeout_is_the_agents_failure(ask: Ask, script: Script) -> None:
    assert failure(ask(script("sleep 600"), timeout_s=0.2)) == ("failed", "timeout", "no answer within 0.2 s")


def test_cancelling_before_the_program_has_started_leaves_nothing_behind(
    script: Script, make_call: Callable[..., ActorCall], tmp_path: Path
) -> None:
    actor = open_actor(script("echo $$ > pid; exec sleep 600"), root=tmp_path, settings={})

    async def scene(steps: int) -> None:
        task = asyncio.create_task(attempt(actor, make_call(workspace=Workspace(tmp_path / str(steps)))))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for steps in range(8):
        asyncio.run(scene(steps))
        pid = tmp_path / str(steps) / "pid"
        assert not pid.exists() or ends(int(pid.read_text() or 0))


def test_a_grandchild_that_holds_the_output_open_does_not_hold_the_rollout(
    ask: Ask, script: Script, tmp_path: Path
) -> None:
    outcome = ask(script("sleep 600 & echo $! > pid; echo 3"))
    assert outcome.answer == "3"
    assert ends(int((tmp_path / "work" / "pid").read_text()))


def test_many_run_at_once_and_leak_no_file(
    script: Script, make_call: Callable[..., ActorCall], tmp_path: Path
) -> None:
    actor = open_actor(script("sleep 0.2; cat > task; echo ${PWD##*/}"), root=tmp_path, settings={})
    calls = [make_call(workspace=Workspace(tmp_path / f"w{n}")) for n in range(64)]

    async def scene() -> list[str]:
        outcomes = await asyncio.gather(*(attempt(actor, call) for call in calls))
        return [outcome.answer for outcome in outcomes]

    asyncio.run(scene())
    before = open_files()
    assert asyncio.run(scene()) == [f"w{n}" for n in range(64)]
    assert open_files() == before


def test_a_script_without_an_interpreter_line_is_not_the_agents_fault(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("echo 3\n")
    (tmp_path / "agent").chmod(0o755)
    status, code, message = failure(ask("command:./agent"))
    assert (status, code) == ("error", "spawn")
    assert "a script needs a #! line" in message
