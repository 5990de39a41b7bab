"""The tools of the offline actor: facts, invariants, and what hostile data gets."""

from typing import Any

import pytest

from pytest_tfgrpo.actors.offline.task_view import TaskView
from pytest_tfgrpo.actors.offline.tools.registry import TOOLS
from pytest_tfgrpo.actors.offline.values import (
    MAX_TEXT,
    ToolError,
    kind_of,
    render,
)


def brief(
    text: str = "", files: dict[str, str] | None = None, written: dict[str, str] | None = None
) -> TaskView:
    held = files or {}
    out = {} if written is None else written
    return TaskView(text=text, files=tuple(held), read=held.__getitem__, write=out.__setitem__)


# hostile data

HOSTILE = [
    "“" * MAX_TEXT,
    '"' * (MAX_TEXT - 1),
    "." * MAX_TEXT + "x",
    "9" * MAX_TEXT,
    "1," * (MAX_TEXT // 2),
    "a_" * (MAX_TEXT // 2),
    "1 kg " * (MAX_TEXT // 5),
    "2026-01-01 " * (MAX_TEXT // 11),
    "\0\x1b\ufeff\u202e",
    "",
]


@pytest.mark.parametrize("tool", [t for t in TOOLS if "text" in t.takes], ids=lambda tool: tool.name)
def test_tools_take_bounded_work_on_hostile_text(tool: Any) -> None:
    for text in HOSTILE:
        for content in (text, "a,b\n" + text, "[" * 10_000, '{"a": 1e999, "b": ' + "9" * 5000 + "}"):
            files = {"x.csv": content[:MAX_TEXT], "x.json": content[:MAX_TEXT]}
            try:
                _, value = tool.call(text, brief(text[:MAX_TEXT], files=files))
                kind_of(value)
            except ToolError:
                continue
            assert len(render(value)) <= 20 * MAX_TEXT
