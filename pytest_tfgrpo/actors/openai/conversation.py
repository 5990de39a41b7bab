"""One rollout of a model with tools: call the model, run its tools, repeat, within a time limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pytest_tfgrpo.actors.mcp.server_program import CLOSE_S
from pytest_tfgrpo.actors.mcp.server_session import hurried
from pytest_tfgrpo.actors.openai.context import ToolContext
from pytest_tfgrpo.actors.openai.invoke import RAW_CHARS, clean, invoke, tool_frame
from pytest_tfgrpo.actors.output import total_max_bytes
from pytest_tfgrpo.core.errors import (
    BUDGET,
    TIMEOUT,
    AgentFailure,
    BudgetError,
    ModelError,
    ProviderError,
    RolloutFault,
    describe,
)
from pytest_tfgrpo.core.python.clock import elapsed_ms, utc_now
from pytest_tfgrpo.core.records import Frame, Trajectory
from pytest_tfgrpo.llm.limits.queueing import Ticket, current_ticket
from pytest_tfgrpo.llm.protocol import Completer, Completion, Image, Message, Request, ToolCall
from pytest_tfgrpo.llm.replies.written_calls import begins_call
from pytest_tfgrpo.protocols import ActorCall

if TYPE_CHECKING:
    from pytest_tfgrpo.actors.openai.toolbox import Offer

MARGIN_S, MARGIN_SHARE = 0.25, 0.05
"""A rollout ends so long before its time limit: what it has paid for is lost when it is cancelled."""
TOLD_CHARS = 4_000_000
"""Most characters of tool output in one rollout: more than any model reads, and resent with each call."""
CALLS_PER_TURN = 64
"""Most tool calls that a model may make at once."""


class Conversation:
    """The messages of one rollout, and the frames of its present turn."""

    def __init__(
        self,
        completer: Completer,
        call: ActorCall,
        offer: Offer,
        pictures: tuple[Image, ...],
        began: float,
        context: ToolContext,
    ) -> None:
        """Begin with the prompt of `call`, whose time runs since `began`, a reading of the loop's clock."""
        self._completer = completer
        self._model = completer.name.partition(":")[2] or completer.name
        self._call = call
        self._offer = offer
        self._margin_s = min(MARGIN_S, MARGIN_SHARE * call.timeout_s)
        self._turn = current_ticket()
        self._deadline = began + call.timeout_s - self._margin_s - self._turn.waited_s
        self._context = context
        self._written = 0
        self._told = 0
        self._thoughts_left = call.answer_max_bytes
        user = Message(role="user", content=clean(call.prompt.user), images=pictures)
        system = Message(role="system", content=clean(call.prompt.system))
        self._messages = [system, user] if call.prompt.system else [user]
        self._frames: list[Frame] = []
        self._steps = 0
        self._asked = False

    def go_on(self, message: str) -> None:
        """Take the next message of the user, after an answer."""
        self._messages.append(Message(role="user", content=clean(message)))
        self._frames = []

    async def run(self, max_steps: int) -> Trajectory:
        """Return the answer and all calls made for it, after `max_steps` model calls at most.

        Raises AgentFailure and ProviderError, both with the calls made.
        """
        for step in range(1, max_steps + 1):
            completion = await self._ask()
            self._require_usable(completion)
            if not completion.tool_calls:
                return self._answer(completion)
            if step < max_steps:
                self._steps += 1
                await self._use_tools(completion, self._steps)
        raise self._failure(
            f"no answer after {max_steps} model calls: the model keeps calling tools; "
            "raise max_steps if it needs more",
            "tool_loop",
        )

    async def aclose(self) -> None:
        """End the servers that it started, at once where its time is up."""
        if self._offer.servers is not None:
            grace_s = 0.0 if hurried() else min(CLOSE_S, max(self._left_s(), 0.0) / 2)
            await self._offer.servers.aclose(grace_s)

    async def _ask(self) -> Completion:
        """Return the model's next message, and add a frame for the call."""
        started = time.perf_counter() - self._turn.waited_s
        left_s = self._left_s()
        if left_s <= 0:
            late = AgentFailure if self._asked else ProviderError
            message = f"no time is left of {self._call.timeout_s:g} s for a model call"
            raise late(message, TIMEOUT, frames=tuple(self._frames))
        request = Request(
            messages=tuple(self._messages),
            temperature=self._call.temperature,
            seed=self._call.seed,
            tools=self._offer.specs,
            timeout_s=left_s,
            logprobs=True,
        )
        try:
            async with _limit(self._turn, left_s + self._margin_s / 2):
                completion = await self._completer.complete(request)
        except BudgetError as error:
            raise ProviderError(str(error), BUDGET, frames=tuple(self._frames)) from error
        except ModelError as error:
            raise self._no_completion(str(error), error.code, started, error.cost_usd) from error
        except (TimeoutError, asyncio.CancelledError) as error:
            # a cancellation is the end of the time limit, or else nobody looks at what is raised here
            message = f"the model did not answer within {self._call.timeout_s:g} s"
            raise self._no_completion(message, TIMEOUT, started) from error
        except Exception as error:  # what a client did not foresee is no fault of the agent
            raise self._no_completion(describe(error), "client", started) from error
        latency_ms = completion.latency_ms or elapsed_ms(started + self._turn.waited_s)
        self._asked = True
        self._frames.append(
            Frame(
                kind="model",
                name=self._model,
                input={"messages": len(request.messages)},
                output=_cut(clean(completion.text), self._call.answer_max_bytes),
                tokens=0 if completion.usage is None else completion.usage.total,
                cost_usd=completion.cost_usd,
                latency_ms=latency_ms,
                usage=completion.usage,
                finish=completion.finish,
                started_at=utc_now(ago_ms=latency_ms),
                extra={"response_model": clean(completion.model)} if completion.model else {},
                sampled=completion.sampled,
                thoughts=self._thoughts(completion),
            )
        )
        return completion

    def _thoughts(self, completion: Completion) -> str:
        """Return what the model thought, within what a rollout keeps of thoughts."""
        kept = _cut(clean(completion.thoughts), self._thoughts_left)
        self._thoughts_left -= len(kept.encode())
        return kept

    def _left_s(self) -> float:
        """Return how much is left of the time limit; waiting for room in the budget does not count."""
        return self._deadline + self._turn.waited_s - asyncio.get_running_loop().time()

    def _no_completion(
        self, message: str, code: str, started: float, cost_usd: float | None = None
    ) -> RolloutFault:
        """Return the fault of a model call without an answer, which may have been paid for."""
        latency_ms = elapsed_ms(started + self._turn.waited_s)
        self._asked = True
        self._frames.append(
            Frame(
                kind="model",
                name=self._model,
                input={"messages": len(self._messages)},
                cost_usd=cost_usd,
                latency_ms=latency_ms,
                error=clean(message),
                started_at=utc_now(ago_ms=latency_ms),
            )
        )
        fault = AgentFailure if code == "oversize" else ProviderError
        return fault(clean(message), code, frames=tuple(self._frames))

    def _require_usable(self, completion: Completion) -> None:
        """Raise AgentFailure or ProviderError unless the model ended its turn in good order."""
        text = self._frames[-1].output
        if completion.finish == "content_filter":
            message = "the provider's content filter withheld the answer"
            raise ProviderError(message, "content_filter", frames=tuple(self._frames), answer=text)
        if completion.finish == "refusal":
            raise self._failure(f"the model refused: {text[:200]}", "refusal", text)
        if completion.finish == "length":
            raise self._failure(
                "the answer was cut off at max_tokens; raise it if answers need more", "truncated", text
            )
        calls = completion.tool_calls
        self._written += len(completion.text) + sum(len(c.name) + len(c.arguments) for c in calls)
        limit = total_max_bytes(self._call.answer_max_bytes)
        if self._written > limit:
            raise self._failure(
                f"the model has written {self._written} characters, more than {limit}", "oversize"
            )
        if len(calls) > CALLS_PER_TURN:
            raise self._failure(f"{len(calls)} tool calls at once, more than {CALLS_PER_TURN}", "tool_loop")

    def _answer(self, completion: Completion) -> Trajectory:
        answer = clean(completion.text)
        size, limit = len(answer.encode()), self._call.answer_max_bytes
        if size > limit:
            raise self._failure(f"the answer has {size} bytes, more than {limit}", "oversize")
        if not answer.strip():
            why = f": {clean(completion.why_empty)}" if completion.why_empty else ""
            raise self._failure(f"the model returned an empty answer{why}", "no_answer")
        if self._offer.specs and begins_call(answer):
            message = (
                f"the model wrote a call of a tool as text that cannot be read as one: {answer[:200]}; "
                "start its server with a parser for tool calls"
            )
            raise self._failure(message, "no_answer", answer)
        self._messages.append(Message(role="assistant", content=answer))
        return Trajectory(answer=answer, frames=tuple(self._frames))

    async def _use_tools(self, completion: Completion, step: int) -> None:
        """Call the tools of one turn side by side; their frames and messages keep the model's order."""
        left_s = self._left_s()
        if left_s <= 0:
            message = f"the model used up the time limit of {self._call.timeout_s:g} s"
            raise ProviderError(message, TIMEOUT, frames=tuple(self._frames))
        calls = _identified(completion.tool_calls, step)
        self._messages.append(Message(role="assistant", content=clean(completion.text), tool_calls=calls))
        started = time.perf_counter()
        tasks = [asyncio.ensure_future(invoke(call, self._offer.tools, self._context)) for call in calls]
        fault: RolloutFault | None = None
        try:
            await _within(tasks, left_s, self._margin_s / 4)  # before `_limit` ends the turn
        except asyncio.CancelledError:
            fault = AgentFailure("the tools were still running at the time limit", TIMEOUT)
        for call, task in zip(calls, tasks, strict=True):
            frame, caught = _ended(call, task, elapsed_ms(started))
            fault = fault or caught
            self._frames.append(frame)
            text = frame.output if frame.error is None else f"error: {frame.error}"
            self._told += len(text)
            self._messages.append(Message(role="tool", content=text, tool_call_id=call.id))
        if fault is not None:
            blamed = AgentFailure if isinstance(fault, AgentFailure) else ProviderError
            raise blamed(clean(str(fault)), fault.code, frames=tuple(self._frames)) from fault
        if self._told > TOLD_CHARS:
            raise self._failure(
                f"the tools returned {self._told} characters, more than {TOLD_CHARS}", "oversize"
            )

    def _failure(self, message: str, code: str, answer: str = "") -> AgentFailure:
        return AgentFailure(message, code, frames=tuple(self._frames), answer=answer)


@asynccontextmanager
async def _limit(ticket: Ticket, seconds: float) -> AsyncIterator[None]:
    """Cancel what goes on after `seconds`, raising TimeoutError; waiting for the budget does not count."""
    async with asyncio.timeout(None) as guard:
        timer = ticket.timer(seconds, lambda: guard.reschedule(0.0))
        try:
            yield
        finally:
            timer.cancel()


async def _within(tasks: list[asyncio.Task[Frame]], left_s: float, grace_s: float) -> None:
    """Wait for `tasks`; those that go on after `left_s` are cancelled, and left alone after `grace_s`."""
    pending = set(tasks)
    try:
        _, pending = await asyncio.wait(tasks, timeout=left_s)
    finally:
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=grace_s)


def _ended(call: ToolCall, task: asyncio.Task[Frame], waited_ms: float) -> tuple[Frame, RolloutFault | None]:
    """Return the frame of a tool's call, and what ends the rollout, if it does."""
    if task.done() and not task.cancelled() and (error := task.exception()) is None:
        return task.result(), None
    if task.done() and not task.cancelled() and isinstance(error, RolloutFault):
        fault: RolloutFault = error
    else:
        fault = AgentFailure(
            f"the tool {clean(call.name[:64])!r} was still running at the time limit", TIMEOUT
        )
    return tool_frame(call, clean(call.arguments[:RAW_CHARS]), "", str(fault), waited_ms), fault


def _identified(calls: tuple[ToolCall, ...], step: int) -> tuple[ToolCall, ...]:
    """Return the calls with unique ids, and text that UTF-8 can encode."""
    own = len({call.id for call in calls}) == len(calls) and all(call.id for call in calls)
    return tuple(
        ToolCall(
            id=clean(call.id) if own else f"call_{step}_{n}",
            name=clean(call.name),
            arguments=clean(call.arguments),
        )
        for n, call in enumerate(calls, 1)
    )


def _cut(text: str, limit: int) -> str:
    """Return `text`, or so much of it as fits into `limit` bytes."""
    if len(text) * 4 <= limit:
        return text
    return text.encode()[:limit].decode("utf-8", "ignore")
