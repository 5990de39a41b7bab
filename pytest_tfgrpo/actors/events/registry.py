"""Output formats of a program by name; each reader makes a value for `read_trajectory`.

A reader raises AgentFailure and ProviderError with the frames that there are, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pytest_tfgrpo.actors.events.claude import read_claude
from pytest_tfgrpo.actors.events.codex import read_codex
from pytest_tfgrpo.actors.output import read_output
from pytest_tfgrpo.core.wire.wire import Json

Reader: TypeAlias = Callable[[bytes], str | dict[str, Json]]


EVENTS: Mapping[str, Reader] = {"frames": read_output, "claude": read_claude, "codex": read_codex}
"""``frames`` is our own format; the others are those of coding agents, which take their prompt as text."""
