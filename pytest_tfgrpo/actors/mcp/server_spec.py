"""A server as the setting ``tools`` names it: a command or a URL, with what it gets of the environment."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import takewhile
from pathlib import Path
from urllib.parse import urlsplit

from pytest_tfgrpo.actors.mcp.client_file import in_client_file
from pytest_tfgrpo.actors.program_path import program_path
from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.server.url import parse_address
from pytest_tfgrpo.privacy.redact import find_secret

OWN, SHARED = "mcp:", "mcp-shared:"
"""How the spec of a server starts: one for each rollout, and one for all rollouts of a run."""
PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "USER", "LOGNAME")
"""All that a server gets of the environment by itself: no key is among it."""
WORKSPACE = "{workspace}"
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSpec:
    """One server."""

    text: str
    """As it is written, without the value of any variable."""
    shared: bool
    """All rollouts of a run talk to one process, or in one session."""
    url: str = ""
    """Empty where it is a command."""
    argv: tuple[str, ...] = ()
    """The command: its program and files by their paths; ``{workspace}`` stands for that of a rollout."""
    folder: Path
    """Where a shared one runs; another one runs in the workspace."""
    variables: Mapping[str, str] = field(repr=False)
    """The whole environment of a command, or the headers of each request to a URL."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Stamps of the project's files on the command line, by their path in the project."""

    @property
    def identity(self) -> dict[str, Json]:
        """What makes it the same server in another run, but for its tools."""
        return {"server": self.text} | ({"sha256": dict(self.files)} if self.files else {})

    def command(self, workspace: Path) -> list[str]:
        """Return the command line for a rollout."""
        return [word.replace(WORKSPACE, str(workspace)) for word in self.argv]


def is_server(entry: str) -> bool:
    """Return whether an entry of the setting ``tools`` names a server rather than a module."""
    return entry.startswith((OWN, SHARED))


def parse_server(entry: str, root: Path, environ: Mapping[str, str]) -> ServerSpec:
    """Return the server that an entry names; raises ActorError.

    It is ``mcp:NAME=VALUE ... COMMAND`` or ``mcp:NAME=VALUE ... URL``: variables of the command or headers of
    each request, in whose values ``$VARIABLE`` stands for one of `environ`.
    """
    shared = entry.startswith(SHARED)
    spec = f"tools={entry}"
    try:
        words = shlex.split(entry.partition(":")[2])
    except ValueError as error:
        raise ActorError(f"{spec!r} is not a command line: {error}") from None
    named = list(takewhile(bool, map(_NAMED.fullmatch, words)))
    words = words[len(named) :]
    written = (*(_VARIABLE.sub(" ", one[0]) for one in named if one), " ".join(words))
    if any(find_secret(text) is not None for text in written):
        raise ActorError(
            f"a secret stands in 'tools={OWN}...'; put it into an environment variable, and write "
            "NAME=$VARIABLE in front of the command or URL"
        )
    given = {one[1]: _filled(one[2], environ, spec) for one in named if one}
    if any(word.partition(",")[2].startswith((OWN, SHARED)) for word in words):
        raise ActorError(
            f"{spec!r} names several servers; write each on a line of its own in pytest's ini file"
        )
    if not words:
        raise ActorError(f"{spec!r} names no server; write mcp:COMMAND or mcp:https://HOST/mcp")
    if words[0].startswith(("http://", "https://")):
        _check_url(words, given, spec)
        return ServerSpec(text=entry, shared=shared, url=words[0], folder=root, variables=given)
    if shared and any(WORKSPACE in word for word in words):
        raise ActorError(f"{spec!r}: a shared server has no workspace; write {OWN} in place of {SHARED}")
    passed = {name: environ[name] for name in PASSED if name in environ}
    argv = _located(words, root.absolute(), spec, environ)
    return ServerSpec(
        text=entry,
        shared=shared,
        argv=tuple(argv),
        folder=root.absolute(),
        variables=passed | given,
        files={
            Path(word).relative_to(root.absolute()).as_posix(): stamp_bytes(Path(word).read_bytes())
            for word in argv
            if Path(word).is_relative_to(root.absolute()) and _is_file(word)
        },
    )


def _filled(value: str, environ: Mapping[str, str], spec: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if not environ.get(name):
            raise ActorError(f"{spec!r}: the environment variable {name} is not set")
        return environ[name]

    return _VARIABLE.sub(replaced, value)


def _check_url(words: Sequence[str], headers: Mapping[str, str], spec: str) -> None:
    if len(words) > 1:
        raise ActorError(f"{spec!r}: nothing may follow the URL; headers come before it, NAME=VALUE")
    try:
        if urlsplit(words[0]).username is not None:
            raise ValueError("must not hold a user; write a header in front of it: NAME=$VARIABLE")
        address = parse_address(words[0])
    except ValueError as error:
        raise ActorError(f"{spec!r}: the URL {error}") from None
    if headers and not address.private:
        raise ActorError(f"{spec!r} would send {', '.join(headers)} unencrypted; use https")
    for name, value in headers.items():
        if "_" in name or not value.isascii() or not value.isprintable():
            raise ActorError(f"{spec!r}: {name!r} is no header with a value of printable ASCII characters")


def _located(words: Sequence[str], root: Path, spec: str, environ: Mapping[str, str]) -> list[str]:
    """Return the words of a command, its program and those that name files in `root` by their paths."""
    rest = [str(root / word) if _is_file(str(root / word)) else word for word in words[1:]]
    try:
        program = program_path(words[0], root, spec, environ.get("PATH", os.defpath))
    except ActorError:
        if len(words) == 1 and (hint := in_client_file(root, words[0])):
            raise ActorError(f"{spec!r} names no program{hint}") from None
        raise
    return [program, *rest]


def _is_file(path: str) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises on a word too long for a name
