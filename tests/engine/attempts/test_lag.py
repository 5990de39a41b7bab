"""A coroutine that blocks the loop is named, once; others are not."""

import asyncio
import time
from pathlib import Path

import pytest
from support.project import Project

from pytest_tfgrpo.engine.attempts import lag

SUPPORT = Path(__file__).parents[2] / "support"


@pytest.fixture(autouse=True)
def attentive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "BEAT_S", 0.02)
    monkeypatch.setattr(lag, "LAG_S", 0.06)
    monkeypatch.setattr(lag, "SAMPLE_S", 0.005)
    monkeypatch.setattr(lag, "LIBRARIES", (str(SUPPORT),))  # it stands where Python sleeps


def warned(project: Project) -> list[str]:
    return [warning for warning in project.report()["warnings"] if "blocked the event loop" in warning]


@pytest.mark.parametrize(
    "shape", ["async def solve(context):", "class A:\n  async def __call__(self, context):"]
)
def test_a_coroutine_that_blocks_is_named_once(project: Project, shape: str) -> None:
    inside = "    time.sleep(0.02)\n    return '3'\n"
    tail = "solve = A()\n" if "class" in shape else ""
    project.agent(f"import time\n{shape}\n{inside}{tail}").scenarios(train=1, sweep=1)
    project.ini(actor="python:agent2:solve", group_size=8).learn()
    (warning,) = warned(project)
    name = "A.__call__" if tail else "solve"
    assert warning.startswith(f"{name} blocked the event loop for ")
    assert f", at {project.root / 'agent2.py'}:{3 + bool(tail)}, in " in warning
    assert ": time.sleep(0.02); await what it waits for" in warning


CLIENT = """import time
class AsyncClient:
    def __init__(self, key):
        end = time.monotonic() + 0.2
        while time.monotonic() < end: pass
"""
AGENT = """from client import AsyncClient
async def solve(context):
    AsyncClient(key="sk-proj-abcdefghijklmnopqrstuvwxyz0123456789")
    return "3"
"""


def test_a_client_that_a_coroutine_makes_is_named_with_its_line_and_without_its_key(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own code is a library's, which nobody can change."""
    monkeypatch.setattr(lag, "LIBRARIES", (str(project.root / "client.py"),))
    project.write("client.py", CLIENT).agent(AGENT).scenarios(train=0, sweep=1)
    project.ini(actor="python:agent2:solve", eval_rollouts=2).run("--tfgrpo-out=out")
    (warning,) = warned(project)
    assert f", at {project.root / 'agent2.py'}:3, in AsyncClient.__init__: AsyncClient(key=" in warning
    assert "; make the client once, at import: each AsyncClient(...) loads certificates" in warning
    assert "abcdefghij" not in warning


@pytest.mark.parametrize(
    "body",
    [
        "async def solve(context):\n    await asyncio.sleep(0.1)\n    return '3'\n",
        "def solve(context):\n    time.sleep(0.1)\n    return '3'\n",
    ],
)
def test_an_agent_that_waits_as_it_should_is_not_named(project: Project, body: str) -> None:
    project.agent(f"import asyncio, time\n{body}").scenarios(train=1, sweep=1)
    assert project.ini(actor="python:agent2:solve", group_size=8).learn().ret == 0
    assert warned(project) == []


def test_a_replay_is_not_watched(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.scenarios(train=0, sweep=1).ini(actor="python:agent:right")
    project.learn("--tfgrpo-record", "r.jsonl")
    monkeypatch.setattr(lag, "watching_lag", None)
    assert project.learn("--tfgrpo-actor", "replay:r.jsonl").ret == 0


def test_a_loop_that_runs_does_no_more_than_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    beats, looks = list[float](), list[lag._Watch]()
    monkeypatch.setattr(lag, "LAG_S", 1_000.0)
    monkeypatch.setattr(lag._Watch, "_agent", looks.append)

    async def busy() -> None:
        loop = asyncio.get_running_loop()
        beat = loop.call_later
        monkeypatch.setattr(loop, "call_later", lambda *args: beats.append(time.monotonic()) or beat(*args))
        with lag.watching_lag(print):
            while len(beats) < 8:
                await asyncio.sleep(0)

    asyncio.run(busy())
    assert beats[-1] - beats[0] >= 6 * lag.BEAT_S
    assert looks == []


@pytest.mark.parametrize(("looks", "named"), [("a-a-", False), ("aa", True), ("ab", False), ("abb", True)])
def test_only_who_is_found_twice_in_a_row_is_named(
    looks: str, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "LAG_S", -1.0)
    found = {
        name: lag.Blocker(compile("pass", name, "exec"), f"{name}.py", 1, "")
        for name in sorted({*looks} - {"-"})
    }
    said: list[str] = []

    async def watch() -> None:
        loop = asyncio.get_running_loop()
        watch = lag._Watch(loop, said.append)
        rest = iter(looks)

        def agent() -> lag.Blocker | None:
            name = next(rest, "")
            if not name:
                watch.done.set()
            return found.get(name)

        monkeypatch.setattr(watch, "_agent", agent)
        watch.look()
        await asyncio.sleep(0)

    asyncio.run(watch())
    assert len(said) == named


@pytest.mark.parametrize(
    ("line", "client"),
    [
        ("c = httpx.Client(http2=True)", "httpx.Client("),
        ("c = AsyncClient()", "AsyncClient("),
        ("c = OpenAI()", "OpenAI("),
        ("c = AsyncOpenAI()", "AsyncOpenAI("),
        ("c = AsyncAzureOpenAI()", "AsyncAzureOpenAI("),
        ("c = Anthropic()", "Anthropic("),
        ("c = AsyncAnthropic()", "AsyncAnthropic("),
        ("time.sleep(1)", ""),
    ],
)
def test_each_usual_client_is_one_to_be_made_once(tmp_path: Path, line: str, client: str) -> None:
    file = tmp_path / "agent.py"
    file.write_text(f"\n{line}\n")
    said = lag._sentence(lag.Blocker(compile("pass", str(file), "exec"), str(file), 2, ""), 1.25)
    assert (
        f" blocked the event loop for 1.2 s, so that rollouts wait for each other, at {file}:2: {line}; "
        in said
    )
    made = f"make the client once, at import: each {client}...) loads certificates"
    assert said.endswith(
        made
        if client
        else "; await what it waits for, or make it a plain function, which runs in a thread of its own"
    )
