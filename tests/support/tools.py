"""Programs that tests run, and the command ``tfgrpo``."""

from __future__ import annotations

import importlib
import io
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_tfgrpo.cli import main


def require_tool(name: str) -> str:
    """Return the path of a program; skip the test without it, or fail under ``CI_REQUIRE_TOOLS=1``."""
    path = shutil.which(name)
    return missing_tool(name) if path is None else path


def require_module(name: str) -> None:
    """Skip the test without a module, or fail under ``CI_REQUIRE_TOOLS=1``."""
    try:
        importlib.import_module(name)
    except ImportError:
        missing_tool(name)


def missing_tool(name: str) -> NoReturn:
    """Skip the test without a tool, or fail under ``CI_REQUIRE_TOOLS=1``."""
    reason = f"NOT TESTED: {name} is not installed"
    if os.environ.get("CI_REQUIRE_TOOLS") == "1":
        pytest.fail(reason + ", and CI_REQUIRE_TOOLS=1 demands it")
    pytest.skip(reason)


def run_pytest(folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in its own process, with this plugin alone and of its variables only those given."""
    ours = ("TFGRPO_", "FEATURE_TFGRPO_", "PYTEST_", "GITHUB_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tfgrpo", "-p", "no:cacheprovider", *args],
        cwd=folder,
        env=environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=100,
    )


def tfgrpo(*argv: str, code: int = 0) -> str:
    """Run the command ``tfgrpo``, which ends with `code`; returns what it prints, or its errors."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            ended: object = main(argv)
        except SystemExit as error:
            ended = error.code
    said, errors = (stream.buffer.getvalue().decode() for stream in (out, err))
    assert ended == code, said + errors
    return str(errors if code else said)
