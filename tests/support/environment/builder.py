"""What the tests of harvest/environment/test_builder.py share with the slow ones."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_tfgrpo.harvest.environment.package_tools import BuildTools, open_tools
from pytest_tfgrpo.harvest.fixes import RecipePart
from pytest_tfgrpo.harvest.recipe.machine_pythons import find_interpreters
from pytest_tfgrpo.scoring.runners.protocol import SuiteCommand
from support.tools import require_tool
from support.wheels import variables

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
AT = 1656633600


def part(**values: Any) -> RecipePart:
    base: dict[str, Any] = {
        "folder": ".",
        "command": SuiteCommand(runner="pytest"),
        "python": HERE,
        "dependencies": ("soap>=1",),
        "distributions": {"shop": "1.2"},
    }
    return RecipePart(**base | values)


def tools_for(index: Path, tool: str, more: Mapping[str, str] = MappingProxyType({})) -> BuildTools:
    require_tool("bwrap")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "SECRET_TOKEN": "x",
        **variables(index),
        **more,
    }
    tools = open_tools(find_interpreters("", Path("/nonexistent")), environ)
    if tool == "uv" and tools.uv is None:
        require_tool("uv")
    return tools if tool == "uv" else replace(tools, uv=None)
