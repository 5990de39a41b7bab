"""Made suites of tests, one for each runner, with what a fix changes in them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.scoring.runners.protocol import SuiteCommand, SuiteRequest
from support.tools import require_tool

MANIFEST = Path(__file__).parent / "javascript" / "package.json"


@cache
def javascript_packages() -> Path | None:
    """Return the folder ``node_modules`` with jest and vitest, which `.ci/run` installs; None without it."""
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(MANIFEST.read_bytes()).hexdigest()[:12]
    folder = cache_folder / "pytest-tfgrpo" / "javascript" / digest / "node_modules"
    return folder if (folder / "jest").is_dir() and (folder / "vitest").is_dir() else None


def javascript_environment() -> BuiltEnvironment:
    """Return an environment with jest and vitest; skip without, or fail under ``CI_REQUIRE_TOOLS=1``."""
    packages = javascript_packages()
    if packages is None:
        reason = "NOT TESTED: jest and vitest are not installed; npm install them as .ci/run does"
        if os.environ.get("CI_REQUIRE_TOOLS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return BuiltEnvironment(
        stamp="made",
        folder=packages.parent,
        python=None,
        programs=(),
        imports=(),
        variables={},
        links={"node_modules": packages},
        readable=(packages,),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeSuite:
    """A small project in JavaScript, and how its tests run."""

    runner: str
    declare: str
    """The line that imports ``test``, ``describe`` and what compares."""
    equal: str
    """The call that compares, with places for both values."""
    suffix: str = ".test.js"
    files: dict[str, str] = field(default_factory=dict)

    def compare(self, found: str, wanted: str) -> str:
        return self.equal.format(found, wanted)

    def write(self, tree: Path, files: dict[str, str] | None = None) -> Path:
        """Write the project, with further or other `files`, and return its folder."""
        for name, text in {**self._project(), **(files or {})}.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tree

    def request(
        self, tree: Path, *files: str, hang_s: float | None = None, timeout_s: float = 100.0
    ) -> SuiteRequest:
        """Return a request for its tests, with the environment that they need."""
        require_tool("node")
        require_tool("bwrap")
        return SuiteRequest(
            tree=tree,
            command=SuiteCommand(runner=self.runner),
            files=files,
            hang_s=hang_s,
            timeout_s=timeout_s,
            environment=None if self.runner == "node-test" else javascript_environment(),
        )

    def tests(self, *bodies: str) -> str:
        """Return a file of tests with these lines behind its imports."""
        return "\n".join([self.declare, "const { total } = require('../src/cart.js');", *bodies, ""])

    def _project(self) -> dict[str, str]:
        declared = self.tests(
            f"test('an empty cart costs nothing', () => {{ {self.compare('total([])', '0')} }});",
            "describe('a cart', () => {",
            f"  test('adds its prices', () => {{ {self.compare('total([2, 3])', '5')} }});",
            f"  test('gives a discount', () => {{ {self.compare('total([100])', '90')} }});",
            "  test.skip('is sent', () => {});",
            "});",
        )
        return {
            "package.json": '{"name": "shop", "version": "1.0.0"}\n',
            "src/cart.js": "exports.total = (prices) => prices.reduce((sum, price) => sum + price, 0);\n",
            f"test/cart{self.suffix}": declared,
        }


NODE = MadeSuite(
    runner="node-test",
    declare="const { test, describe } = require('node:test'); const assert = require('node:assert');",
    equal="assert.strictEqual({}, {});",
)
JEST = MadeSuite(runner="jest", declare="", equal="expect({}).toBe({});")
VITEST = MadeSuite(
    runner="vitest",
    declare="import { test, describe, expect } from 'vitest';",
    equal="expect({}).toBe({});",
)
SUITES = {suite.runner: suite for suite in (NODE, JEST, VITEST)}
