"""What can be called as an agent, and what is known beforehand to fail: with no false alarm."""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Optional, Protocol
from unittest import mock

import pytest

from pytest_tfgrpo.actors.agent_signature import why_no_agent
from pytest_tfgrpo.actors.python import AgentContext
from pytest_tfgrpo.core.records import Trajectory


class Run:
    """An agent with a method."""

    def run(self, context: AgentContext) -> str:
        return str(context)

    def bare(self) -> str:
        return ""

    def maybe(self, context: AgentContext | None = None) -> str:
        return str(context)

    @staticmethod
    def still(context: Any) -> str:
        return str(context)

    @classmethod
    def of_class(cls, context: Any) -> str:
        return str(context)


class Namespace:
    """Functions that are no methods."""

    def solve(context: Any) -> str:  # type: ignore[misc]
        return str(context)


class Called:
    """An agent that is called."""

    def __init__(self, key: str = "") -> None:
        self.key = key

    def __call__(self, context: AgentContext) -> str:
        return self.key


class CalledByText:
    def __call__(self, prompt: str) -> str:
        return prompt


class CalledStreaming:
    async def __call__(self, context: Any) -> AsyncIterator[str]:
        yield ""


class Has(Protocol):
    seed: int


class Answer(str):
    """An answer that is made of the context."""

    __slots__ = ()


class Made:
    """Answers where it is made."""

    def __new__(cls, context: Any) -> str:  # type: ignore[misc]
        return str(context)


def by_text(prompt: str) -> str:
    return prompt


def by_written_text(prompt: "str") -> str:  # noqa: UP037
    return prompt


def by_optional_text(prompt: Optional[str]) -> str:  # noqa: UP045
    return prompt or ""


def by_messages(messages: list[dict[str, Any]]) -> str:
    return str(messages)


def by_typing_list(messages: typing.List[Any]) -> str:  # noqa: UP006
    return str(messages)


def by_dict(task: "dict") -> str:  # type: ignore[type-arg]  # noqa: UP037
    return str(task)


def by_number(seed: int) -> str:
    return str(seed)


def by_real_list(messages: Any) -> str:
    return str(messages)


by_real_list.__annotations__ = {"messages": list[dict[str, str]]}


def by_any_of(context: "AgentContext | dict[str, str]") -> str:  # noqa: UP037
    return str(context)


def by_keyword(*, context: Any) -> str:
    return str(context)


def by_nothing() -> str:
    return ""


def by_two(context: Any, model: str) -> str:
    return model


def streaming(context: Any) -> Iterator[str]:
    yield "3"


async def streaming_later(context: Any) -> AsyncIterator[str]:
    yield "3"


def adapted(function: Callable[[str], str]) -> Callable[[AgentContext], str]:
    @functools.wraps(function)
    def wrapper(context: AgentContext) -> str:
        return function(context.prompt.user)

    return wrapper


def joined(function: Callable[[Any], Iterator[str]]) -> Callable[[Any], str]:
    @functools.wraps(function)
    def wrapper(context: Any) -> str:
        return "".join(function(context))

    return wrapper


async def waited(context: Has) -> str:
    return ""


@types.coroutine
def old_coroutine(context: Any) -> Any:
    yield
    return "3"


real_text: Any = lambda prompt: prompt  # noqa: E731
real_text.__annotations__ = {"prompt": str}

GOOD: dict[str, Any] = {
    "partial": functools.partial(by_two, model="m"),
    "partial of adapted": functools.partial(adapted(by_text)),
    "adapted": adapted(by_text),
    "joined": joined(streaming),
    "cached": functools.lru_cache(by_text),
    "bound": Run().run,
    "bound with default": Run().maybe,
    "static": Run.still,
    "of class": Run.of_class,
    "namespace": Namespace.solve,
    "called": Called(),
    "class of answers": Answer,
    "class that answers": Made,
    "trajectory": Trajectory,
    "async": waited,
    "old coroutine": old_coroutine,
    "any arguments": lambda *args, **more: "",
    "default": lambda context, model="m": "",
    "builtin": json.dumps,
    "no signature": dict.fromkeys,
    "any of two": by_any_of,
    "mock": mock.Mock(),
    "magic": mock.MagicMock(),
    "async mock": mock.AsyncMock(),
}
BAD: dict[str, tuple[Any, str]] = {
    "class": (Called, "'x' is a class; name an instance"),
    "unbound": (Run.run, "'x' must take one argument, the context: it is a method of the class 'Run'"),
    "unbound with default": (Run.maybe, "it is a method of the class 'Run'; name that of an instance"),
    "unbound alone": (Run.bare, "it is a method of the class 'Run'"),
    "bound without": (Run().bare, "'x' must take one argument, the context, not (): too many"),
    "keyword": (by_keyword, "must take one argument, the context, not (*, context: 'Any')"),
    "nothing": (by_nothing, "must take one argument, the context, not (): too many positional"),
    "two": (by_two, "missing a required argument: 'model'"),
    "messages": (by_messages, "'messages' is annotated list[dict[str, Any]]; it gets a context: use context"),
    "typing list": (by_typing_list, "'messages' is annotated typing.List[Any]; it gets a context"),
    "dict": (by_dict, "is annotated 'dict'; it gets a context"),
    "number": (by_number, "'seed' is annotated int; it gets a context"),
    "real list": (by_real_list, "'messages' is annotated list[dict[str, str]]; it gets a context"),
    "text": (by_text, "'prompt' is annotated str; it gets a context: use context.prompt.user"),
    "written": (by_written_text, "it gets a context: use context.prompt.user"),
    "optional": (by_optional_text, "is annotated Optional[str]; it gets a context"),
    "real": (real_text, "'prompt' is annotated str; it gets a context"),
    "called": (CalledByText(), "'prompt' is annotated str"),
    "partial": (functools.partial(by_two), "missing a required argument: 'model'"),
    "stream": (streaming, "'x' is a generator, which streams; join its parts and return one string"),
    "stream later": (streaming_later, "join its parts"),
    "stream of object": (CalledStreaming(), "join its parts"),
    "object": (Run(), "'x' is a 'Run' object, not a callable; it has run(); write python:ag:x.run"),
    "plain object": (object(), "'x' is a 'object' object, not a callable"),
    "module": (json, "'x' is a module, not a callable"),
    "none": (None, "'x' is None, not a callable"),
    "text value": ("gpt", "'x' is 'gpt', not a callable"),
}


@pytest.mark.parametrize("value", GOOD.values(), ids=GOOD)
def test_what_may_take_the_context_is_left_alone(value: Any) -> None:
    assert why_no_agent(value, "x", "python:ag:x") == ""


@pytest.mark.parametrize(("value", "says"), BAD.values(), ids=BAD)
def test_what_cannot_take_it_is_told_with_what_to_write(value: Any, says: str) -> None:
    why = why_no_agent(value, "x", "python:ag:x")
    assert says in why
    assert " at 0x" not in why
