"""The toolbox: what the model may call: functions of a module, tools of MCP servers, tools for files."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any

from pytest_tfgrpo.actors.mcp.client_file import in_client_file
from pytest_tfgrpo.actors.mcp.server_spec import is_server, parse_server
from pytest_tfgrpo.actors.mcp.server_tool import ServerTool
from pytest_tfgrpo.actors.mcp.servers import ListedServer, RolloutServers, Servers, list_servers
from pytest_tfgrpo.actors.modules import import_module, stamps_of_sources
from pytest_tfgrpo.actors.openai.files import FILE_TOOLS
from pytest_tfgrpo.actors.openai.signature import Signature, signature_of
from pytest_tfgrpo.core.errors import ActorError, ToolFailure
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.wire.schema import Violation, compile_foreign, violations
from pytest_tfgrpo.core.wire.schema_accepts import Accepts, accepts
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.protocol import ToolSpec
from pytest_tfgrpo.scoring.checks.patterns import search

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
OFFERED_MAX = 128
"""Most tools that common servers take in one request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A function that the model may call."""

    function: Callable[..., Any]
    """Of a server's tool: of the arguments after those of `RolloutServers.call`, see `Offer.bound`."""
    spec: ToolSpec
    signature: Signature
    accepts: Accepts
    """True only of arguments that fit; `misfits` decides about the others."""
    misfits: Callable[[Json], list[Violation]]
    """Returns where arguments break the schema."""
    is_async: bool
    server: ListedServer | None = None
    """The server that has it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """The tools that one scenario's rollouts may use."""

    specs: tuple[ToolSpec, ...]
    tools: Mapping[str, Tool]
    servers: RolloutServers | None = None
    """Those of one rollout, that some of its tools are of."""

    def bound(self, servers: RolloutServers) -> Offer:
        """Return the offer for one rollout, whose `servers` make the calls of their tools."""
        if not any(tool.server for tool in self.tools.values()):
            return self
        tools = {
            name: replace(tool, function=partial(servers.call, tool.server, name)) if tool.server else tool
            for name, tool in self.tools.items()
        }
        return Offer(specs=self.specs, tools=tools, servers=servers)


class Toolbox:
    """All tools of an actor; each offer is made once."""

    def __init__(
        self, own: Mapping[str, Tool], identity: Mapping[str, Json], listed: Sequence[ListedServer] = ()
    ) -> None:
        """`own` are the user's tools, which replace tools for files of the same name.

        `listed` are the servers that some of them are of.
        """
        self.identity = identity
        self.servers = Servers(listed)
        self._own = own
        self._known = {tool.spec.name: tool for tool in map(_tool, FILE_TOOLS)} | dict(own)
        self._files = [function.__name__ for function in FILE_TOOLS]
        self._offers: dict[tuple[tuple[str, ...] | None, bool], Offer] = {}

    def offer(
        self, names: tuple[str, ...] | None, *, files: bool, mocks: Collection[str] = frozenset()
    ) -> Offer:
        """Return the tools called `names`; None: all of the user's, and with `files` those for files.

        Those for files that are in `mocks` need no files. Raises ActorError naming the first unknown one.
        """
        if names is None and not files and (mocked := tuple(name for name in self._files if name in mocks)):
            names = tuple(dict.fromkeys((*self._own, *mocked)))
        found = self._offers.get((names, files))
        if found is None:
            found = self._offers[names, files] = self._make(names, files)
        return found

    def _make(self, names: tuple[str, ...] | None, files: bool) -> Offer:
        if names is None:
            names = (*self._own, *(self._files if files else ()))
        tools = {name: self._named(name) for name in names}
        if len(tools) > OFFERED_MAX:
            raise ActorError(
                f"there are {len(tools)} tools, and a model takes {OFFERED_MAX}; name those that it needs in "
                "the scenario's tools"
            )
        return Offer(specs=tuple(tool.spec for tool in tools.values()), tools=tools)

    def _named(self, name: str) -> Tool:
        if name not in self._known:
            known = ", ".join(sorted(self._known))
            unset = (
                "; set tools to the Python module that has it, or leave it out of the scenario "
                "(the tools that scenarios of `tfgrpo init` name are the actor offline's)"
            )
            hint = nearest(name, self._known) or ("" if self._own else unset)
            raise ActorError(f"there is no tool {name!r}; known: {known}{hint}")
        return self._known[name]


def open_toolbox(setting: str | None, root: Path, environ: Mapping[str, str]) -> Toolbox:
    """Return the toolbox that the setting `tools` names; raises ActorError.

    Each line is ``module`` or ``module:NAME``, ``mcp:...`` or ``mcp-shared:...``. A bare module gives its
    public functions; NAME is a mapping of names to functions, or a sequence of them.
    """
    if setting is None:
        return Toolbox({}, {})
    entries = list(dict.fromkeys(line.strip() for line in setting.splitlines() if line.strip()))
    own: dict[str, Tool] = {}
    sources: dict[str, str] = {}
    for entry in (entry for entry in entries if not is_server(entry)):
        tools, stamps = _from_module(entry, root)
        _add(own, tools, f"tools={entry}")
        sources |= stamps
    listed = list_servers([parse_server(entry, root, environ) for entry in entries if is_server(entry)])
    for server in listed:
        spec = f"tools={server.spec.text}"
        for tool in server.tools:
            _add(own, {tool.name: _server_tool(tool, server, spec)}, spec)
    identity: dict[str, Json] = {"spec": setting, "sha256": sources}
    if listed:
        identity["mcp"] = [server.identity for server in listed]
    return Toolbox(own, identity, listed)


def _add(own: dict[str, Tool], tools: Mapping[str, Tool], spec: str) -> None:
    for name, tool in tools.items():
        if name in own:
            other = own[name].server
            whose = "a module" if other is None else repr(other.spec.text)
            raise ActorError(f"{spec!r}: there are two tools {name!r}, another is of {whose}; leave one out")
        own[name] = tool


def _from_module(spec_: str, root: Path) -> tuple[dict[str, Tool], dict[str, str]]:
    """Return the tools of a module, and the stamps of its files."""
    spec = f"tools={spec_}"
    name, colon, attribute = spec_.partition(":")
    _require_module(spec_, root)
    module = import_module(name, root, spec)
    functions = _listed(module, attribute, spec) if colon else _public(module)
    if not functions:
        raise ActorError(f"{spec!r}: there is no public function in {name!r}")
    own = {tool_name: _own_tool(tool_name, function, spec) for tool_name, function in functions.items()}
    return own, stamps_of_sources(module, functions.values(), root)


def _require_module(entry: str, root: Path) -> None:
    """Raise ActorError with what was probably meant, where an entry names a file or an actor's kind."""
    spec = f"tools={entry}"
    if entry.endswith(".json"):
        raise ActorError(f"{spec!r} is no Python module{in_client_file(root, entry)}")
    path = PurePath(entry.removeprefix("python:"))
    meant = ".".join(path.with_suffix("").parts) if path.suffix == ".py" else str(path)
    if meant != entry and all(part.isidentifier() for part in meant.partition(":")[0].split(".")):
        raise ActorError(f"{spec!r} is no Python module; write tools={meant}")


def _server_tool(tool: ServerTool, server: ListedServer, spec: str) -> Tool:
    """Return the tool of a server; raises ActorError for one that no model can be offered."""
    _check_name(tool.name, spec)
    schema = tool.parameters
    try:
        if schema.get("type") != "object":
            raise ValueError("its type must be object")
        misfits = compile_foreign(schema, _search)
    except ValueError as error:
        raise ActorError(f"{spec!r}: the schema of tool {tool.name!r} cannot be used: {error}") from error
    properties = schema.get("properties", {})
    whole = (
        name for name, one in properties.items() if isinstance(one, Mapping) and one.get("type") == "integer"
    )
    return Tool(
        function=RolloutServers.call,
        spec=ToolSpec(name=tool.name, description=tool.description, parameters=schema),
        signature=Signature(parameters=schema, takes_context=False, whole=frozenset(whole)),
        accepts=lambda _: False,  # its patterns need a time limit
        misfits=misfits,
        is_async=True,
        server=server,
    )


def _search(pattern: str, text: str) -> bool:
    try:
        return search(pattern, text)
    except TimeoutError:
        raise ToolFailure(f"the pattern {short(pattern)} of its schema takes too long") from None


def _check_name(name: str, spec: str) -> None:
    if not NAME.fullmatch(name):
        raise ActorError(
            f"{spec!r}: a tool cannot be called {name[:100]!r}; models take up to 64 letters, digits, _ and -"
        )


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
    _check_name(name, spec)
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
        misfits=partial(violations, signature.parameters),
        is_async=inspect.iscoroutinefunction(function),
    )
