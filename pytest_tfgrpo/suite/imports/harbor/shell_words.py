"""The words of simple shell commands; what takes a shell to understand is not read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

PUNCTUATION = re.compile(r"[();<>|&]+")
INSTALLERS = frozenset({"apk", "apt", "apt-get", "dnf", "yum", "locale-gen", "useradd", "groupadd"})
"""Programs that change the system and no file of a project."""
_INSTALLS = (
    (re.compile(r"pip3?"), ("install",)),
    (re.compile(r"python3?(\.\d+)?"), ("-m", "pip", "install")),
    (re.compile(r"uv"), ("pip", "install")),
    (re.compile(r"npm"), ("install", "-g")),
)
_EXTRA = re.compile(r"-|/(?:var|tmp)/|(?:~|\$HOME|(?:/home)?/\w+)/\.cache(?:/|$)")
"""A flag of rm, or what holds nothing of a project."""


def statements(text: str) -> Iterator[list[str]]:
    """Yield the commands of a script, each as its words; ``then`` and ``else`` stand alone.

    Words that are punctuation stay: ``&&``, ``>``. Raises ValueError, with the line, where quotes do not
    close.
    """
    waiting = ""
    for number, line in enumerate(text.splitlines(), 1):
        waiting += line
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            waiting = waiting[:-1] + " "
            continue
        try:
            found = words(waiting)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        waiting = ""
        yield from _parted(found)


def words(text: str) -> list[str]:
    """Return the words of one line without its comment; raises ValueError where quotes do not close."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def _parted(found: Sequence[str]) -> Iterator[list[str]]:
    one: list[str] = []
    for word in [*found, ";"]:
        if word == ";":
            if one:
                yield one
            one = []
        elif not one and word in ("then", "else"):
            yield [word]
        else:
            one.append(word)


def only_installs(text: str) -> bool:
    """Return whether a command line does no more than install packages, all of it."""
    if "`" in text or "$(" in text:
        return False
    try:
        found = words(text)
    except ValueError:
        return False
    one: list[str] = []
    for word in [*found, "&&"]:
        if word in ("&&", ";"):
            if one and not installs(one):
                return False
            one = []
        elif PUNCTUATION.fullmatch(word):
            return False
        else:
            one.append(word)
    return True


def installs(command: Sequence[str]) -> bool:
    """Return whether the words of a command install something, or clear up after it."""
    rest = list(command)
    while rest and re.fullmatch(r"\w+=\S*", rest[0]):
        rest.pop(0)
    if not rest:
        return False
    program, *more = rest
    if program == "rm":
        return all(_EXTRA.match(word) and ".." not in word for word in more)
    if program == "mkdir":
        return "-p" in more
    known = (list(start) == more[: len(start)] for name, start in _INSTALLS if name.fullmatch(program))
    return program in INSTALLERS or any(known)
