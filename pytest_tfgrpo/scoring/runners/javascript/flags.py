"""Flags of node with which a project runs its tests: those that change how code is loaded, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LOADS = {
    "--import": "import",
    "--require": "require",
    "--loader": "loader",
    "--experimental-loader": "loader",
}
"""Flags that load a module first: what they name is loaded behind the reporter, never before it."""
_VALUED = frozenset((*LOADS, "--conditions", "--unhandled-rejections", "--disable-warning"))
"""Flags whose value may be the next word."""
_SHORT = {"-r": "--require", "-C": "--conditions"}
_OWN = re.compile(
    r"--(?:no-)?experimental-(?!config|default-config|permission|policy|print|repl|sea|test-coverage"
    r"|test-isolation|worker)[a-z0-9-]+(?:=[\w.-]+)?"
    r"|--(?:no-)?(?:enable-source-maps|strip-types|warnings|deprecation)|--(?:preserve-symlinks(?:-main)?)"
    r"|--expose[-_]gc|--harmony(?:[-_][a-z0-9_-]+)?|--(?:max-old-space-size|stack-size)=[0-9]+"
    r"|--(?:conditions|unhandled-rejections|disable-warning)=[\w:.-]+"
)
"""Flags that node itself gets: they load no file, and write none."""


class NodeFlags(NamedTuple):
    """What flags mean."""

    own: tuple[str, ...]
    """Those for node."""
    loads: tuple[tuple[str, str], ...]
    """What is loaded before the tests, in order: ``import``, ``require`` or ``loader``, and a module."""


def node_flags(words: Sequence[str]) -> NodeFlags:
    """Return what flags mean; raises ValueError naming the first that is none a run of tests may have."""
    own, loads = list[str](), list[tuple[str, str]]()
    for word in words:
        name, _, value = word.partition("=")
        if name in LOADS and value and "\0" not in value:
            loads.append((LOADS[name], value))
        elif _OWN.fullmatch(word):
            own.append(word)
        else:
            known = (
                "--import=MODULE, --require=MODULE, --loader=MODULE, --experimental-..., --conditions=NAME"
            )
            raise ValueError(
                f"{word!r} is no flag of node with which tests can run; those are {known} and the like"
            )
    return NodeFlags(tuple(own), tuple(loads))


def kept_flags(words: Sequence[str]) -> Iterator[str]:
    """Yield the flags of a command line of node that a run may have, each with its value in one word."""
    left = list(words)
    while left:
        word = left.pop(0)
        word = _SHORT.get(word, word)
        if word in _VALUED and left:
            word = f"{word}={left.pop(0)}"
        try:
            node_flags((word,))
        except ValueError:
            continue
        yield word
