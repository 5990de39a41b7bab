"""The python actor."""

import asyncio
import hashlib
import importlib
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.actors.python import AgentContext, PythonActor
from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.scenarios import Task
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt
from pytest_tfgrpo.protocols import ActorCall

Ask = Callable[..., AttemptResult]
Write = Callable[[str], str]


@pytest.fixture
def write_agent(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Write]:
    """Write a module of a name of its own into the root folder; return the name."""
    before = set(sys.modules)

    def write(source: str) -> str:
        name = f"agent_{abs(hash(request.node.nodeid)):x}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        return name

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("agent_"):
            del sys.modules[name]


def test_a_plain_function_answers_from_its_context(ask: Ask, write_agent: Write, tmp_path: Path) -> None:
    name = write_agent(
        """
        def solve(context):
            return repr((str(context.prompt), context.scenario.id, context.temperature, context.seed,
                         context.tools, context.workspace.is_dir()))
        """
    )
    task = Task(id="t", domain="d", prompt="p", tools=("count",))
    outcome = ask(f"python:{name}:solve", task=task)
    assert outcome.answer == repr(
        ("Solve the task.\n\nHow many words are in 'a b c'?", "t", 0.7, 2**62 + 1, ("count",), True)
    )
    assert (tmp_path / "work").is_dir()


def test_what_a_context_has_not_is_answered_by_what_it_has(ask: Ask, write_agent: Write) -> None:
    name = write_agent("def solve(context):\n    return context.call_tool('get_order')")
    told = ask(f"python:{name}:solve").failure.message
    assert "no attribute 'call_tool'; it has folder, prompt, scenario, seed, session, task, temp" in told


@pytest.mark.parametrize(
    ("tools", "shown", "told"),
    [
        (
            None,
            "(), True, True, False",
            "call its own function of that name; the scenario has no `tools`, which",
        ),
        ((), "(), False, False, False", "`tools` of the scenario allows none"),
        (
            ("add", "count"),
            "('add', 'count'), True, False, True",
            "`tools` of the scenario allows add, count",
        ),
    ],
)
def test_tools_are_names_and_without_any_in_the_scenario_each_is_allowed(
    ask: Ask, write_agent: Write, tools: tuple[str, ...] | None, shown: str, told: str
) -> None:
    name = write_agent(
        """
        def solve(context):
            tools = context.tools
            return f"{tools}, {'count' in tools}, {'other' in tools}, {bool(tools) and tools[0] == 'add'}"

        def call(context):
            return context.tools['count'](1)
        """
    )
    task = Task(id="t", domain="d", prompt="p", tools=tools)
    assert ask(f"python:{name}:solve", task=task).answer == shown
    failed = ask(f"python:{name}:call", task=task).failure.message
    assert "context.tools['count']: context.tools has names, and your agent has the tools: call" in failed
    assert told in failed


def test_an_agent_in_a_conversation_knows_what_both_sides_said(
    write_agent: Write, make_call: Callable[..., ActorCall], tmp_path: Path
) -> None:
    name = write_agent(
        """
        def solve(context):
            said = [f"{one['role']} {one['content']}" for one in context.session.messages]
            return repr((context.session.turn, said, context.prompt.user))
        """
    )
    actor = open_actor(f"python:{name}:solve", root=tmp_path, settings={})
    assert isinstance(actor, PythonActor)

    async def talk() -> list[str]:
        session = actor.open_session(make_call())
        return [(await session.answer(message)).answer for message in ("hi", "more")]

    first, second = asyncio.run(talk())
    assert first == repr((1, ["user hi"], "How many words are in 'a b c'?"))
    said = ["user hi", f"assistant {first}", "user more"]
    assert second == repr((2, said, f"User: hi\n\nAssistant: {first}\n\nUser: more"))


@pytest.mark.parametrize(
    "source",
    [
        "async def solve(context): return '3'",
        "async def inner(context): return '3'\nsolve = lambda context: inner(context)",
        "import functools\nasync def inner(n, context): return n\nsolve = functools.partial(inner, '3')",
        "class Solver:\n    async def __call__(self, context): return '3'\nsolve = Solver()",
        "class Solver:\n    def __call__(self, context): return '3'\nsolve = Solver()",
        "def solve(context): return {'answer': '3', 'frames': [{'kind': 'tool', 'name': 'count'}]}",
        "from pytest_tfgrpo import Trajectory\ndef solve(context): return Trajectory(answer='3')",
    ],
)
def test_every_shape_of_callable_and_answer_works(ask: Ask, write_agent: Write, source: str) -> None:
    outcome = ask(f"python:{write_agent(source)}:solve")
    assert (outcome.status, outcome.answer) == ("ok", "3")
    assert len(outcome.frames) == 1


def test_a_callable_inside_an_object_is_found(ask: Ask, write_agent: Write) -> None:
    name = write_agent("class Agent:\n    @staticmethod\n    def solve(context): return '3'")
    assert ask(f"python:{name}:Agent.solve").answer == "3"


def test_the_workspace_is_made_only_when_asked_for(ask: Ask, write_agent: Write, tmp_path: Path) -> None:
    ask(f"python:{write_agent('async def solve(context): return context.seed and str(context.seed)')}:solve")
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("keyword", ["def", "async def"])
@pytest.mark.parametrize(
    ("body", "status", "code", "reason"),
    [
        ("raise ValueError('no idea')", "failed", "crash", "ValueError: no idea"),
        ("raise SystemExit(3)", "failed", "crash", "SystemExit: 3"),
        ("import asyncio; raise asyncio.CancelledError", "failed", "crash", "CancelledError"),
        ("raise StopIteration", "failed", "crash", "StopIteration"),
        ("from pytest_tfgrpo import ProviderError; raise ProviderError('down')", "error", "provider", "down"),
        ("from pytest_tfgrpo import AgentFailure; raise AgentFailure('x', 'odd')", "failed", "odd", "x"),
        ("return 42", "failed", "garbage", "returned 42"),
        ("return 'x' * 1001", "failed", "oversize", "1001 bytes"),
    ],
)
def test_faults_are_told_apart(
    ask: Ask, write_agent: Write, keyword: str, body: str, status: str, code: str, reason: str
) -> None:
    outcome = ask(f"python:{write_agent(f'{keyword} solve(context):{chr(10)}    {body}')}:solve")
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == (status, code)
    assert reason in outcome.failure.message


def test_a_crash_shows_the_agents_traceback_only(ask: Ask, write_agent: Write) -> None:
    name = write_agent("def helper(): return 1 / 0\nasync def solve(context): return helper()")
    outcome = ask(f"python:{name}:solve")
    assert outcome.failure is not None
    message = outcome.failure.message
    assert f'{name}.py", line 1, in helper' in message
    assert "actors/python.py" not in message


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_what_the_function_raised_is_kept_for_a_debugger_where_one_wants_it(
    kind: str, write_agent: Write, tmp_path: Path, make_call: Callable[..., ActorCall]
) -> None:
    name = write_agent(f"def helper(): return 1 / 0\n{kind} solve(context): return helper()")
    actor = open_actor(f"python:{name}:solve", root=tmp_path, settings={})
    assert isinstance(actor, PythonActor)
    call = make_call()
    asyncio.run(attempt(actor, call))
    assert actor.crashes is None
    actor.crashes = {}
    asyncio.run(attempt(actor, call))
    (((task, seed), crash),) = actor.crashes.items()
    assert (task, seed) == (call.task.id, call.seed)
    assert [frame.f_code.co_name for frame, _ in traceback.walk_tb(crash)][-2:] == ["solve", "helper"]


@pytest.mark.parametrize(
    "source",
    [
        "import threading\ndef solve(context): threading.Event().wait()",
        "import asyncio\nasync def solve(context): await asyncio.Event().wait()",
    ],
)
def test_a_hanging_agent_is_given_up_at_the_time_limit(ask: Ask, write_agent: Write, source: str) -> None:
    outcome = ask(f"python:{write_agent(source)}:solve", timeout_s=0.05)
    assert outcome.failure is not None
    assert outcome.failure.code == "timeout"


def test_a_late_answer_after_the_loop_has_closed_harms_nobody(ask: Ask, write_agent: Write) -> None:
    name = write_agent(
        "import threading\ngate = threading.Event()\ndef solve(context): gate.wait(); return '3'"
    )
    outcome = ask(f"python:{name}:solve", timeout_s=0.05)
    assert outcome.status == "failed"
    (thread,) = [t for t in threading.enumerate() if t.name == "tfgrpo-agent" and t.is_alive()][-1:]
    sys.modules[name].gate.set()
    thread.join(100)
    assert not thread.is_alive()


def test_the_root_is_importable_while_opening_and_leaves_no_trace(
    ask: Ask, write_agent: Write, tmp_path: Path
) -> None:
    before = list(sys.path)
    assert ask(f"python:{write_agent('def solve(context): return __file__')}:solve").answer.startswith(
        str(tmp_path)
    )
    assert sys.path == before


def test_an_agent_that_says_so_costs_money(write_agent: Write, tmp_path: Path) -> None:
    name = write_agent(
        "def free(context): ...\nfree.paid = False\ndef dear(context): ...\ndear.paid = True\n"
        "def silent(context): ..."
    )

    def opened(function: str) -> tuple[bool, Any]:
        actor = open_actor(f"python:{name}:{function}", root=tmp_path, settings={})
        return actor.paid, actor.bound(3)["usd"]

    assert opened("free") == (False, 0.0)
    assert opened("dear") == (True, None)
    assert opened("silent") == (False, None)


def sha256(folder: Path, **files: str) -> Any:
    for name, source in files.items():
        path = folder / f"{name.replace('__init__', 'shop_agent/__init__')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("shop_agent", "shop_answers")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    return open_actor("python:shop_agent:solve", root=folder, settings={}).identity.get("sha256")


FIRST, SECOND = "def solve(context): return '1'", "def solve(context): return '2' + ''"


def test_identity_changes_with_the_agents_source(tmp_path: Path) -> None:
    one = sha256(tmp_path, shop_agent=FIRST)
    assert sha256(tmp_path) == one == hashlib.sha256(FIRST.encode()).hexdigest()
    assert sha256(tmp_path, shop_agent=SECOND) != one


@pytest.mark.parametrize(
    "package",
    [
        "from shop_answers import solve",
        "from functools import partial\nimport shop_answers\nsolve = partial(shop_answers.solve)",
        "import functools, shop_answers as a\n@functools.wraps(a.solve)\ndef solve(context): return '1'",
        "from shop_answers import Agent\nsolve = Agent()",
    ],
)
def test_identity_changes_with_the_file_that_an_agent_is_imported_from(tmp_path: Path, package: str) -> None:
    agent = "\nclass Agent:\n    def __call__(self, context): return '1'"
    one = sha256(tmp_path, __init__=package, shop_answers=FIRST + agent)
    assert sha256(tmp_path) == one
    other = sha256(tmp_path, shop_answers=SECOND + agent)
    assert other != one
    assert sha256(tmp_path, __init__=package + "  # changed") not in (one, other)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("python:", "must have the form python:<module>:<callable>"),
        ("python:json", "must have the form python:<module>:<callable>"),
        ("python:no_such_module:f", "no module 'no_such_module' in"),
        ("python:json.no_such:f", "no module 'json.no_such' in"),
        ("python:json:no_such", "module 'json' has no 'no_such'"),
        ("python:json:lods", "module 'json' has no 'lods'; did you mean 'loads'?"),
        ("python:my_agent.solve", "python:<module>:<callable>; did you mean 'python:my_agent:solve'?"),
        ("python:my_agnet:solve", "or on the path; did you mean 'my_agent'?"),
        ("python:json:__name__", "is 'json', not a callable"),
        ("python:.json:dumps", "importing '.json' failed: TypeError"),
    ],
)
def test_a_wrong_spec_is_refused_before_anything_is_paid(spec: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").touch()
    with pytest.raises(ActorError, match=r"python:") as caught:
        open_actor(spec, root=tmp_path, settings={})
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import not_there_at_all", "failed: No module named 'not_there_at_all'"),
        ("raise SystemExit('bye')", "failed: SystemExit: bye"),
        ("def solve(:", "failed: SyntaxError"),
    ],
)
def test_a_module_that_does_not_import_says_why(
    write_agent: Write, tmp_path: Path, source: str, reason: str
) -> None:
    name = write_agent(source)
    with pytest.raises(ActorError) as caught:
        open_actor(f"python:{name}:solve", root=tmp_path, settings={})
    assert reason in str(caught.value)


def test_cancelling_the_caller_cancels_the_agent(make_call: Callable[..., ActorCall]) -> None:
    ended: list[str] = []

    async def solve(context: AgentContext) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return ""

    async def scene() -> None:
        task = asyncio.create_task(attempt(PythonActor("python:x:y", solve, {}), make_call()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert ended == ["cancelled"]
