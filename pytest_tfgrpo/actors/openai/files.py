"""The file tools: what a model may do in its workspace, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pytest_tfgrpo.actors.openai.context import ToolContext
from pytest_tfgrpo.sandbox.paths import read_untrusted, walk, write_untrusted

READ_MAX_BYTES = 10_000_000
READ_CHARS = 20_000
WRITE_MAX_BYTES = 1_000_000
LISTED = 500
"""Most files that a list names."""


def list_files(context: ToolContext) -> list[str]:
    """List the files in the workspace."""
    names: list[str] = []
    try:
        for name in walk(context.workspace, (".git",)):
            if len(names) == LISTED:
                return [*sorted(names), "and more"]
            names.append(name)
    except ValueError:
        return [*sorted(names), "and more"]
    return sorted(names)


def read_file(
    context: ToolContext,
    name: Annotated[str, "path of the file, relative to the workspace"],
    offset: Annotated[int, "number of characters to skip"] = 0,
) -> str:
    """Read a text file in the workspace."""
    try:
        data = read_untrusted(context.workspace, _relative(name), READ_MAX_BYTES)
    except FileNotFoundError:
        raise ValueError(f"there is no file {name!r}; list_files names those there are") from None
    if b"\0" in data:
        raise ValueError(f"{name!r} is not a text file")
    text = data.decode("utf-8", "replace")
    offset = max(offset, 0)
    end = offset + READ_CHARS
    more = f"\n[{len(text) - end} characters more: read on with offset {end}]" if end < len(text) else ""
    return text[offset:end] + more


def write_file(
    context: ToolContext,
    name: Annotated[str, "path of the file, relative to the workspace"],
    content: Annotated[str, "the whole text of the file"],
) -> str:
    """Write a text file in the workspace, in place of one of the same name."""
    data = content.encode("utf-8", "replace")
    if len(data) > WRITE_MAX_BYTES:
        raise ValueError(f"the content has {len(data)} bytes, more than {WRITE_MAX_BYTES}")
    write_untrusted(context.workspace, _relative(name), data)
    return f"{len(data)} bytes written"


def _relative(name: str) -> str:
    return name.removeprefix("./")


FILE_TOOLS: tuple[Callable[..., Any], ...] = (list_files, read_file, write_file)
