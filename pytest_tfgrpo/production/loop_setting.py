"""One row of the table of settings."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from pytest_tfgrpo.core.python.dataclass import dataclass

PREFIX = "TFGRPO_LOOP_"


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopSetting:
    """One row of the table of settings; a record of its section has a field of the name of its key."""

    section: str
    key: str
    parse: Callable[[Any], Any]
    """Returns the value, or raises ValueError with a text that starts with ``must``."""
    default: Any
    help: str
    hidden: bool = False
    """Whether its value is a secret or may hold one, and is shown nowhere."""

    @property
    def name(self) -> str:
        """The section and the key."""
        return f"{self.section}.{self.key}"

    def of(self, settings: object) -> Any:
        """Return the value in settings, whose field of the section has one of the key."""
        return getattr(getattr(settings, self.section), self.key)

    @property
    def env(self) -> str:
        """The environment variable."""
        return f"{PREFIX}{self.section}_{self.key}".upper()


def parse_folder(value: Any) -> str:
    """Return the path of a folder; an empty text names none."""
    text = str(value)
    if text and not text.strip():
        raise ValueError("must be a folder, or empty")
    return text


def parse_words(value: Any) -> tuple[str, ...]:
    """Return arguments of a program, from a list or a text as a shell reads it."""
    try:
        found = tuple(shlex.split(value) if isinstance(value, str) else map(str, value))
    except ValueError as error:
        raise ValueError(f"must be arguments as a shell reads them: {error}") from None
    if isinstance(value, str) and value and not found:
        raise ValueError("must be arguments, or empty")
    return found
