"""A node without a cluster: it opens the agent, answers turns, and fetches each file once."""

from __future__ import annotations

import asyncio
import os
import pickle
import platform
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import ROOT
from support.executors import asked

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import AgentFailure, ProviderError, SettingError
from pytest_tfgrpo.core.scenarios import Attachment
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.engine.executors.cluster import node as node_module
from pytest_tfgrpo.engine.executors.cluster.node import (
    BUNDLE_BYTES,
    NodeAnswer,
    NodeFacts,
    NodeTurn,
    NodeWorker,
    first_bundle,
    installed,
)
from pytest_tfgrpo.engine.executors.worker import AgentTurn, WorkerReply, WorkerSetup
from pytest_tfgrpo.sandbox.workspace import Workspace

DATA = b"attached"
STAMP = stamp_bytes(DATA)


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "tests")
    monkeypatch.setattr(sys, "path", [*sys.path])
    named = [{"Name": "An_Agent"}, {"Name": "pytest"}, {"Name": None}]
    found = [SimpleNamespace(metadata=metadata, version=f"1.{n}") for n, metadata in enumerate(named)]
    monkeypatch.setattr(node_module, "distributions", lambda: found)


def setup_of(agent: str) -> bytes:
    settings: dict[str, object] = {"sandbox": "none"}
    spec = f"python:support.worker_agents:{agent}"
    opener = partial(open_actor, spec, settings=settings)
    return pickle.dumps(WorkerSetup(agent=opener, root=Path("/nowhere")))


async def opened(agent: str) -> NodeWorker:
    node = NodeWorker()
    facts = await node.open(setup_of(agent), "run", (), {})
    assert facts == NodeFacts(
        problem="", host=platform.node(), packages=installed(), pid=os.getpid(), lacks=()
    )
    return node


def turn(folder: Path, id_: str = "a", prompt: str = "?", **changes: Any) -> AgentTurn:
    return AgentTurn(id=id_, call=asked(prompt, folder), **changes)


def with_file(folder: Path, name: str = "told.txt") -> AgentTurn:
    one = turn(folder)
    attachment = Attachment(name=name, path=folder / "gone", sha256=STAMP)
    workspace = Workspace(folder / "elsewhere", (attachment,))
    return replace(one, call=replace(one.call, workspace=workspace))


async def answers(
    node: NodeWorker, *sent: tuple[str, bytes, Any]
) -> dict[str, tuple[NodeAnswer | None, str]]:
    await node.begin(sent)
    found: dict[str, tuple[NodeAnswer | None, str]] = {}
    while len(found) < len(sent):
        for id_, data, why in await node.collect():
            found[id_] = (pickle.loads(data) if data else None, why)
    return found


def sent(one: AgentTurn, files: Any = None, before: Any = None) -> tuple[str, bytes, Any]:
    return one.id, pickle.dumps(NodeTurn(turn=one, before=before)), files


def run(agent: str, main: Callable[[NodeWorker], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        node = await opened(agent)
        try:
            return await main(node)
        finally:
            await node.close()

    return asyncio.run(whole())


def reply(answer: NodeAnswer | None) -> WorkerReply:
    assert answer is not None
    found: WorkerReply = pickle.loads(answer.reply)
    return found


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ([], 0),
        ([BUNDLE_BYTES * 2, 1], 1),
        ([1, 2, 3], 3),
        ([BUNDLE_BYTES - 1, 1, 1], 2),
        ([BUNDLE_BYTES - 1, BUNDLE_BYTES, 1], 2),
        ([BUNDLE_BYTES, 1], 1),
    ],
)
def test_what_travels_together_is_about_one_bundle_and_one_item_at_least(
    sizes: list[int], taken: int
) -> None:
    items = [(str(n), bytes(size), "") for n, size in enumerate(sizes)]
    rest = list(items)
    assert first_bundle(rest) == items[:taken]
    assert rest == items[taken:]


def test_a_node_says_what_is_installed_there() -> None:
    assert installed() == {"an-agent": "1.0", "pytest": "1.1", "python": platform.python_version()}


def test_a_node_that_cannot_open_the_agent_says_why(tmp_path: Path) -> None:
    async def facts(agent: str, suites: dict[str, str], *paths: str) -> NodeFacts:
        node = NodeWorker()
        found = await node.open(setup_of(agent), "run", paths, suites)
        await node.close()
        return found

    assert "has no 'nobody'" in asyncio.run(facts("nobody", {})).problem
    found = asyncio.run(facts("half", {"0" * 64: "support"}, "support", "golden"))
    assert sys.path[:2] == [str(ROOT / "tests/support"), str(ROOT / "tests/golden")]
    before = len(sys.path)
    asyncio.run(facts("half", {}, "support"))
    assert len(sys.path) == before
    assert found.lacks == ("0" * 64,) or found.problem


def test_each_turn_is_answered_once_and_a_crash_is_the_agents(tmp_path: Path) -> None:
    async def main(node: NodeWorker) -> Any:
        found = await answers(node, sent(turn(tmp_path, "a")), sent(turn(tmp_path, "b", "raise")))
        broken = await answers(node, ("c", b"no pickle", None))
        assert not node._answered
        assert not node._has_answered.is_set()
        assert (node._open, node._tasks) == ({}, {})
        return found, broken

    found, broken = run("faulty", main)
    assert reply(found["a"][0]).trajectory.answer == "3"
    fault = reply(found["b"][0]).fault
    assert isinstance(fault, AgentFailure)
    assert "no such word" in str(fault)
    assert broken["c"][0] is None
    assert "UnpicklingError" in broken["c"][1]


def test_a_conversation_keeps_its_workspace_until_it_ends(tmp_path: Path) -> None:
    async def main(node: NodeWorker) -> Any:
        one, two = (turn(tmp_path, message=text) for text in ("one", "two"))
        first = await answers(node, sent(one))
        kept = node._open["a"]
        second = await answers(node, sent(two))
        assert node._open["a"] is kept
        await node.end("a")
        third = await answers(node, sent(one))
        await node.end("a")
        assert node._open == {}
        return [reply(found["a"][0]).trajectory.answer for found in (first, second, third)]

    assert run("in_pieces", main) == ["1: one", "2: two", "1: one"]


def test_a_workspace_has_what_was_attached_and_what_came_before_and_says_what_it_has_now(
    tmp_path: Path,
) -> None:
    fetched: list[str] = []

    async def content() -> bytes:
        fetched.append("one")
        return DATA

    async def main(node: NodeWorker) -> Any:
        one = with_file(tmp_path)
        files = {STAMP: content()}
        found = await answers(node, sent(one, files))
        again = await answers(node, sent(one, None, found["a"][0].left))
        return found["a"][0], again["a"][0]

    first, second = run("writes", main)
    assert reply(first).trajectory.answer == "left.txt,told.txt"
    assert [name for name, _ in first.left] == ["left.txt"]
    assert second.left == first.left
    assert fetched == ["one"]


def test_a_file_with_another_stamp_is_refused_and_fetched_again_the_next_time(tmp_path: Path) -> None:
    async def content(data: bytes) -> bytes:
        return data

    async def main(node: NodeWorker) -> Any:
        one = with_file(tmp_path)
        wrong = await answers(node, sent(one, {STAMP: content(b"other")}))
        right = await answers(node, sent(one, {STAMP: content(DATA)}))
        return reply(wrong["a"][0]), reply(right["a"][0])

    wrong, right = run("writes", main)
    assert isinstance(wrong.fault, ProviderError)
    assert (str(wrong.fault), wrong.fault.code) == ("a file changed after its scenario was read", "workspace")
    assert right.fault is None


def test_a_turn_that_is_cancelled_is_answered_with_neither_and_an_unknown_one_is_nothing(
    tmp_path: Path,
) -> None:
    async def main(node: NodeWorker) -> Any:
        await node.cancel("nobody")
        await node.begin([sent(turn(tmp_path, prompt="cancel"))])
        ((_, data, why),) = await node.collect()
        return pickle.loads(data), why

    answer, why = run("faulty", main)
    assert (why, answer.left) == ("", None)


def test_an_environment_of_the_run_is_built_on_the_node_or_lacks_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: Any = object()

    def find(suite: Path, stamp: str) -> Any:
        assert suite == Path.cwd() / "suite"
        if stamp == "gone":
            raise SettingError("it is not built")
        return built

    monkeypatch.setattr(node_module, "find_built", find)
    node = NodeWorker()
    assert [node._has(stamp, "suite") for stamp in ("here", "gone")] == [True, False]
    assert node._environments == {"here": built}
