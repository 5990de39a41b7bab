"""What tests are, as they were compiled before anything else."""

import functools
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite

from pytest_tfgrpo.scoring.runners.python import pytest_kept
from pytest_tfgrpo.scoring.runners.python.pytest_guard import Installed
from pytest_tfgrpo.scoring.runners.python.pytest_kept import KeptTests

TESTS = """
import functools
import pytest
from pytest import raises
from tests import helpers

def around(function):
    @functools.wraps(function)
    def wrapper():
        function()
    return wrapper

def test_plain():
    assert [n for n in (1, 2)] == [1, 2]

@pytest.mark.parametrize("n", [1])
def test_marked(n):
    assert n == 1

@around
def test_wrapped():
    assert 1

class TestA(helpers.Base):
    def test_own(self):
        assert 1

def make():
    def made():
        assert 1
    return made

test_made = make()
"""
HELPERS = """
def skipping(test):
    def wrapper(self):
        test(self)
    return wrapper

class Base:
    def test_inherited(self):
        assert 1

    @skipping
    def test_decorated(self):
        assert 1

def check(value):
    assert value
"""
NAMES = (
    "test_plain",
    "test_marked[1]",
    "test_wrapped",
    "TestA::test_own",
    "TestA::test_inherited",
    "TestA::test_decorated",
    "test_made",
)
HIDDEN = {"test_wrapped": "?", "TestA::test_decorated": "?"}
"""What is said of tests that a decorator hides."""


class Loaded:
    """Modules of tests that are kept, and imported."""

    def __init__(self, tree: Path, import_it: Callable[[str, Path], types.ModuleType]) -> None:
        self.path = str(tree / "tests" / "test_a.py")
        self.kept = KeptTests(
            str(tree), ["tests/test_a.py"], ["tests/helpers.py"], Installed(str(tree), ""), {}
        )
        self.helpers = import_it("tests.helpers", tree / "tests" / "helpers.py")
        self.module = import_it("tests.test_a", tree / "tests" / "test_a.py")

    def fault(self, name: str) -> str:
        found: Any = self.module
        for part in name.partition("[")[0].split("::"):
            found = getattr(found, part)
        return self.kept.fault(f"tests/test_a.py::{name}", self.path, found)


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    monkeypatch.setattr(rewrite, "_rewrite_test", rewrite._rewrite_test)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(TESTS)
    (tmp_path / "tests" / "helpers.py").write_text(HELPERS)

    def import_it(name: str, path: Path) -> types.ModuleType:
        module = types.ModuleType(name)
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, name, module)
        if name.endswith("test_a"):
            monkeypatch.setitem(sys.modules, "tests", types.ModuleType("tests"))
            monkeypatch.setattr(sys.modules["tests"], "helpers", sys.modules["tests.helpers"], raising=False)
            exec(rewrite._rewrite_test(path, None)[1], module.__dict__)
        else:
            exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
        return module

    return Loaded(tmp_path, import_it)


def test_tests_are_what_their_files_say_and_of_what_a_decorator_made_nothing_is_known(loaded: Loaded) -> None:
    assert {name: loaded.fault(name) for name in NAMES} == {**dict.fromkeys(NAMES, ""), **HIDDEN}
    assert loaded.kept.fault_of_modules() == ""

    assert loaded.kept.fault("doc.txt::doc.txt", "doc.txt", None) == "?"


def test_a_file_that_pytest_compiled_is_not_compiled_again(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(text: bytes, path: str, mode: str, *flags: Any, **named: Any) -> Any:
        if not flags:  # else it is parsed alone
            compiled.append(path)
        return compile(text, path, mode, *flags, **named)

    compiled: list[str] = []
    monkeypatch.setattr(pytest_kept, "_compile", counted)
    assert loaded.fault("test_plain") == loaded.fault("test_made") == loaded.kept.fault_of_modules() == ""
    assert compiled == [loaded.helpers.__file__]


def test_tests_that_pytest_did_not_rewrite_are_what_their_file_says(loaded: Loaded) -> None:
    exec(compile(TESTS, loaded.path, "exec"), loaded.module.__dict__)
    assert {name: loaded.fault(name) for name in NAMES} == {**dict.fromkeys(NAMES, ""), **HIDDEN}
    assert loaded.kept.fault_of_modules() == ""


@pytest.mark.parametrize("name", ["test_plain", "test_marked[1]", "TestA::test_own", "TestA::test_inherited"])
def test_a_function_of_other_code_is_no_test(loaded: Loaded, name: str) -> None:
    space: dict[str, Any] = {}
    last = name.partition("[")[0].rpartition(":")[2]
    exec(compile(f"def {last}(self=None, n=1): pass", loaded.path, "exec"), space)
    owner = loaded.module.TestA if "::" in name else loaded.module
    setattr(owner, last, space[last])
    assert loaded.fault(name) == f"the test 'tests/test_a.py::{name}' was replaced"


@pytest.mark.parametrize(
    ("name", "other"), [("test_decorated", "test_inherited"), ("test_inherited", "test_decorated")]
)
def test_an_inherited_test_is_not_another_one(loaded: Loaded, name: str, other: str) -> None:
    setattr(loaded.module.TestA, name, vars(loaded.helpers.Base)[other])
    assert loaded.fault(f"TestA::{name}") == f"the test 'tests/test_a.py::TestA::{name}' was replaced"


def test_a_test_is_not_another_one_of_its_file(loaded: Loaded) -> None:
    loaded.module.__dict__["test_plain"] = loaded.module.test_marked
    assert "was replaced" in loaded.fault("test_plain")


@pytest.mark.parametrize("other", [len, functools.partial(print), type("Call", (), {"__call__": print})()])
def test_what_is_no_function_is_no_test(loaded: Loaded, other: object) -> None:
    loaded.module.__dict__["test_plain"] = other
    assert "was replaced" in loaded.fault("test_plain")


def test_what_tests_import_of_pytest_is_looked_at_in_their_module(loaded: Loaded) -> None:
    loaded.module.__dict__["raises"] = print
    assert loaded.fault("test_plain") == "raises of pytest was replaced in tests/test_a.py"


def test_a_function_beside_the_tests_is_what_its_file_says(loaded: Loaded) -> None:
    loaded.helpers.__dict__["check"] = lambda value: None
    assert loaded.kept.fault_of_modules() == "check of tests/helpers.py was replaced"
    loaded.helpers.__dict__["check"] = loaded.helpers.Base.test_inherited
    assert loaded.kept.fault_of_modules() == "check of tests/helpers.py was replaced"


def test_pytest_imports_what_was_compiled_first(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    first = rewrite._rewrite_test(Path(loaded.path), None)[1]
    monkeypatch.setattr("ast.parse", lambda *a, **k: pytest.fail("compiled again"))
    assert rewrite._rewrite_test(Path(loaded.path), None)[1] is first


def test_what_an_earlier_run_compiled_of_the_same_text_is_not_compiled_again(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = dict(loaded.kept.fresh)
    assert len(compiled) == 1
    monkeypatch.setattr(rewrite, "_rewrite_test", lambda *_: (None, compile("", "", "exec")))

    def again() -> KeptTests:
        return KeptTests(str(tmp_path), ["tests/test_a.py"], [], Installed(str(tmp_path), ""), compiled)

    function = loaded.module.test_plain
    assert (again().fresh, again().fault(NAMES[0], loaded.path, function)) == ({}, "")
    (tmp_path / "tests" / "test_a.py").write_text(TESTS + "1")
    assert [*again().fresh] != [*compiled]


def test_a_file_with_tests_that_another_imports_is_compiled_as_pytest_does(
    loaded: Loaded, tmp_path: Path
) -> None:
    (tmp_path / "tests" / "test_b.py").write_text("def test_it():\n    assert 1\n")
    (tmp_path / "tests" / "test_c.py").write_text("from .test_b import test_it\n")
    beside = ["tests/test_b.py", "tests/test_c.py"]
    kept = KeptTests(str(tmp_path), [], beside, Installed(str(tmp_path), ""), {})
    path = tmp_path / "tests" / "test_b.py"
    space: dict[str, Any] = {}
    exec(rewrite._rewrite_test(path, None)[1], space)
    assert (kept.has(space["test_it"].__code__), len(kept.fresh)) == (True, 1)
