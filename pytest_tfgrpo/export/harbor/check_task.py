"""Run the hidden tests of a task on a copy of the work in a folder, and write the reward.

A script of its own that an export lays beside ``test.sh``: it imports nothing of the package, and runs on any
Python from 3.8 on that has pytest. It writes no reward where the tests cannot be run at all.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from os import _exit
from typing import Any, Dict, Iterator, List, Set, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
MAX_BYTES, MAX_FILES = 1_000_000_000, 100_000
PHASES = {"setup", "call", "teardown"}


class TooMuchWork(Exception):
    """The work is too large to be checked."""


def main() -> int:
    """Check the work in the folder of the first argument; the second is the file for the reward."""
    if sys.argv[1:] == ["--run"]:
        run_pytest(json.load(sys.stdin))
    work, reward = sys.argv[1:]
    with open(os.path.join(HERE, "settings.json"), encoding="utf-8") as file:
        task = json.load(file)
    folder = os.path.realpath(tempfile.mkdtemp(prefix="check-"))
    began = time.monotonic()
    try:
        tree = os.path.join(folder, "tree")
        make_tree(work, tree, task)
        passed = passed_tests(tree, task, began + task["timeout_s"])
        if passed is None:
            print("the tests cannot be run: pytest did not start")
            return 1
        credit, reason = judged(task, passed)
    except TooMuchWork as error:
        credit, reason = 0.0, str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(reason)
    with open(reward, "w", encoding="ascii") as file:
        file.write(f"{credit:.12g}\n")
    return 0


def judged(task: Dict[str, Any], passed: Set[str]) -> Tuple[float, str]:
    """Return the credit of the tests that passed, and why."""
    wanted, kept = task["fail_to_pass"], task["pass_to_pass"]
    missed = [name for name in wanted if name not in passed]
    broken = [name for name in kept if name not in passed]
    if not missed and not broken:
        return 1.0, "all listed tests passed"
    reason = f"did not pass: {', '.join((missed + broken)[:10])}"
    if broken or task["credit"] == "all":
        return 0.0, reason
    return 1 - len(missed) / len(wanted), reason


# The tree that the tests run on


def make_tree(work: str, tree: str, task: Dict[str, Any]) -> None:
    """Copy the work without what decides about tests, which comes from the task."""
    taken = set(task["taken"])
    places = {place for name in taken for place in _above(name)} | set(task["places"])
    protected, names = _protected(), foreign_modules()
    packages: Set[str] = set()
    room = MAX_BYTES
    os.mkdir(tree)
    for count, (path, name) in enumerate(_files(work, packages)):
        if name not in taken and (
            protected.is_protected(name, task["protected"])
            or protected.shadows(name, names, packages, task["imports"], places)
        ):
            continue
        room -= 0 if os.path.islink(path) else os.path.getsize(path)
        if room < 0 or count >= MAX_FILES:
            raise TooMuchWork("the work is too large to be checked")
        _copy(path, os.path.join(tree, name), name)
    for archive in ("before.tar.gz", "hidden.tar.gz"):
        _lay(os.path.join(HERE, archive), tree)


def _above(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition("/")[0]


def _protected() -> Any:
    """Return the module beside this one that says which paths an agent may not change."""
    spec: Any = importlib.util.spec_from_file_location("protected", os.path.join(HERE, "protected.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def foreign_modules() -> Set[str]:
    """Return the top-level modules that the work must not stand in for."""
    found = set(getattr(sys, "stdlib_module_names", sys.builtin_module_names))
    for place in sys.path:
        if os.path.basename(place) in ("site-packages", "dist-packages") and os.path.isdir(place):
            found.update(name.partition(".")[0] for name in os.listdir(place))
    return found - {""}


def _files(work: str, packages: Set[str]) -> Iterator[Tuple[str, str]]:
    """Yield the files and links of the work, by path and by name; follows no link, notes packages."""
    for at, folders, names in os.walk(work):
        inside = os.path.relpath(at, work)
        start = "" if inside == "." else inside + "/"
        if "__init__.py" in names:
            packages.add(start.rstrip("/"))
        links = [name for name in folders if os.path.islink(os.path.join(at, name))]
        folders[:] = sorted(name for name in folders if name not in (*links, ".git"))
        for name in sorted([*names, *links]):
            path = os.path.join(at, name)
            if os.path.islink(path) or os.path.isfile(path):
                yield path, start + name


def _copy(path: str, target: str, name: str) -> None:
    """Copy a file, or a link that stays in the tree."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if not os.path.islink(path):
        shutil.copy(path, target)
        return
    leads = os.readlink(path)
    inside = os.path.normpath(os.path.join("/x" * 99, os.path.dirname(name), leads))
    if (inside + "/").startswith("/x" * 99 + "/"):
        os.symlink(leads, target)


def _lay(archive: str, tree: str) -> None:
    """Write the files of an archive of the task, in place of what stands in the way."""
    with tarfile.open(archive, "r:gz") as members:
        for member in members:
            path = tree
            for part in member.name.split("/")[:-1]:
                path = os.path.join(path, part)
                if os.path.islink(path) or not os.path.isdir(path):
                    _clear(path)
                    os.mkdir(path)
            path = os.path.join(tree, member.name)
            content = members.extractfile(member) if member.isfile() else None
            if content is None and not member.issym():
                continue
            _clear(path)
            if content is None:
                os.symlink(member.linkname, path)
                continue
            with open(path, "wb") as file:
                shutil.copyfileobj(content, file)
            os.chmod(path, member.mode & 0o777)


def _clear(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


# The tests


def passed_tests(tree: str, task: Dict[str, Any], deadline: float) -> Any:
    """Return the ids of the tests that passed in a process of their own; None where pytest did not start."""
    reading, writing = os.pipe()
    request = {**task, "tree": tree, "results": writing}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment.update(task["variables"])
    if task["alone"]:
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    tests = subprocess.Popen(
        [sys.executable, "-I", os.path.abspath(__file__), "--run"],
        stdin=subprocess.PIPE,
        env=environment,
        pass_fds=(writing,),
        start_new_session=True,
    )
    os.close(writing)
    assert tests.stdin is not None
    tests.stdin.write(json.dumps(request).encode())
    tests.stdin.close()
    try:
        said = b"".join(_heard(reading, tests, deadline))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(tests.pid, signal.SIGKILL)
        tests.wait()
        os.close(reading)
    return _passed(said)


def _heard(reading: int, tests: Any, deadline: float) -> Iterator[bytes]:
    """Yield what the tests' process says, until it ends or its time is over."""
    while time.monotonic() < deadline:
        over = tests.poll() is not None
        if select.select([reading], [], [], 0 if over else 0.2)[0]:
            data = os.read(reading, 65536)
            if not data:
                return
            yield data
        elif over:
            return


def _passed(said: bytes) -> Any:
    phases: Dict[str, Set[str]] = {}
    failed: Set[str] = set()
    began = False
    for line in said.split(b"\n")[:-1]:
        try:
            name, when, outcome = json.loads(line)
        except ValueError:
            continue
        began = began or when == "began"
        if outcome == "passed":
            phases.setdefault(name, set()).add(when)
        elif outcome != "rerun":
            failed.add(name)
    return {name for name, seen in phases.items() if seen == PHASES} - failed if began else None


def run_pytest(request: Dict[str, Any]) -> None:
    """Run the tests of a request, and end this process."""
    sys.dont_write_bytecode = True
    tree, results = request["tree"], request["results"]
    start = os.path.join(tree, request["folder"])
    os.chdir(start)
    os.set_inheritable(results, False)
    pytest: Any = importlib.import_module("pytest")

    def say(*values: str) -> None:
        os.write(results, json.dumps(values).encode() + b"\n")

    class Results:
        """Says what becomes of each test."""

        root: str = ""

        def pytest_configure(self, config: Any) -> None:
            self.root = str(getattr(config, "rootpath", None) or config.rootdir)

        def pytest_runtest_logreport(self, report: Any) -> None:
            path, colons, rest = report.nodeid.partition("::")
            name = os.path.relpath(os.path.join(self.root, path), tree)
            say(name + colons + rest, report.when, report.outcome)

    say("", "began", "")
    imports = [os.path.join(tree, name) for name in request["imports"]]
    sys.path[:0] = [start, *imports]
    sys.path += [place for place in [request["distributions"]] if os.path.isdir(place)]
    if imports:
        os.environ["PYTHONPATH"] = os.pathsep.join(imports)
    pytest.main(_arguments(request, start), plugins=[Results()])
    sys.stdout.flush()
    sys.stderr.flush()
    _exit(0)


def _arguments(request: Dict[str, Any], start: str) -> List[str]:
    words = ["-q", "--tb=short", "--disable-warnings", "--maxfail=0", "--color=no", "-p", "no:cacheprovider"]
    words += ["--continue-on-collection-errors", "-p", "no:randomly", "-p", "no:random_order"]
    if not request["alone"] and importlib.util.find_spec("xdist"):
        words += ["-n", "0"]
    if not request["alone"] and importlib.util.find_spec("pytest_cov"):
        words += ["--no-cov"]
    paths = [os.path.join(request["tree"], name) for name in request["files"]]
    return words + ["./" + os.path.relpath(path, start) for path in paths if os.path.isfile(path)]


if __name__ == "__main__":
    sys.exit(main())
