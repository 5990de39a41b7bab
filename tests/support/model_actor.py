"""An openai actor over a scripted model, asked as the engine asks."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_tfgrpo.actors.openai.agent import OpenAIActor, open_openai
from pytest_tfgrpo.core.scenarios import Attachment, Task
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult, attempt
from pytest_tfgrpo.llm.protocol import Completion, Request, ToolCall
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.workspace import Workspace
from support.completers import USAGE, Answer, ScriptedCompleter

MODULE = "tools_under_test"


def wants(*calls: tuple[str, str], text: str = "") -> Completion:
    """Return a completion that asks for tools, each by name and arguments as JSON."""
    made = tuple(ToolCall(id=f"c{n}", name=name, arguments=given) for n, (name, given) in enumerate(calls))
    return Completion(text=text, tool_calls=made, finish="tool_calls", usage=USAGE, cost_usd=0.01)


def script(*turns: Completion | str | Exception) -> Callable[[Request], Completion | str]:
    """Return a model that says `turns` one after the other, whatever it is asked."""
    left = iter(turns)

    def answer(_: Request) -> Completion | str:
        turn = next(left)
        if isinstance(turn, Exception):
            raise turn
        return turn

    return answer


class Bench:
    """Opens actors in a temporary root folder and asks them."""

    def __init__(self, root: Path, make_call: Callable[..., ActorCall]) -> None:
        self.root = root
        self.make_call = make_call
        self.environ: Mapping[str, str] = {}
        self.model = ScriptedCompleter(script())

    def tools(self, source: str) -> None:
        (self.root / f"{MODULE}.py").write_text(textwrap.dedent(source))

    def actor(self, answer: Answer | None = None, **settings: object) -> OpenAIActor:
        tools = MODULE if (self.root / f"{MODULE}.py").exists() else None
        self.model = ScriptedCompleter(answer or script())
        given: Any = {"tools": tools, "max_steps": 5} | settings
        return open_openai(self.model, self.root, given, self.environ)

    def ask(
        self, answer: Answer, *, settings: Mapping[str, Any] | None = None, **changes: Any
    ) -> AttemptResult:
        """Ask an actor over the model `answer` once; `tools` are those of the task."""
        if "tools" in changes:
            changes["task"] = Task(id="t", domain="d", prompt="p", tools=changes.pop("tools"))
        actor = self.actor(answer, **settings or {})

        async def once() -> AttemptResult:
            try:
                return await attempt(actor, self.make_call(**changes))
            finally:
                await actor.aclose()

        return asyncio.run(once())

    def workspace(self, **files: bytes) -> Workspace:
        """Return a workspace with these files, ``a_txt`` for ``a.txt``, made as the engine makes it."""
        folder = self.root / "attached"
        folder.mkdir(exist_ok=True)
        attachments = []
        for key, data in files.items():
            name = key.replace("_", ".")
            (folder / name).write_bytes(data)
            attachments.append(Attachment(name=name, path=folder / name, sha256=""))
        return Workspace(self.root / "work", tuple(attachments))

    def told(self, request: int = -1) -> list[str]:
        """Return what the tools told the model in the messages of a request."""
        return [m.content for m in self.model.requests[request].messages if m.role == "tool"]
