"""Canary files: beside a project's tests, one that must pass and one that must fail, in their language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.sandbox.paths import write_untrusted
from pytest_tfgrpo.scoring.runners.edits.canaries import random_word

_PYTHON = """import unittest


class {group}(unittest.TestCase):
    def {passing}(self):
        self.assertEqual(1, 1)

    def {failing}(self):
        self.assertEqual(1, 2)
"""
_SCRIPT = """const found = globalThis.it || globalThis.test;
const declare = (test) => {{
  test('{passing}', () => {{}});
  test('{failing}', () => {{ throw new Error('must fail'); }});
}};
if (found) declare(found); else import('node:test').then((node) => declare(node.test));
"""
LANGUAGES = {".py": _PYTHON, ".js": _SCRIPT, ".cjs": _SCRIPT, ".mjs": _SCRIPT}
"""Canaries by the ending of a file of tests: unittest's, node's, and of runners with ``it``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CanaryFile:
    """One file of ours among the tests."""

    path: str
    passing: str
    failing: str


def write_canaries(tree: Path, files: Sequence[str]) -> tuple[CanaryFile, ...]:
    """Write a canary file beside the first file of tests in each language that has one; return them.

    It is called like that file, with a random name: ``test_cart.py`` -> ``test_doruma.py``.
    """
    written = []
    firsts: dict[str, PurePosixPath] = {}
    for file in files:
        path = PurePosixPath(file)
        if path.suffix in LANGUAGES:
            firsts.setdefault(path.suffix, path)
    for suffix, first in firsts.items():
        token = random_word()
        canary = CanaryFile(
            path=str(first.with_name(_called(first.name, token))),
            passing=f"test_{token}_{random_word()}",
            failing=f"test_{token}_{random_word()}",
        )
        text = LANGUAGES[suffix].format(
            group=f"Test{token.title()}", passing=canary.passing, failing=canary.failing
        )
        try:
            write_untrusted(tree, canary.path, text.encode())
        except (OSError, ValueError):
            continue
        written.append(canary)
    return tuple(written)


def _called(name: str, token: str) -> str:
    """Return a name by which a runner takes a file for one of tests, as it takes `name`."""
    stem, *endings = name.split(".")
    for mark in ("test_", "test-", "spec_"):
        if stem.startswith(mark):
            stem = f"{mark}{token}"
            break
    else:
        for mark in ("_test", "-test", "_spec", "-spec", "Test", "Spec"):
            if stem.endswith(mark):
                stem = f"{token}{mark}"
                break
        else:
            stem = token
    return ".".join([stem, *endings])
