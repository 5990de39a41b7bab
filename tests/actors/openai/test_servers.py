"""Tools of MCP servers: what the model is offered, what it gets, whose fault it is."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.model_actor import Bench, script, wants

from pytest_tfgrpo.actors.mcp import sdk, server_session
from pytest_tfgrpo.actors.mcp.server_spec import ServerSpec, parse_server
from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.scenarios import MockCase, ToolMock
from pytest_tfgrpo.engine.attempts.attempt import attempt

if TYPE_CHECKING:
    from support.mcp_servers import MemoryServers

URL = "https://in.memory/mcp"
SERVER = {"tools": f"mcp:{URL}"}


def test_the_tools_of_a_server_are_offered_and_called(bench: Bench, memory: MemoryServers) -> None:
    said = bench.ask(script(wants(("say", '{"text": "hi", "n": 3.0}')), "3"), settings=SERVER)
    (spec,) = bench.model.requests[0].tools
    assert (spec.name, spec.description, spec.parameters) == ("say", "It is say.", memory.tools["say"])
    assert bench.told() == ['say {"text": "hi", "n": 3}']
    (frame,) = [frame for frame in said.frames if frame.kind == "tool"]
    assert (frame.name, frame.input, frame.error) == ("say", {"text": "hi", "n": 3}, None)


@pytest.mark.parametrize(
    ("more", "taken"),
    [
        ({"properties": {"text": {"type": "string"}}}, False),
        ({"properties": {"text": {}}, "additionalProperties": False}, False),
        ({"properties": {"text": {}}, "additionalProperties": True}, True),
        ({"properties": {"text": {}}, "patternProperties": {"^t": {}}}, True),
        ({}, True),
    ],
)
def test_a_mock_of_a_parameter_that_a_server_does_not_name_is_refused_unless_it_takes_any(
    bench: Bench, memory: MemoryServers, more: dict[str, Any], taken: bool
) -> None:
    memory.tools = {"say": {"type": "object", **more}}
    case = MockCase(kind="returns", value=1, when={"txet": "hi"})
    mocks = [ToolMock(tool="say", cases=(case, MockCase(kind="real")))]
    actor, task = bench.actor(**SERVER), bench.make_call().task
    if taken:
        actor.require_mocks(task, mocks)
        return
    with pytest.raises(ActorError, match=r"no parameter 'txet'; did you mean 'text'|unknown key 'txet'"):
        actor.require_mocks(task, mocks)


def test_servers_and_modules_stand_beside_each_other(bench: Bench, memory: MemoryServers) -> None:
    bench.tools("def add(a: int) -> int:\n    return a + 1")
    both = {"tools": f"tools_under_test\nmcp:{URL}"}
    bench.ask(script(wants(("add", '{"a": 1}'), ("say", "{}")), "3"), settings=both)
    assert [spec.name for spec in bench.model.requests[0].tools] == ["add", "say"]
    assert bench.told() == ["2", "say {}"]


def test_arguments_that_break_the_schema_reach_no_server(bench: Bench, memory: MemoryServers) -> None:
    memory.tools["say"] = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}
    hostile = json.dumps({"text": "a" * 40 + "!"})
    bench.ask(script(wants(("say", '{"text": 1}'), ("say", hostile)), "3"), settings=SERVER)
    assert bench.told()[0] == "error: the arguments do not fit: /text: 1 is not of type string; quote it"
    assert bench.told()[1].startswith("error: the arguments do not fit: /text")
    assert len(memory.sessions) == 1, "that of the list"


def test_what_is_no_text_is_named(bench: Bench, memory: MemoryServers) -> None:
    from mcp import types

    async def answer(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        return types.CallToolResult(
            content=[
                types.TextContent(type="text", text="see"),
                types.ImageContent(type="image", data="QUJDRA==", mime_type="image/png"),
                types.ResourceLink(type="resource_link", name="r", uri="file:///r"),
            ]
            if arguments
            else [],
            structured_content={"a": 1},
        )

    memory.answer = answer
    bench.ask(script(wants(("say", '{"n": 1}'), ("say", "{}")), "3"), settings=SERVER)
    assert bench.told() == ["see\n[image: image/png, 6 bytes]\n[resource: file:///r]", '{"a": 1}']


def test_a_long_result_is_cut(bench: Bench, memory: MemoryServers) -> None:
    async def answer(name: str, arguments: dict[str, Any]) -> str:
        return "x" * 60_000

    memory.answer = answer
    bench.ask(script(wants(("say", "{}")), "3"), settings=SERVER)
    assert bench.told()[0].endswith("x\n[cut: 60000 characters in all]")


def test_an_error_of_a_tool_goes_to_the_model(bench: Bench, memory: MemoryServers) -> None:
    from mcp import types

    async def answer(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        content: list[Any] = [types.TextContent(type="text", text="no such order")]
        return types.CallToolResult(content=content, is_error=True)

    memory.answer = answer
    said = bench.ask(script(wants(("say", "{}")), "3"), settings=SERVER)
    assert bench.told() == ["error: no such order"]
    assert said.status == "ok"


def test_a_call_that_hangs_is_an_error_that_names_server_and_tool(
    bench: Bench, memory: MemoryServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(name: str, arguments: dict[str, Any]) -> str:
        await asyncio.Event().wait()
        return ""

    memory.answer = answer
    monkeypatch.setattr(server_session, "CALL_S", 0.02)
    bench.ask(script(wants(("say", "{}")), "3"), settings=SERVER)
    assert bench.told() == [f"error: the MCP server 'mcp:{URL}' did not answer 'say' within 0.02 s"]


def test_a_result_that_breaks_its_own_schema_is_an_error_of_the_rollout(
    bench: Bench, memory: MemoryServers
) -> None:
    from mcp import types

    schema = {"type": "object", "required": ["a"]}
    memory.listed = lambda: [types.Tool(name="say", input_schema={"type": "object"}, output_schema=schema)]
    said = bench.ask(script(wants(("say", "{}")), "3"), settings=SERVER)
    assert said.status == "error"
    assert said.failure is not None
    assert said.failure.code == "mcp"
    assert f"the MCP server 'mcp:{URL}' broke in a call of 'say'" in said.failure.message
    assert [frame.kind for frame in said.frames] == ["model", "tool"]


def test_a_list_that_changes_during_a_run_is_an_error(bench: Bench, memory: MemoryServers) -> None:
    actor = bench.actor(script(wants(("say", "{}")), "3"), **SERVER)
    memory.tools["more"] = {"type": "object"}
    memory.tools["say"] = {"type": "object"}
    said = asyncio.run(attempt(actor, bench.make_call()))
    assert said.status == "error"
    assert said.failure is not None
    assert said.failure.message.endswith("it lists other tools than before (new: more; changed: say)")
    assert said.failure.message.startswith(f"the MCP server 'mcp:{URL}' cannot be used: ")


def test_another_list_makes_another_agent(bench: Bench, memory: MemoryServers) -> None:
    first, again = bench.actor(**SERVER).identity, bench.actor(**SERVER).identity
    assert first == again
    memory.tools["say"] = {"type": "object"}
    other = bench.actor(**SERVER).identity
    assert first != other
    assert first["tools"]["mcp"][0].keys() == other["tools"]["mcp"][0].keys() == {"server", "tools"}


@pytest.mark.parametrize(("spec", "states"), [(f"mcp:{URL}", [1, 1]), (f"mcp-shared:{URL}", [1, 2])])
def test_state_leaks_only_where_a_server_is_shared(
    bench: Bench, memory: MemoryServers, spec: str, states: list[int]
) -> None:
    calls: dict[int, int] = {}

    async def answer(name: str, arguments: dict[str, Any]) -> str:
        session = len(memory.sessions)
        calls[session] = calls.get(session, 0) + 1
        return str(calls[session])

    memory.answer = answer
    turn = wants(("say", "{}"))
    actor = bench.actor(script(turn, "3", turn, "3"), tools=spec)

    async def twice() -> None:
        for _ in range(2):
            await attempt(actor, bench.make_call())
        await actor.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing is left"

    asyncio.run(twice())
    assert [int(bench.told(n)[0]) for n in (1, 3)] == states


@pytest.mark.parametrize(
    ("tools", "reason"),
    [
        ({"read.file": {"type": "object"}}, "a tool cannot be called 'read.file'; models take up to 64"),
        ({"x" * 65: {"type": "object"}}, "a tool cannot be called 'xxx"),
        (
            {"say": {"type": "object", "properties": 3}},
            "the schema of tool 'say' cannot be used: /properties",
        ),
        (
            {"say": {"type": "object", "$ref": "http://x/y"}},
            "reference 'http://x/y' points outside the schema",
        ),
        ({f"t{n}": {"type": "object"} for n in range(21)}, "it lists more than 20 tools"),
    ],
)
def test_what_no_model_can_be_offered_is_named_at_opening(
    bench: Bench,
    memory: MemoryServers,
    tools: dict[str, Any],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sdk, "TOOLS_MAX", 20)
    memory.tools = tools
    with pytest.raises(ActorError) as caught:
        bench.actor(**SERVER)
    assert reason in str(caught.value)
    assert URL in str(caught.value)


def test_two_tools_of_one_name_are_refused(bench: Bench, memory: MemoryServers) -> None:
    with pytest.raises(ActorError, match=r"two tools 'say', another is of 'mcp:https://in\.memory"):
        bench.actor(tools=f"mcp:{URL}\nmcp:{URL}2")
    from mcp import types

    memory.listed = lambda: [types.Tool(name="say", input_schema={"type": "object"})] * 2
    with pytest.raises(ActorError, match="there are two tools 'say'"):
        bench.actor(**SERVER)


def test_more_tools_than_a_model_takes_must_be_chosen_from(bench: Bench, memory: MemoryServers) -> None:
    memory.tools = {f"t{n}": {"type": "object"} for n in range(130)}
    actor = bench.actor(script("3"), **SERVER)
    call = bench.make_call()
    with pytest.raises(
        ActorError, match="there are 130 tools, and a model takes 128; name those that it needs"
    ):
        actor.require([(call.task, ())])
    assert bench.ask(script("3"), settings=SERVER, tools=("t7",)).answer == "3"


def test_without_the_sdk_its_extra_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ActorError, match=r"needs the MCP SDK: pip install 'pytest-tfgrpo\[mcp\]'"):
        bench.actor(**SERVER)


ENVIRON = {
    "PATH": "/usr/bin:/bin", "HOME": "/home/me", "LANG": "C", "OPENAI_API_KEY": "of-the-suite",
    "AWS_SECRET_ACCESS_KEY": "x", "SHOP_TOKEN": "shop-token",
}  # fmt: skip


def parsed(entry: str, root: Path) -> ServerSpec:
    return parse_server(entry, root, ENVIRON)


def test_a_server_gets_of_the_environment_what_it_is_named_with(tmp_path: Path) -> None:
    plain = parsed("mcp:cat --db {workspace}/x.db", tmp_path)
    assert plain.variables == {"PATH": "/usr/bin:/bin", "HOME": "/home/me", "LANG": "C"}
    assert plain.command(Path("/w"))[1:] == ["--db", "/w/x.db"]
    usual = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "USER", "LOGNAME")
    every = dict.fromkeys((*usual, "LC_TIME", "SHELL"), "/usr/bin:/bin")
    assert [*parse_server("mcp:cat", tmp_path, every).variables] == [*usual]
    assert parsed("mcp:LANG=de cat", tmp_path).variables["LANG"] == "de"
    two = parsed("mcp:cat {workspace}/a:{workspace}/b", tmp_path)
    assert two.command(Path("/w"))[1:] == ["/w/a:/w/b"]
    given = parsed("mcp:TOKEN=$SHOP_TOKEN LEVEL=high cat", tmp_path)
    assert given.variables == {**plain.variables, "TOKEN": "shop-token", "LEVEL": "high"}
    headed = parsed("mcp-shared:Authorization='Bearer ${SHOP_TOKEN}' https://shop.example/mcp", tmp_path)
    assert (headed.url, headed.variables) == (
        "https://shop.example/mcp",
        {"Authorization": "Bearer shop-token"},
    )
    assert headed.shared
    assert "shop-token" not in repr(given) + repr(headed) + str(given.identity) + str(headed.identity)


def test_a_file_of_the_project_is_named_by_its_path_and_stamped(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("1")
    before = parsed("mcp:cat server.py", tmp_path)
    assert before.argv[1] == str(tmp_path / "server.py")
    (tmp_path / "server.py").write_text("2")
    assert parsed("mcp:cat server.py", tmp_path).identity != before.identity


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("mcp:", "names no server; write mcp:COMMAND or mcp:https://HOST/mcp"),
        ("mcp:A=1", "names no server"),
        ("mcp:cat 'x", "is not a command line: No closing quotation"),
        ("mcp:no-such-program", "there is no program 'no-such-program' on PATH"),
        ("mcp:TOKEN=$NOT_SET cat", "the environment variable NOT_SET is not set"),
        ("mcp-shared:cat {workspace}", "a shared server has no workspace; write mcp: in"),
        ("mcp:https://a.example/mcp more", "nothing may follow the URL"),
        ("mcp:https://me@a.example/mcp", "the URL must not hold a user"),
        ("mcp:https://me:hunter22@a.example/mcp", "a secret stands in 'tools=mcp:...'"),
        ("mcp:TOKEN=sk-proj-abcdefghijklmnopqrstuvwx123456:$SHOP_TOKEN cat", "a secret stands in"),
        ("mcp:cat --api-key 7c9e6679f4b54fd2b1c0", "a secret stands in"),
        ("mcp:X-Key=$SHOP_TOKEN http://a.example/mcp", "would send X-Key unencrypted; use https"),
        ("mcp:A_B=1 https://a.example/mcp", "'A_B' is no header"),
        (
            "mcp:Authorization='Bearer sk-proj-abcdefghijklmnopqrstuvwx123456' https://a.example/mcp",
            "a secret stands in",
        ),
    ],
)  # fmt: skip
def test_a_spec_that_cannot_be_used_is_named(tmp_path: Path, entry: str, reason: str) -> None:
    with pytest.raises(ActorError) as caught:
        parsed(entry, tmp_path)
    assert reason in str(caught.value)
    assert "sk-proj" not in str(caught.value)
    assert "hunter22" not in str(caught.value)
