"""The actor that calls a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.actors.openai.context import ToolContext
from pytest_tfgrpo.actors.openai.conversation import Conversation
from pytest_tfgrpo.actors.openai.mocks import mocked, require_known
from pytest_tfgrpo.actors.openai.pictures import read_pictures, require_sendable
from pytest_tfgrpo.actors.openai.toolbox import Toolbox, open_toolbox
from pytest_tfgrpo.core.errors import ActorError, ProviderError
from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.core.scenarios import Attachment, Task, ToolMock
from pytest_tfgrpo.core.settings.agents import MAX_STEPS, TOOLS
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.protocol import Completer, Image
from pytest_tfgrpo.protocols import ActorCall

NOTHING: Mapping[str, str] = {}


class OpenAIActor:
    """Sends the prompt to a model and runs the scenario's tools, with at most `max_steps` model calls."""

    metered = True

    def __init__(self, completer: Completer, toolbox: Toolbox, max_steps: int) -> None:
        self.name = completer.name
        self.paid = completer.paid
        self.identity: Mapping[str, Json] = {
            **completer.identity,
            "max_steps": max_steps,
            "tools": dict(toolbox.identity),
        }
        self.concurrency = completer.concurrency
        self.batched = getattr(completer, "batched", False)
        """Whether its calls wait for each other."""
        self._completer = completer
        self._toolbox = toolbox
        self._max_steps = max_steps

    def require(self, tasks: Sequence[tuple[Task, Sequence[Attachment]]]) -> None:
        """Raise ActorError naming the first scenario with an unknown tool or too large pictures."""
        for task, attachments in tasks:
            try:
                self._toolbox.offer(task.tools, files=False)
            except ActorError as error:
                raise ActorError(f"scenario {task.id!r}: {error}") from error
            require_sendable(task, attachments)

    def require_mocks(self, task: Task, mocks: Sequence[ToolMock]) -> None:
        """Raise ActorError for a mock of a tool that the scenario's rollouts have not."""
        require_known(self._toolbox.offer(task.tools, files=True), mocks)

    converses = True

    async def __call__(self, call: ActorCall) -> Trajectory:
        """Try the scenario once; see Actor."""
        session = self.open_session(call)
        try:
            return await session.answer(call.prompt.user)
        finally:
            await session.aclose()

    def open_session(self, call: ActorCall) -> ModelSession:
        """Return a conversation, of at most `max_steps` model calls in each turn."""
        return ModelSession(self, call, self._max_steps)

    async def begin(self, call: ActorCall) -> Conversation:
        """Return the messages of a rollout that begins; raises ProviderError."""
        began = asyncio.get_running_loop().time()
        task = call.task
        pictures: tuple[Image, ...] = ()
        files = call.workspace.archive is not None
        if call.workspace.attachments:
            pictures, others = await asyncio.to_thread(read_pictures, call.workspace.attachments)
            files = files or others
        try:
            offer = self._toolbox.offer(task.tools, files=files, mocks={mock.tool for mock in call.mocks})
        except ActorError as error:
            raise ProviderError(str(error), "tools") from error
        context = ToolContext(task=task, seed=call.seed, folder=call.workspace)
        offer = offer.bound(self._toolbox.servers.rollout(lambda: context.workspace))
        if call.mocks:
            offer = mocked(offer, call.mocks, task.id)
        return Conversation(self._completer, call, offer, pictures, began, context)

    def bound(self, call_count: int) -> Mapping[str, float | None]:  # noqa: ARG002 - part of the Protocol
        """Return what is known beforehand: a free model costs nothing, the length of a loop is its own."""
        return {"usd": None if self.paid else 0.0, "tokens": None}

    async def aclose(self) -> None:
        """End the servers that rollouts shared; the model's client is not its own."""
        await self._toolbox.servers.aclose()


class ModelSession:
    """Keeps the messages of a conversation."""

    def __init__(self, actor: OpenAIActor, call: ActorCall, max_steps: int) -> None:
        self._actor = actor
        self._call = call
        self._max_steps = max_steps
        self._conversation: Conversation | None = None

    async def answer(self, message: str) -> Trajectory:
        """Return the model's answer; the first message is that of the call's prompt."""
        if self._conversation is None:
            self._conversation = await self._actor.begin(self._call)
        else:
            self._conversation.go_on(message)
        return await self._conversation.run(self._max_steps)

    async def aclose(self) -> None:
        """End the servers of the conversation."""
        if self._conversation is not None:
            await self._conversation.aclose()


def open_openai(
    completer: Completer, root: Path, settings: Mapping[str, object], environ: Mapping[str, str] = NOTHING
) -> OpenAIActor:
    """Return the actor that calls `completer`, as `tools` and `max_steps` are set; raises ActorError.

    Servers get of `environ` what their spec names.
    """
    return OpenAIActor(completer, open_toolbox(TOOLS.of(settings), root, environ), MAX_STEPS.of(settings))
