"""Programs that some tests need beside Python packages."""

from __future__ import annotations

import os
import shutil

import pytest


def require_tool(name: str) -> str:
    """Return the path of a program; skip the test without it, or fail under ``CI_REQUIRE_TOOLS=1``."""
    path = shutil.which(name)
    if path is None:
        reason = f"NOT TESTED: {name} is not installed"
        if os.environ.get("CI_REQUIRE_TOOLS") == "1":
            pytest.fail(reason + ", and CI_REQUIRE_TOOLS=1 demands it")
        pytest.skip(reason)
    return path
