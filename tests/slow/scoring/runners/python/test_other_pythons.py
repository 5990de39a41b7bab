"""Other Pythons have other ways to cheat: monitoring from 3.12 on, writable frames from 3.13 on."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cheats import RUNTIME
from support.fixes import BASE, FAIL_TO_PASS, HIDDEN, SOLVED
from support.later_cheats import RETURNS
from support.other_pythons import environment_of
from support.quiet_cheats import QUIET_WAYS
from support.runners.pytest_runner import PASSED, run
from support.tools import require_tool

from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.scoring.runners.protocol import RunProblem, SuiteRun

FORMS = """
import asyncio, functools, unittest
from unittest import mock
import pytest
from shop.cart import around

def twice(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        function(*args, **kwargs)
        function(*args, **kwargs)
    return wrapper

@twice
def test_wrapped(): assert True
@mock.patch("os.getcwd", return_value="x")
def test_patched(getcwd): assert True
@pytest.mark.parametrize("n", [1, 2])
def test_each(n): assert n
@around
def test_under_what_the_project_offers(): assert True
def test_wrapped_by_a_conftest(): assert True
def test_returns_early():
    if True:
        return
def test_fails(): assert 0
def test_leaves():
    pytest.skip("x")
class Case(unittest.TestCase):
    def test_case(self): self.assertEqual(1, 1)
    def test_parts(self):
        for n in (1, 2):
            with self.subTest(n=n):
                self.assertTrue(n)
class Later(unittest.IsolatedAsyncioTestCase):
    async def test_later(self): await asyncio.sleep(0)
test_lambda = lambda: None
test_partial = functools.partial(lambda: None)
"""
WRAPS = """
import functools
def pytest_pyfunc_call(pyfuncitem):
    called = pyfuncitem.obj
    @functools.wraps(called)
    def wrapper(*args, **kwargs):
        called(*args, **kwargs)
    if "by_a_conftest" in pyfuncitem.name:
        pyfuncitem.obj = wrapper
"""


@pytest.fixture(scope="module", params=["3.12", "3.13"])
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> BuiltEnvironment:
    require_tool("bwrap")
    return environment_of(request.param, tmp_path_factory.mktemp("python") / "venv")


def ran(folder: Path, environment: BuiltEnvironment, cart: str, **hidden: str) -> SuiteRun:
    files = {**BASE, **HIDDEN, "shop/cart.py": cart, **hidden}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    listed = [name for name in files if name.startswith("tests/test_")]
    protected = tuple(name for name in files if name.startswith("tests/"))
    return run(folder, *listed, environment=environment, protected=protected)


def test_true_answers_pass_and_tests_of_many_forms_are_found_to_return(
    environment: BuiltEnvironment, tmp_path: Path
) -> None:
    around = "\n\ndef around(function):\n    def wrapper():\n        function()\n    return wrapper\n"
    files = {"tests/test_forms.py": FORMS, "tests/conftest.py": WRAPS}
    found = ran(tmp_path, environment, SOLVED + around, **files)
    assert found.problem is None, found.detail
    bad = {id_.partition("::")[2] for id_, outcome in found.outcomes.items() if outcome is not PASSED}
    assert bad == {"test_fails", "test_leaves"}
    assert len(found.outcomes) == 17


MONITORS = """
import sys
tool = sys.monitoring
tool.use_tool_id(2, "x")
tool.register_callback(2, tool.events.LINE, lambda *_: None)
"""


def test_code_that_monitors_its_tests_is_seen(environment: BuiltEnvironment, tmp_path: Path) -> None:
    found = ran(tmp_path, environment, MONITORS + SOLVED)
    assert found.problem is RunProblem.TAMPERED
    assert "the code under test uses tracing: sys.monitoring.register_callback" in found.detail


WAYS = {
    **RETURNS,
    **{name: code for name, code in QUIET_WAYS.items() if "locals" in name or "class of result" in name},
    **{name: code for name, code in RUNTIME.items() if "frame" in name or "item" in name},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_test_that_did_not_return_has_not_passed_in_one_form_alone(
    environment: BuiltEnvironment, tmp_path: Path, way: str
) -> None:
    found = ran(tmp_path, environment, WAYS[way])
    assert found.problem is not RunProblem.NO_RUNNER
    passed = {id_ for id_, outcome in found.outcomes.items() if outcome is PASSED}
    assert found.problem is not None or not passed.issuperset(FAIL_TO_PASS)
