"""A tool as its server lists it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import few
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerTool:
    """What a model is told of a tool."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """JSON Schema of its arguments."""

    @property
    def stamp(self) -> str:
        """Stamp of all that a model is told."""
        return stamp([self.name, self.description, self.parameters])


def stamps_of(tools: Sequence[ServerTool]) -> dict[str, str]:
    """Return the stamp of each tool, by its name."""
    return {tool.name: tool.stamp for tool in sorted(tools, key=lambda tool: tool.name)}


def difference(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return in which tools two lists differ, given by their stamps; empty where they are equal."""
    parts = {
        "new": sorted(now.keys() - before.keys()),
        "gone": sorted(before.keys() - now.keys()),
        "changed": sorted(name for name in now.keys() & before.keys() if now[name] != before[name]),
    }
    return "; ".join(f"{what}: {few(names)}" for what, names in parts.items() if names)
