"""The runner ``pytest``: what comes of each test, whatever the others do."""

import contextlib
import gc
import os
import sys
import time
from pathlib import Path

import pytest
from support.runners.pytest_runner import FAILED, PASSED, put, run
from support.tools import require_tool

from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.scoring.runners.protocol import (
    RunProblem,
)

EVERY_OUTCOME = """
import os, time, unittest
import pytest
from shop import total

def test_good(): assert total([1]) == 1
def test_bad(): assert total([1]) == 2, "no\\nsecond line"
@pytest.mark.parametrize("a", [1, "x y/z::"])
def test_each(a): pass
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_expected(): assert 0
@pytest.mark.xfail
def test_unexpected(): pass
@pytest.fixture
def broken(): raise ValueError("in setup")
def test_setup(broken): pass
@pytest.fixture
def untidy():
    yield
    raise ValueError("in teardown")
def test_teardown(untidy): pass
class Unit(unittest.TestCase):
    def test_unit(self): self.assertEqual(total([2]), 2)
    def test_parts(self):
        for n in (1, 2):
            with self.subTest(n=n):
                self.assertEqual(n, 1)
"""
HOSTILE = """
import fcntl, os, pathlib, signal, socket, struct, subprocess, sys
import pytest

def test_leaves_processes_behind():
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    for _ in range(20):
        subprocess.Popen(["sh", "-c", "trap '' TERM HUP INT; sleep MARK & sleep MARK"], **quiet)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

def test_has_no_way_out():
    assert socket.create_server(("127.0.0.1", 0)).getsockname()[0] == "127.0.0.1"
    assert socket.getaddrinfo("localhost", 1)
    with pytest.raises(OSError):
        socket.create_connection(("192.0.2.1", 80), timeout=5)

def test_writes_only_here():
    pathlib.Path("own.txt").write_text("x")
    pathlib.Path("/tmp/own.txt").write_text("x")
    for place in ("/own.txt", "/usr/own.txt", "/etc/passwd", "/dev/own/txt", sys.prefix + "/own.txt"):
        with pytest.raises(OSError):
            pathlib.Path(place).write_text("x")

def test_cannot_fill_the_disk():
    with open("large", "wb") as file, pytest.raises(OSError):
        os.pwrite(file.fileno(), b"x", 2 << 30)

def test_sees_nothing_of_others():
    assert not pathlib.Path("SECRET").exists()
    assert os.environ["HOME"] == "/tmp"
    assert "TFGRPO_TOKEN" not in os.environ

def test_is_not_told_of_another_sandbox_by_files_that_both_see():
    pathlib.Path("lock").touch()
    both, own = ([open(name, mode) for _ in range(2)] for name, mode in ((os.__file__, "r"), ("lock", "r+")))
    for shared, file in zip(both, own):
        fcntl.flock(shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        fcntl.lockf(file, fcntl.LOCK_EX)
    child = subprocess.run([sys.executable, "-c", OTHER_CHILD], stdout=subprocess.PIPE)
    assert child.stdout.split() == [b"0", *[b"ENOSYS"] * 4, b"EINVAL"]

OTHER_CHILD = '''
import ctypes, errno, fcntl
libc = ctypes.CDLL(None, use_errno=True)
file = open("lock", "r+")
print(fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB) or 0)
page = ctypes.create_string_buffer(9)
calls = [lambda: libc.inotify_init(), lambda: libc.inotify_init1(0), lambda: libc.fanotify_init(0, 0),
         lambda: libc.mincore(0, 0, page), lambda: libc.fcntl(file.fileno(), 1024, 0)]
for call in calls:
    print(errno.errorcode[ctypes.get_errno()] if call() < 0 else "done")
'''
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    require_tool("bwrap")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "shop.py").write_text("def total(prices):\n    return sum(prices)\n")
    return tmp_path / "tree"


def left_behind(mark: str) -> list[str]:
    """Return the command lines with a mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text(errors="replace"))
    return [words for words in found if mark in words]


def test_each_test_has_its_outcome(tree):
    (tree / "tests").mkdir()
    (tree / "tests" / "test_all.py").write_text(EVERY_OUTCOME)
    (tree / "tests" / "test_broken.py").write_text("import nothing_of_the_kind\n")
    found = run(tree, "tests/test_all.py", "tests/test_broken.py", "tests/test_missing.py")
    assert found.problem is None, found.detail
    names = {
        id_.removeprefix("tests/test_all.py::"): outcome.value for id_, outcome in found.outcomes.items()
    }
    assert names == {
        "test_good": "passed",
        "test_bad": "failed",
        "test_each[1]": "passed",
        "test_each[x y/z::]": "passed",
        "test_skipped": "skipped",
        "test_expected": "skipped",
        "test_unexpected": "skipped",
        "test_setup": "failed",
        "test_teardown": "failed",
        "Unit::test_unit": "passed",
        "Unit::test_parts": "failed",
        "tests/test_broken.py": "failed",
    }
    assert found.messages["tests/test_all.py::test_bad"] == "AssertionError: no"
    assert found.messages["tests/test_all.py::test_skipped"].startswith("Skipped: ")
    assert "nothing_of_the_kind" in found.messages["tests/test_broken.py"]
    assert sorted(path.name for path in (tree / "tests").iterdir()) == ["test_all.py", "test_broken.py"]


def test_a_test_that_hangs_or_ends_the_process_ends_alone(tree):
    text = "import os, time, signal\ndef test_a(): pass\n"
    text += "def test_hangs():\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    time.sleep(600)\n"
    text += "def test_b(): pass\ndef test_ends(): os._exit(0)\ndef test_c(): pass\n"
    text += "def test_dies(): os.kill(os.getpid(), 9)\ndef test_d(): pass\n"
    (tree / "test_a.py").write_text(text)
    found = run(tree, "test_a.py", hang_s=8.0)
    assert {id_.partition("::")[2]: outcome.value for id_, outcome in found.outcomes.items()} == {
        **dict.fromkeys(("test_a", "test_b", "test_c", "test_d"), "passed"),
        "test_hangs": "hung",
        "test_ends": "failed",
        "test_dies": "failed",
    }
    assert found.problem is None


def test_hostile_tests_reach_nothing_and_leave_nothing(tree, tmp_path, monkeypatch):
    mark = f"7{os.getpid()}.{time.time_ns() % 10**6}"
    (tmp_path / "secret.txt").write_text("x")
    monkeypatch.setenv("TFGRPO_TOKEN", "x")
    text = HOSTILE.replace("MARK", mark).replace("SECRET", str(tmp_path / "secret.txt"))
    (tree / "test_hostile.py").write_text(text)
    found = run(tree, "test_hostile.py")
    assert set(found.outcomes.values()) == {PASSED}, found.messages
    assert len(found.outcomes) == 6
    assert left_behind(mark) == []


def test_without_isolation_nothing_is_left_either(tree, tmp_path):
    mark = f"7{os.getpid()}.{time.time_ns() % 10**6}"
    text = HOSTILE[: HOSTILE.index("def test_has_no_way_out")].replace("MARK", mark)
    (tree / "test_hostile.py").write_text(text)
    found = run(tree, isolation="none")
    assert set(found.outcomes.values()) == {PASSED}
    assert left_behind(mark) == []


def test_a_project_s_own_options_neither_end_nor_hide_tests(tree):
    put(
        tree,
        pytest_ini="[pytest]\naddopts = -x -m unit --lf\npython_functions = check_*\nmarkers = unit: x\n",
        test_a_py="import pytest\npytestmark = pytest.mark.unit\n"
        "def check_bad(): assert 0\ndef check_good(): pass\ndef test_none(): assert 0\n",
        conftest_py="def pytest_collection_modifyitems(items):\n    items.reverse()\n",
    )
    found = run(tree, "test_a.py")
    assert found.problem is None, found.detail
    assert found.outcomes == {"test_a.py::check_bad": FAILED, "test_a.py::check_good": PASSED}


def test_names_are_relative_to_the_tree_where_the_runner_starts_below(tree):
    put(tree, sub__test_a_py="def test_a(): pass\n", sub__pytest_ini="[pytest]\n")
    found = run(tree, "sub/test_a.py", folder="sub")
    assert found.outcomes == {"sub/test_a.py::test_a": PASSED}
    assert run(tree, folder="sub").outcomes == found.outcomes


STANDS_IN = """
from _pytest import runner
class Again:
    def call_and_report(self, item, when, log=True, **more):
        return self.was(item, when, log, **more)
    def pytest_runtest_protocol(self, item, nextitem):
        self.was, runner.call_and_report = runner.call_and_report, self.call_and_report
        try:
            runner.pytest_runtest_protocol(item, nextitem)
        finally:
            runner.call_and_report = self.was
        return True
AGAIN = Again()
pytest_runtest_protocol = AGAIN.pytest_runtest_protocol
"""


@pytest.mark.parametrize(("loads", "problem"), [("PYTEST_PLUGINS", None), ("A", RunProblem.TAMPERED)])
def test_a_plugin_of_the_environment_may_stand_in_for_what_runs_a_test(tree, loads, problem):
    put(
        tree,
        lib__again_py=STANDS_IN,
        conftest_py="" if problem is None else STANDS_IN,
        test_a_py="def test_a(): pass\n",
    )
    environment = BuiltEnvironment(
        stamp="0" * 64,
        folder=tree,
        python=None,
        programs=(),
        imports=("lib",),
        variables={loads: "again", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        links={},
        readable=(),
    )
    found = run(tree, "test_a.py", environment=environment)
    assert found.problem is problem, found.detail
    assert problem or found.outcomes == {"test_a.py::test_a": PASSED}


WRITES = """
import os, pathlib
from shop import total
def write(name, text):
    path = pathlib.Path(__file__).with_name(name)
    before = path.read_text() if path.exists() else None
    path.write_text(text)
    return path, before
"""


def test_tests_that_a_run_exchanges_on_the_disk_are_seen(tree):
    put(
        tree,
        test_a_py=WRITES + "write('test_b.py', 'def test_b(): pass')\ndef test_a(): pass\n",
        test_b_py="from shop import total\ndef test_b(): assert total([]) == 1\n",
    )
    found = run(tree, "test_a.py", "test_b.py")
    assert (found.problem, found.detail) == (
        RunProblem.TAMPERED,
        "'test_b.py' was written while the tests ran",
    )


def test_tests_that_are_put_back_and_a_conftest_for_the_next_process_are_seen(tree):
    put(
        tree,
        test_a_py=WRITES + "path, text = write('test_b.py', '')\npath.write_text(text)\ndef test_a(): pass\n",
        test_b_py="def test_b(): pass\n",
        test_c_py=WRITES + "def test_c(): write('conftest.py', ''); os._exit(0)\n",
    )
    assert "'test_b.py' was written" in run(tree, "test_a.py", "test_b.py").detail
    assert "'conftest.py' was written" in run(tree, "test_c.py").detail


LINTS = """
import pytest

class Lint(pytest.Item):
    __module__ = "pytest_ruff"
    def runtest(self): assert 0

class Other(pytest.Item):
    def runtest(self): pass

class File(pytest.File):
    def collect(self):
        lints = [Lint.from_parent(self, name=f"ruff{n}") for n in range(3)]
        return [*lints, *(Other.from_parent(self, name=f"other{n}") for n in range(3))]

def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".py":
        return File.from_parent(parent, path=file_path)
"""


def test_plugins_that_add_items_to_each_file_add_none_to_ours_and_linters_are_no_tests(tree):
    put(tree, conftest_py=LINTS, test_a_py="def test_a(): pass\n")
    found = run(tree, "test_a.py")
    assert found.problem is None, found.detail
    assert sorted(found.outcomes) == [
        f"test_a.py::{name}" for name in ("other0", "other1", "other2", "test_a")
    ]


def test_what_tests_write_beside_them_is_no_harm(tree):
    put(tree, test_a_py=WRITES + "def test_a(): write('data.txt', 'x'); write('test_new.py', 'x')\n")
    found = run(tree, "test_a.py")
    assert (found.problem, found.outcomes) == (None, {"test_a.py::test_a": PASSED})


def test_names_of_tests_come_from_no_function_that_tests_can_exchange(tree):
    text = "import os\ndef test_a(): os.path.commonprefix = None\ndef test_b(): pass\n"
    put(tree, sub__test_a_py=text)
    found = run(tree, "sub/test_a.py")
    assert found.outcomes == {"sub/test_a.py::test_a": PASSED, "sub/test_a.py::test_b": PASSED}


def test_garbage_is_collected_as_in_plain_pytest(tree):
    text = "import gc\ndef test_a(): assert gc.isenabled() and gc.get_threshold() == THRESHOLD\n"
    put(tree, test_a_py=text.replace("THRESHOLD", repr(gc.get_threshold())))
    assert run(tree, "test_a.py").outcomes == {"test_a.py::test_a": PASSED}


def test_a_conftest_that_cannot_be_imported_fails_its_files(tree):
    put(tree, conftest_py="import nothing_of_the_kind\n", test_a_py="def test_a(): pass\n")
    found = run(tree, "test_a.py")
    assert found.problem is None
    assert found.outcomes == {"test_a.py": FAILED}
    assert found.messages["test_a.py"].startswith(
        "ModuleNotFoundError(\"No module named 'nothing_of_the_kind"
    )


def test_options_of_linters_that_are_not_installed_are_no_harm(tree):
    flags = "--black --codestyle --flake8 --mypy --pylint --ruff-format"
    put(tree, pytest_ini=f"[pytest]\naddopts = {flags}\n", test_a_py="def test_a(): pass\n")
    found = run(tree, "test_a.py")
    assert (found.problem, found.outcomes) == (None, {"test_a.py::test_a": PASSED})


def test_an_option_that_pytest_lacks_is_no_report(tree):
    put(tree, pytest_ini="[pytest]\naddopts = --no-such-option\n", test_a_py="def test_a(): pass\n")
    found = run(tree, "test_a.py")
    assert found.problem in (RunProblem.NO_REPORT, RunProblem.NOTHING_COLLECTED)
    assert "--no-such-option" in found.detail


def test_a_run_has_its_time(tree):
    put(tree, test_a_py="import time\ntime.sleep(600)\n")
    assert run(tree, "test_a.py", timeout_s=1.5).problem is RunProblem.TIMEOUT


def test_an_interpreter_without_pytest_has_no_runner(tree, tmp_path):
    put(tree, test_a_py="def test_a(): pass\n")
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    for python in (bare, tmp_path / "nowhere"):
        environment = BuiltEnvironment(
            stamp="0" * 64,
            folder=tree,
            python=python,
            programs=(),
            imports=(),
            variables={},
            links={},
            readable=(),
        )
        found = run(tree, "test_a.py", environment=environment, isolation="none")
        assert found.problem is RunProblem.NO_RUNNER, python


def test_modules_are_imported_from_the_folders_that_the_environment_names(tree):
    put(
        tree,
        src__deep_py="x = 1\n",
        test_a_py="import os, deep\ndef test_a(): assert os.environ['A'] == '1'\n",
    )
    environment = BuiltEnvironment(
        stamp="0" * 64,
        folder=tree,
        python=None,
        programs=(),
        imports=("src",),
        variables={"A": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        links={},
        readable=(),
    )
    assert run(tree, "test_a.py", environment=environment).outcomes == {"test_a.py::test_a": PASSED}


def test_files_of_tests_are_compiled_once_for_several_runs_and_what_differs_again(tree):
    put(tree, tests__test_a_py="def test_x(): assert 1 == 1\n", tests__conftest_py="X = 1\n")
    compiled, protected = dict[str, str](), ("tests/test_a.py", "tests/conftest.py")
    first = run(tree, "tests/test_a.py", protected=protected, compiled=compiled)
    assert (dict(first.outcomes), len(compiled)) == ({"tests/test_a.py::test_x": PASSED}, 2)
    kept = dict(compiled)
    assert run(tree, "tests/test_a.py", protected=protected, compiled=compiled).outcomes == first.outcomes
    assert compiled == kept
    put(tree, tests__test_a_py="def test_x(): assert 1 == 2\n")
    other = run(tree, "tests/test_a.py", protected=protected, compiled=compiled)
    assert (dict(other.outcomes), len(compiled)) == ({"tests/test_a.py::test_x": FAILED}, 3)


def test_nobody_but_the_reporter_says_what_is_compiled(tree):
    put(
        tree,
        tests__test_a_py='import sys\nsys.audit("pytest_results", "k", "key", "code")\ndef test_x(): pass\n',
    )
    compiled = dict[str, str]()
    found = run(tree, "tests/test_a.py", compiled=compiled)
    assert found.problem is RunProblem.TAMPERED
    assert "key" not in compiled
