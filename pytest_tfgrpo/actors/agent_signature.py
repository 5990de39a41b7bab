"""Whether a Python object can be called as an agent is, with the context as its only argument.

What cannot be known for certain passes: decorated functions may adapt what they wrap, and builtins have no
signature.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from pytest_tfgrpo.core.records import Trajectory
from pytest_tfgrpo.core.texts.text import few

ENTRIES = (
    *("solve", "run", "invoke", "answer", "respond", "ask", "act", "predict", "generate", "chat", "complete"),
    *("arun", "ainvoke", "call", "kickoff", "execute", "forward", "query", "step"),
)
"""Methods that agents of today's frameworks are called by."""
ONE_ARGUMENT = "must take one argument, the context"
_BUILTIN = re.compile(
    r"(?:builtins\.|typing\.|t\.)?(?:list|dict|tuple|set|int|float|bool|bytes|List|Dict|Tuple|Set)(?:\[[^|]*\])?"
)
STREAMS = "a generator, which streams; join its parts and return one string"


def why_no_agent(value: object, name: str, spec: str) -> str:
    """Return why `value` cannot be an agent, after its `name`; empty where it can, or may.

    `spec` is how it is named, for example ``python:ag:inst``; empty where methods cannot be.
    """
    if not callable(value):
        return _why_not_callable(value, name, spec)
    if isinstance(value, type):
        return "" if _makes_answers(value) else f"{name!r} is a class; name an instance"
    inner: Any = value
    while isinstance(inner, functools.partial):
        inner = inner.func
    call = inner if inspect.isroutine(inner) else type(inner).__call__
    if any(hasattr(one, "__wrapped__") or hasattr(one, "__signature__") for one in (inner, call)):
        return ""
    if _streams(call):
        return f"{name!r} is {STREAMS}"
    try:
        signature = inspect.signature(value, follow_wrapped=False)
    except (ValueError, TypeError):
        return ""
    return _why_not_bound(signature, name, value)


def _why_not_callable(value: object, name: str, spec: str) -> str:
    if value is None or isinstance(value, str | int | float):
        return f"{name!r} is {value!r:.80}, not a callable"
    what = "a module" if isinstance(value, types.ModuleType) else f"a {type(value).__name__!r} object"
    found = [one for one in ENTRIES if callable(inspect.getattr_static(value, one, None))]
    if isinstance(value, types.ModuleType) or not found:
        return f"{name!r} is {what}, not a callable"
    advice = f"write {spec}.{found[0]}" if spec else f"return its method {found[0]}"
    return f"{name!r} is {what}, not a callable; it has {few([f'{one}()' for one in found], 3)}; {advice}"


def _makes_answers(made: type) -> bool:
    """Return whether an object of a class may be an answer, or calling the class makes something else."""
    if issubclass(made, (str, Mapping, Trajectory)) or hasattr(made, "__await__"):
        return True
    return type(made).__call__ is not type.__call__ or made.__new__ is not object.__new__


def _streams(call: object) -> bool:
    code = getattr(call, "__code__", None)
    if (
        not isinstance(code, types.CodeType) or code.co_flags & inspect.CO_ITERABLE_COROUTINE
    ):  # of types.coroutine, which is awaited
        return False
    return bool(code.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR))


def _why_not_bound(signature: inspect.Signature, name: str, value: Callable[..., Any]) -> str:
    takes = list(signature.parameters.values())
    first = takes[0] if takes else None
    unbound = isinstance(value, types.FunctionType) and "." in value.__qualname__.rpartition("<locals>.")[2]
    if unbound and first is not None and first.name in ("self", "cls"):
        owner = value.__qualname__.rpartition("<locals>.")[2].partition(".")[0]
        return f"{name!r} {ONE_ARGUMENT}: it is a method of the class {owner!r}; name that of an instance"
    try:
        signature.bind(None)
    except TypeError as error:
        return f"{name!r} {ONE_ARGUMENT}, not {_parameters(signature)}: {error}"
    assert first is not None, "an argument was bound to it"
    if _is_text(first.annotation) or _is_builtin(first.annotation):
        shown = _shown(first.annotation)
        return (
            f"{name!r} {ONE_ARGUMENT}; {first.name!r} is annotated {shown}; it gets a context: "
            "use context.prompt.user"
        )
    return ""


def _parameters(signature: inspect.Signature) -> str:
    return str(signature.replace(return_annotation=inspect.Signature.empty))[:120]


def _is_text(annotation: object) -> bool:
    """Return whether an annotation means a text and nothing else, also where it is written as one."""
    if isinstance(annotation, str):
        return annotation.strip("'\" ") in ("str", "builtins.str", "str | None", "Optional[str]")
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return set(typing.get_args(annotation)) == {str, type(None)}
    return annotation is str


def _is_builtin(annotation: object) -> bool:
    """Return whether an annotation means a list, a dict or the like, as messages are in other frameworks."""
    if isinstance(annotation, str):
        return _BUILTIN.fullmatch(annotation.strip("'\" ")) is not None
    origin = typing.get_origin(annotation) or annotation
    return origin in (list, dict, tuple, set, int, float, bool, bytes)


def _shown(annotation: object) -> str:
    if isinstance(annotation, str) or typing.get_origin(annotation) is not None:
        return str(annotation)
    return getattr(annotation, "__name__", str(annotation))
