"""The proof of captured work with real runs: what is true is proven, and no cheat is."""

from typing import Any

import pytest
from support.captured import PROMPT, CapturedJob
from support.cheat_tables import EVERY_TABLE
from support.cheats import FILES
from support.fixes import BASE, HIDDEN, SOLVED
from support.text_tests import text_tools
from support.tools import require_tool

from pytest_tfgrpo.patterns.jobs.manifest import RanCommand
from pytest_tfgrpo.patterns.synthesis.prove import JobProof
from pytest_tfgrpo.scoring.runners.registry import run_suite

CART, TEST = "shop/cart.py", "tests/test_cart.py"
SAMPLE = 2


@pytest.fixture
def proof_of(tmp_path):
    """Return what proves a change of files with its tests, in the sandbox."""
    require_tool("bwrap")

    def prove(change: Any, base: Any = BASE, name: str = "one") -> JobProof:
        folder = tmp_path / name
        folder.mkdir()
        return CapturedJob(folder, base, {**HIDDEN, **change}).prove(text_tools(run_suite))

    return prove


@pytest.mark.faults
@pytest.mark.parametrize(("base", "cheats"), EVERY_TABLE.values(), ids=EVERY_TABLE)
def test_a_cheat_that_is_captured_as_a_fix_is_not_proven(proof_of, campaign, base, cheats):
    for number, cheat in enumerate(campaign.sample(sorted(cheats), SAMPLE)):
        found = proof_of({CART: cheats[cheat]}, base, str(number))
        assert found.status == "validation_failed", (cheat, found)


def test_a_true_fix_is_proven(proof_of):
    assert proof_of({CART: SOLVED}).status == "validated"


def test_files_that_cheat_are_no_fix(proof_of):
    assert proof_of({name: text for name, text in FILES.items() if name != TEST}).status != "validated"


FAKE = """
import sys, types
fake = types.ModuleType("test_cart")
exec("def test_count(): pass\\ndef test_total(): pass\\ndef test_total_of_nothing(): pass", fake.__dict__)
for name in ("test_cart", "tests.test_cart"):
    sys.modules[name] = fake
"""


@pytest.mark.parametrize("place", ["tests/conftest.py", "tests/__init__.py", CART])
def test_a_fake_test_module_proves_nothing(proof_of, place):
    change = {CART: BASE[CART] + "\n\ndef other():\n    return 1\n", place: FAKE + BASE.get(place, "")}
    assert proof_of(change).status == "validation_failed"


CONSTANT = "import shop.cart\n\n\ndef test_total():\n    {}assert shop.cart.VERSION == 2\n"


@pytest.mark.parametrize("before", ["", "shop.cart.total([1])\n    "])
def test_a_test_of_a_constant_is_no_proof(proof_of, before):
    found = proof_of({CART: f"VERSION = 2\n{SOLVED}", TEST: CONSTANT.format(before)})
    assert found.reason == f"no test of it counts: {TEST}::test_total (asserts nothing of what changed)"


def test_a_program_that_a_test_starts_is_called_too(proof_of):
    base = {**BASE, "shop/__main__.py": "from shop.cart import total\n\nprint(total([1, 2]))\n"}
    test = (
        "import subprocess, sys\n\n\ndef test_total():\n"
        "    done = subprocess.run([sys.executable, '-m', 'shop'], capture_output=True, text=True)\n"
        "    assert done.stdout == '3\\n'\n"
    )
    assert proof_of({CART: SOLVED, TEST: test}, base).status == "validated"


def test_a_fix_in_javascript_is_proven_by_the_command_of_its_history(tmp_path):
    require_tool("bwrap")
    require_tool("node")
    tests = "import {test} from 'node:test';\nimport assert from 'node:assert';\n"
    tests += "import {total} from './cart.mjs';\ntest('adds', () => { assert.equal(total([1, 2]), 3); });\n"
    base: dict[Any, Any] = {
        "web/cart.mjs": "export const count = (p) => p.length;\n",
        "web/package.json": "{}",
    }
    fix: dict[Any, Any] = {
        "web/cart.mjs": f"{base['web/cart.mjs']}export const total = (p) => p.reduce((a, b) => a + b, 0);\n",
        "web/cart.test.mjs": tests,
    }
    job = CapturedJob(tmp_path, base, fix)
    job.write(PROMPT, [RanCommand(command="node --test cart.test.mjs", exit_code=0, cwd="web")])
    found = job.prove(text_tools(run_suite))
    assert (found.status, found.reason) == ("validated", "")
    assert found.sources["runner"] == "history 1: node --test cart.test.mjs"
