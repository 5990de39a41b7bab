"""The toolbox: the functions of a module that the model may call, and the tools for files."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_tfgrpo.actors.modules import import_module, stamps_of_sources
from pytest_tfgrpo.actors.openai.files import FILE_TOOLS
from pytest_tfgrpo.actors.openai.signature import Signature, signature_of
from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.wire.schema_accepts import Accepts, accepts
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.protocol import ToolSpec

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A function that the model may call."""

    function: Callable[..., Any]
    spec: ToolSpec
    signature: Signature
    accepts: Accepts
    """True only of arguments that fit; the schema decides about the others."""
    is_async: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """The tools that one scenario's rollouts may use."""

    specs: tuple[ToolSpec, ...]
    tools: Mapping[str, Tool]


class Toolbox:
    """All tools of an actor; each offer is made once."""

    def __init__(self, own: Mapping[str, Tool], identity: Mapping[str, Json]) -> None:
        """`own` are the user's tools, which replace tools for files of the same name."""
        self.identity = identity
        self._own = own
        self._known = {tool.spec.name: tool for tool in map(_tool, FILE_TOOLS)} | dict(own)
        self._files = [function.__name__ for function in FILE_TOOLS]
        self._offers: dict[tuple[tuple[str, ...] | None, bool], Offer] = {}

    def offer(self, names: tuple[str, ...] | None, *, files: bool) -> Offer:
        """Return the tools called `names`; None: all of the user's, and with `files` those for files.

        Raises ActorError naming the first unknown one.
        """
        found = self._offers.get((names, files))
        if found is None:
            found = self._offers[names, files] = self._make(names, files)
        return found

    def _make(self, names: tuple[str, ...] | None, files: bool) -> Offer:
        if names is None:
            names = (*self._own, *(self._files if files else ()))
        tools = {name: self._named(name) for name in names}
        return Offer(specs=tuple(tool.spec for tool in tools.values()), tools=tools)

    def _named(self, name: str) -> Tool:
        if name not in self._known:
            known = ", ".join(sorted(self._known))
            unset = "; set tools to the Python module that has it, or leave it out of the scenario"
            hint = nearest(name, self._known) or ("" if self._own else unset)
            raise ActorError(f"there is no tool {name!r}; known: {known}{hint}")
        return self._known[name]


def open_toolbox(setting: str | None, root: Path) -> Toolbox:
    """Return the toolbox that the setting `tools` names, ``module`` or ``module:NAME``; raises ActorError.

    A bare module gives its public functions; NAME is a mapping of names to functions, or a sequence of them.
    """
    if setting is None:
        return Toolbox({}, {})
    spec = f"tools={setting}"
    name, colon, attribute = setting.partition(":")
    module = import_module(name, root, spec)
    functions = _listed(module, attribute, spec) if colon else _public(module)
    if not functions:
        raise ActorError(f"{spec!r}: there is no public function in {name!r}")
    own = {tool_name: _own_tool(tool_name, function, spec) for tool_name, function in functions.items()}
    homes = (sys.modules.get(getattr(function, "__module__", "")) for function in functions.values())
    sources = stamps_of_sources([module, *(home for home in homes if home is not None)], root)
    return Toolbox(own, {"spec": setting, "sha256": sources})


def _public(module: ModuleType) -> dict[str, Any]:
    """Return the public functions that are written in a module."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and inspect.isroutine(value) and value.__module__ == module.__name__
    }


def _listed(module: ModuleType, attribute: str, spec: str) -> dict[str, Any]:
    value = getattr(module, attribute, None)
    if isinstance(value, Mapping):
        return {str(name): function for name, function in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {getattr(function, "__name__", repr(function)): function for function in value}
    raise ActorError(
        f"{spec!r}: {attribute!r} must be a mapping of names to functions, or a sequence of functions, "
        f"not {value!r}"
    )


def _own_tool(name: str, function: Any, spec: str) -> Tool:
    if not inspect.isroutine(function):
        raise ActorError(f"{spec!r}: {name!r} is {function!r}, not a function")
    if not NAME.fullmatch(name):
        raise ActorError(f"{spec!r}: a tool cannot be called {name!r}; use letters, digits, _ and -")
    try:
        return _tool(function, name)
    except ValueError as error:
        raise ActorError(f"{spec!r}: tool {name!r}: {error}") from error


def _tool(function: Callable[..., Any], name: str | None = None) -> Tool:
    signature = signature_of(function)
    paragraph = (inspect.getdoc(function) or "").partition("\n\n")[0]
    return Tool(
        function=function,
        spec=ToolSpec(
            name=name or function.__name__,
            description=" ".join(paragraph.split()),
            parameters=signature.parameters,
        ),
        signature=signature,
        accepts=accepts(signature.parameters),
        is_async=inspect.iscoroutinefunction(function),
    )
