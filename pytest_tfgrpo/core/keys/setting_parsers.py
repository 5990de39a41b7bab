"""Parsers of settings: each returns a value, or raises ValueError with a text on what it must be.

This module is imported by every pytest start: it must stay free of heavy imports.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from pytest_tfgrpo.core.keys.agent_list import listed_agents
from pytest_tfgrpo.core.keys.list_values import domains, limits, listed, variables

C = TypeVar("C", bound=str)
TASK_ID_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
TASK_ID_LENGTH = 64
TRUE = frozenset({"1", "true", "yes", "on"})
EXECUTORS = ("local", "process", "process:N", "ray", "ray:HOST:PORT")
FALSE = frozenset({"0", "false", "no", "off"})


def parse_text(value: Any) -> str:
    """Return a text without blanks around it, which may not be empty."""
    text = str(value).strip()
    if not text:
        raise ValueError("must not be empty")
    return text


def parse_text_or_none(value: Any) -> str | None:
    """Return a text, or None for ``none``."""
    text = parse_text(value)
    return None if text == "none" else text


def parse_actor(value: Any) -> str:
    """Return the spec of an actor, or a list of agents, which is read elsewhere."""
    text = "\n".join(map(str, value)) if isinstance(value, list) else parse_text(value)
    if any(mark in text for mark in ",\n="):
        listed_agents(text)
    return parse_text(text)


def whole(low: int, high: int | None = None) -> Callable[[Any], int]:
    """Return a parser of integers within bounds."""
    bounds = f">= {low}" if high is None else f"between {low} and {high}"

    def parse(value: Any) -> int:
        if isinstance(value, bool) or not re.fullmatch(r"[+-]?\d{1,18}", str(value).strip()):
            raise ValueError(f"must be an integer {bounds}")
        number = int(str(value))
        if number < low or (high is not None and number > high):
            raise ValueError(f"must be an integer {bounds}")
        return number

    return parse


def whole_or_auto(low: int, high: int) -> Callable[[Any], int | Literal["auto"]]:
    """Return a parser of integers within bounds, and of the word ``auto``."""
    number = whole(low, high)

    def parse(value: Any) -> int | Literal["auto"]:
        if str(value).strip() == "auto":
            return "auto"
        try:
            return number(value)
        except ValueError as error:
            raise ValueError(f"{error}, or auto") from None

    return parse


def real(low: float, high: float = math.inf) -> Callable[[Any], float]:
    """Return a parser of finite numbers within bounds."""
    bounds = f">= {low:g}" if high == math.inf else f"between {low:g} and {high:g}"

    def parse(value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"must be a number {bounds}") from None
        if isinstance(value, bool) or not math.isfinite(number) or not low <= number <= high:
            raise ValueError(f"must be a number {bounds}")
        return number

    return parse


class NoChoice(ValueError):
    """A value is none of those that a setting has; the text starts with ``must``."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(f"must be one of {', '.join(names)}")
        self.names = names


def choice(*names: C) -> Callable[[Any], C]:
    """Return a parser of one of the names; it raises NoChoice."""

    def parse(value: Any) -> C:
        if value not in names:
            raise NoChoice(names)
        return names[names.index(value)]

    return parse


def parse_executor(value: Any) -> str:
    """Return ``local``, ``process``, ``process:N``, ``ray`` or ``ray:<host>:<port>``."""
    text = str(value).strip()
    name, colon, number = text.partition(":")
    if name not in EXECUTORS:
        raise NoChoice(EXECUTORS)
    if name == "ray":
        if colon and not re.fullmatch(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253}):\d{1,5}", number):
            raise ValueError("must be ray, or ray:<host>:<port> of a Ray cluster's head")
        return text
    if colon and (name != "process" or not re.fullmatch(r"[1-9]\d{0,3}", number)):
        raise ValueError("must be local, process, or process:N with 1 to 9999 processes")
    return text


def parse_bool(value: Any) -> bool:
    """Return the boolean that `value` spells; anything but 1/true/yes/on and 0/false/no/off is an error."""
    text = str(value).strip().lower()
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise ValueError("must be one of 1, true, yes, on, 0, false, no, off")


def is_task_id(text: str) -> bool:
    """Return whether `text` matches ``[A-Za-z0-9][A-Za-z0-9._-]{0,63}``, and so is a safe file name."""
    fits = 0 < len(text) <= TASK_ID_LENGTH and TASK_ID_CHARACTERS.issuperset(text)
    return fits and text[0].isalnum()


def default_task_id(name: str) -> str:
    """Return the name of a root folder, made fit for a task id."""
    clean = "".join(c if c in TASK_ID_CHARACTERS else "-" for c in name).lstrip("._-")
    return clean[:TASK_ID_LENGTH] or "suite"


def task_of(task: str, name: str) -> str:
    """Return the task id of an agent of a list: that of the suite, cut if need be, and its name."""
    return f"{task[: TASK_ID_LENGTH - 1 - len(name)]}.{name}"


def parse_task_id(value: Any) -> str:
    """Return a task id."""
    if not is_task_id(str(value)):
        raise ValueError("must match [A-Za-z0-9][A-Za-z0-9._-]{0,63}; it names a folder")
    return str(value)


def listed_values(kind: str) -> Callable[[Any], str]:
    """Return a parser of a text that lists paths, names, limits or agents of domains."""

    def parse(value: Any) -> str:
        text = "\n".join(map(str, value)) if isinstance(value, list) else parse_text(value)
        entries = {"paths": listed, "names": variables, "limits": limits, "domains": domains}[kind](text)
        if not entries:
            raise ValueError("must not be empty")
        return text

    return parse
