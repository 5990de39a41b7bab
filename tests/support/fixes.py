"""A small fix with its hidden tests, as a scenario of kind ``tests`` has them, and attempts at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, pack, unpack
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.scoring.checks.registry import KINDS, evaluate
from pytest_tfgrpo.suite.scenario import build_scenario

BASE = {
    "shop/__init__.py": "",
    "shop/cart.py": "def total(prices):\n    return 0\n\n\ndef count(prices):\n    return len(prices)\n",
    "tests/test_cart.py": (
        "from shop.cart import count\n\n\ndef test_count():\n    assert count([1, 2]) == 2\n"
    ),
    "pytest.ini": "[pytest]\n",
    "README.md": "A shop.\n",
}
HIDDEN = {
    "tests/test_cart.py": (
        "from shop.cart import count, total\n\n\n"
        "def test_count():\n    assert count([1, 2]) == 2\n\n\n"
        "def test_total():\n    assert total([1, 2]) == 3\n\n\n"
        "def test_total_of_nothing():\n    assert total([5]) - 5 == total([])\n"
    )
}
SOLVED = BASE["shop/cart.py"].replace("return 0", "return sum(prices)  # the true fix adds all prices")
NODES = "tests/test_cart.py::"
FAIL_TO_PASS = (NODES + "test_total", NODES + "test_total_of_nothing")
PASS_TO_PASS = (NODES + "test_count",)


def archive(files: Mapping[str, str]) -> bytes:
    """Return the archive of text files."""
    return pack(ArchiveEntry(name=name, data=text.encode()) for name, text in files.items())


@dataclass(frozen=True, kw_only=True)
class SmallFix:
    """A suite of one scenario in a folder."""

    folder: Path
    base: Mapping[str, str] = field(default_factory=lambda: BASE)
    hidden: Mapping[str, str] = field(default_factory=lambda: HIDDEN)

    def scenario(self, **params: Any) -> Scenario:
        """Write the archives; return the scenario, its check with `params` beside the usual ones."""
        archives, references = self.folder / "archives", self.folder / "references"
        for folder in (archives, references):
            folder.mkdir(parents=True, exist_ok=True)
        (archives / "one.base.tar.gz").write_bytes(archive(self.base))
        (archives / "one.hidden.tar.gz").write_bytes(archive(self.hidden))
        (references / "one.tar.gz").write_bytes(archive({"shop/cart.py": SOLVED}))
        digest = stamp_bytes(archive(self.base))
        check = {
            "kind": "tests",
            "runner": "pytest",
            "hidden": "archives/one.hidden.tar.gz",
            "fail_to_pass": list(FAIL_TO_PASS),
            "pass_to_pass": list(PASS_TO_PASS),
            "timeout_s": 60,
        }
        data = {
            "id": "one",
            "prompt": "The total of a cart is always 0.",
            "workspace": {"archive": "archives/one.base.tar.gz", "sha256": digest},
            "checks": [{**check, **params}],
        }
        return build_scenario(data, source="one.yaml:1", checker=None, folder=self.folder)

    def check(self, **params: Any) -> Check:
        """Return the check of the scenario."""
        return self.scenario(**params).checks[0]

    def attempt(
        self,
        changes: Mapping[str, str | None],
        /,
        *,
        sandbox: Literal["auto", "bwrap", "none"] = "auto",
        prepared: Path | None = None,
        **params: Any,
    ) -> CheckResult:
        """Return what the check finds of an agent that made these changes; None deletes a file.

        `prepared` is a workspace that the agent left as it is.
        """
        scenario = self.scenario(**params)
        assert scenario.workspace is not None
        folder = prepared or self.folder / "workspace"
        if prepared is None:
            folder.mkdir()
            unpack(scenario.workspace.path, folder)
        for name, text in changes.items():
            path = folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        context = CheckContext(
            answer="",
            frames=(),
            workspace=Workspace(folder, left=True, archive=scenario.workspace),
            task=scenario.task(),
            sandbox=sandbox,
        )
        (result,) = evaluate(scenario.checks, context, KINDS)
        return result
