"""Run pytest and report each test over a private socket; a script of its own, for any Python from 3.8 on.

It runs in the interpreter of the project's environment, loaded before anything of the workspace can be. Each
line is authenticated with a key that comes over the socket, is in no file, argument or variable, and changes
with each line. What decides about outcomes is compared with what it was before the workspace was imported.
"""

# ruff: noqa: UP006, UP035 - Python 3.8

from __future__ import annotations

import fcntl
import gc
import hashlib
import importlib
import importlib.util
import json
import os
import re
import socket
import struct
import sys
import threading
import types
from os import _exit
from typing import Any, Callable, Dict, List, Set, Tuple

HEADER = struct.Struct("<q")
MESSAGE = 500
LEAST_DESCRIPTOR = 64
EVENT = "pytest_results"
"""Audit event by which the plugin speaks to the hook that holds the key."""
DECIDING = (
    "pytest_runtest_protocol", "pytest_runtest_makereport", "pytest_pyfunc_call", "pytest_runtest_call",
    "pytest_runtest_logreport",
)  # fmt: skip
"""Hooks that decide about outcomes."""
TEST_PLACE = re.compile(r"(?:^|/)(?:tests?/|conftest\.py$|test_[^/]*\.py$|[^/]*_tests?\.py$)", re.IGNORECASE)
MEMORY = re.compile(r"/proc/(?:self|thread-self|\d+)/(?:task/\d+/)?mem")
TOGETHER = 32
"""Reports that wait for the start of the next test, so that each test costs one message."""
VITAL = {"runtestprotocol", "call_and_report", "call_runtest_hook", "pytest_runtest_makereport", "runtest",
         "pytest_runtest_call", "from_call", "from_item_and_call", "pytest_pyfunc_call", "_multicall",
         "_hookexec"}  # fmt: skip
"""What is looked at with each test; the rest of pytest and unittest is at the end."""
NEVER_LOADED = ("tfgrpo", "randomly", "random_order")
"""Plugins that must not take part: ours, and those that choose an order."""
tell = sys.audit


def main() -> None:
    """Read the request, run pytest, report its end."""
    number = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, LEAST_DESCRIPTOR)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    connection = socket.socket(fileno=number)
    with connection.makefile("rb") as stream:
        request = json.loads(stream.read(HEADER.unpack(stream.read(HEADER.size))[0]))
    connection.detach()
    _keep(number, bytes.fromhex(request.pop("key")))
    _run(request)


def _run(request: Dict[str, Any]) -> None:
    start = os.path.join(request["tree"], request["folder"])  # noqa: PTH118
    os.chdir(start)
    sys.dont_write_bytecode = True
    try:
        pytest: Any = importlib.import_module("pytest")
        importlib.import_module("unittest.case")
    except BaseException as error:
        tell(EVENT, "p", f"pytest cannot be imported: {error!r}"[:MESSAGE])
        raise
    arguments = _arguments(request)
    plugin = _plugin(request, pytest)
    script = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != script]  # noqa: PTH100
    sys.path[:0] = [start, *request["imports"]]
    if request["imports"]:
        os.environ["PYTHONPATH"] = os.pathsep.join(request["imports"])
    sys.argv = ["pytest", *arguments]
    code = int(pytest.main(arguments, plugins=[plugin]))
    tell(EVENT, "end", code)
    sys.stdout.flush()
    sys.stderr.flush()
    _exit(0)


def _arguments(request: Dict[str, Any]) -> List[str]:
    words = ["-q", "--tb=line", "-rN", "--disable-warnings", "--show-capture=no", "--maxfail=0", "--color=no"]
    words += ["--continue-on-collection-errors", "-o", "cache_dir=" + request["cache"]]
    for name in NEVER_LOADED:
        words += ["-p", "no:" + name]
    loaded = not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    if loaded and importlib.util.find_spec("xdist"):
        words += ["-n", "0"]
    if loaded and importlib.util.find_spec("pytest_cov"):
        words += ["--no-cov"]
    return words + list(request["files"])


def _keep(number: int, key: bytes) -> None:
    """Install the hook that holds the key and sends lines.

    The interpreter holds it in a list that no code can reach and traces nothing in it. Anybody can speak to
    it: what would do good to a test counts only from pytest's own calls, and bad is always believed.
    """
    write, digest, dumps, loads, here = os.write, hashlib.blake2b, json.dumps, json.loads, os.getpid
    lock, get_frame, get_thread = threading.RLock(), sys._getframe, threading.get_ident
    own, thread, codes = here(), get_thread(), {}  # type: Tuple[int, int, Dict[str, int]]
    guards: List[Callable[[Any], str]] = []
    said, pending = [], []  # type: Tuple[List[str], List[Tuple[Any, ...]]]

    def send(values: Tuple[Any, ...]) -> None:
        nonlocal key
        if here() != own:  # a fork that a test left running
            return
        with lock:
            pending.append(values)
            if values[0] == "r" and len(pending) < TOGETHER:
                return
            body = dumps(pending).encode("utf-8", "surrogatepass")
            pending.clear()
            line = digest(body, key=key, digest_size=16).hexdigest().encode() + b" " + body + b"\n"
            key = digest(b"next", key=key, digest_size=32).digest()
            while line:
                line = line[write(number, line) :]

    def tampered(why: str) -> None:
        if why and not said:
            said.append(why)
            send(("x", why))

    def take(verb: str, values: Tuple[Any, ...], frame: Any) -> None:
        if verb == "r":  # plain values: a text of another class could equal anything
            values = tuple(loads(dumps(values)))
        if verb == "guard" and not guards:
            guards.append(_guard(*values))
        elif verb == "tests":
            for name, code in values[0]:
                codes.setdefault(name, code)
        elif verb == "torn" and (codes.get(values[0]) != values[1] or values[2]):
            tampered(f"the test {values[0]!r} was replaced")
        elif (verb == "r" and values[1:3] == ("call", "passed")) or "rerun" in values[2:3]:
            found = guards[0](frame) if guards and get_thread() == thread else "-"
            tampered(found.strip("-"))
            if not found:
                send((verb, *values))
        elif verb == "end":
            tampered(guards[0](None) if guards else "")
            send(("e", *values))
        elif verb in ("p", "v", "n", "c", "s", "r"):
            send((verb, *values))

    def hook(event: str, values: Tuple[Any, ...]) -> None:
        if event == EVENT:
            take(values[0], values[1:], get_frame(1))
        elif event == "open":
            if isinstance(values[0], (str, bytes)) and MEMORY.fullmatch(os.fsdecode(values[0])):
                tampered("the memory of the tests was opened")
        elif event == "sys._current_frames" and get_thread() != thread:
            tampered("another thread looked into the reporter")

    sys.addaudithook(hook)


def _plugin(request: Dict[str, Any], pytest: Any) -> Any:
    """Return the plugin: it knows no secret, and tells the hook what pytest says."""
    plugin: Any = types.ModuleType("pytest_results")
    names = _Names(request["tree"])
    for function in (*_collecting(request, names), *_reporting(names)):
        wraps = function.__name__ in ("pytest_load_initial_conftests", "pytest_collection_modifyitems")
        hook = pytest.hookimpl(hookwrapper=True, tryfirst=True) if wraps else pytest.hookimpl(tryfirst=True)
        setattr(plugin, function.__name__, hook(function))
    return plugin


class _Names:
    """Names of tests relative to the tree, wherever pytest has its root; nobody can forge them."""

    def __init__(self, tree: str) -> None:
        self.tree = self.root = tree.split("/")

    def __call__(self, nodeid: str) -> str:
        path, colons, rest = str.partition(nodeid, "::")
        parts, tree = [*self.root], self.tree
        for part in path.split("/"):
            if part == "..":
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        same = 0
        while parts[same : same + 1] == tree[same : same + 1] != []:
            same += 1
        return "/".join([".."] * (len(tree) - same) + parts[same:]) * bool(path) + colons + rest


def _collecting(request: Dict[str, Any], names: _Names) -> Tuple[Any, ...]:
    """Return the hooks that put canaries among the tests, and note what is found."""
    tree, canaries, skipped = request["tree"], dict(request["canaries"]), frozenset(request["skipped"])
    places, join = list(request["at"]), os.path.join
    own = {os.path.normpath(join(tree, name)) for name in canaries}

    def pytest_load_initial_conftests(early_config: Any) -> Any:
        root = getattr(early_config, "rootpath", None) or early_config.rootdir  # before pytest 6.1
        names.root = str(root).rstrip("/").split("/")
        for name, text in canaries.items():
            with open(join(tree, name), "x", encoding="utf-8") as file:  # noqa: PTH123
                file.write(_canary(text, early_config.getini("python_functions")))
        tell(EVENT, "guard", early_config, tree)
        outcome = yield
        if outcome.excinfo is not None:
            tell(EVENT, "v", repr(outcome.excinfo[1])[:MESSAGE])

    def pytest_collection_modifyitems(items: List[Any]) -> Any:
        ours = [item for item in items if str(item.fspath) in own]
        items[:] = [item for item in items if str(item.fspath) not in own]
        yield
        items[:] = _mixed([item for item in items if names(item.nodeid) not in skipped], ours, places)

    def pytest_collection_finish(session: Any) -> None:
        tell(EVENT, "tests", [(item.nodeid, _code(item)) for item in session.items])
        tell(EVENT, "n", len(session.items))

    def pytest_collectreport(report: Any) -> None:
        if report.failed:
            tell(EVENT, "c", names(report.nodeid), _message(report))

    return (pytest_load_initial_conftests, pytest_collection_modifyitems, pytest_collection_finish,
            pytest_collectreport)  # fmt: skip


def _reporting(names: _Names) -> Tuple[Any, ...]:
    """Return the hooks that tell what comes of each test."""

    def pytest_runtest_logstart(nodeid: str) -> None:
        tell(EVENT, "s", names(nodeid))

    def pytest_runtest_logreport(report: Any) -> None:
        outcome = str(report.outcome)
        if outcome in ("passed", "skipped") and hasattr(report, "wasxfail"):
            outcome = "skipped"
        if hasattr(report, "context") and outcome != "failed":  # a part of a test; the whole is reported too
            return
        message = _message(report) if outcome == "failed" else ""
        seconds = float(report.duration or 0.0)
        tell(EVENT, "r", names(report.nodeid), str(report.when), outcome, seconds, message)

    def pytest_runtest_teardown(item: Any) -> None:
        tell(EVENT, "torn", item.nodeid, _code(item), "runtest" in vars(item))

    return pytest_runtest_logstart, pytest_runtest_logreport, pytest_runtest_teardown


def _code(item: Any) -> int:
    """Return what identifies the code of a test; 0 where it has none, such as an example in a text."""
    called = getattr(item, "obj", None)
    called = getattr(called, "__func__", called)
    return id(getattr(called, "__code__", None)) if hasattr(called, "__code__") else 0


def _canary(text: str, patterns: List[str]) -> str:
    """Return a canary with functions that the project's pattern of names finds."""
    pattern = str(patterns[0]) if patterns else "test"
    if "*" not in pattern:
        pattern += "_*"
    before, _, after = (re.sub(r"\W", "", part) for part in pattern.partition("*"))
    return re.sub(r"\bNAMED_(\w+)", lambda found: before + found.group(1) + after, text)


def _mixed(items: List[Any], ours: List[Any], places: List[float]) -> List[Any]:
    """Return the tests with ours between those of two files."""
    seams = [0, *(i for i in range(1, len(items)) if items[i].fspath != items[i - 1].fspath), len(items)]
    at = sorted(
        (seams[int(place * len(seams)) % len(seams)], i) for i, place in enumerate(places[: len(ours)])
    )
    mixed, done = [], 0
    for place, which in at:
        mixed += [*items[done:place], ours[which]]
        done = place
    return mixed + items[done:]


def _message(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(getattr(crash, "message", "") or report.longrepr or "").strip()
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    return (lines[0] if crash is not None else lines[-1])[:MESSAGE].encode("utf-8", "replace").decode()


def _guard(config: Any, tree: str) -> Callable[[Any], str]:
    """Return the function that says what was changed, ``-`` for a report not from pytest, else nothing."""
    before = _snapshot()
    vital = [entry for entry in before if entry[4]]
    trusted = _trusted(config)
    known = {id(one) for one in config.pluginmanager.get_plugins()}
    bottom, hooks = _run.__code__, config.hook
    speaker = config.pluginmanager.get_plugin("pytest_results").pytest_runtest_logreport.__code__
    from_call = {id(code) for code in _codes_of(sys.modules["_pytest.runner"].CallInfo)}

    def guard(frame: Any) -> str:
        for where, name, was, code, _ in before if frame is None else vital:
            now = where.get(name)
            if now is not was or (code is not None and getattr(now, "__code__", None) is not code):
                return f"{name} of pytest was replaced"
        for name in DECIDING:
            for found in getattr(hooks, name).get_hookimpls():
                if id(found.plugin) not in known and _foreign(found.function, tree):
                    return f"a plugin of the workspace decides in {name}"
        if frame is None:
            return ""
        if frame.f_code is not speaker:
            return "-"
        frame = frame.f_back
        while frame is not None and frame.f_code is not bottom:
            if id(frame.f_code) not in trusted or id(frame.f_code) in from_call:
                return "-"
            frame = frame.f_back
        return "" if frame is not None else "-"

    gc.collect()
    gc.freeze()  # what is frozen is in no list of objects
    gc.unfreeze = lambda: None
    return guard


def _foreign(function: Any, tree: str) -> bool:
    """Return whether code lies in the workspace, but not where its tests are."""
    function = getattr(function, "__func__", function)
    name = getattr(getattr(function, "__code__", None), "co_filename", "")
    path = os.path.realpath(name)
    if not path.startswith(os.path.realpath(tree) + os.sep):
        return not os.path.exists(path)  # noqa: PTH110 - made by exec, or a callable of another kind
    return not TEST_PLACE.search(os.path.relpath(path, os.path.realpath(tree)))


def _snapshot() -> List[Tuple[Any, str, Any, Any, bool]]:
    """Return where each function of pytest and unittest is held, its name, itself and its code."""
    found: List[Tuple[Any, str, Any, Any, bool]] = []
    for module in _of_runner():
        names = vars(module)
        for name, value in list(names.items()):
            if isinstance(value, types.FunctionType):
                found.append((names, name, value, value.__code__, name in VITAL))
            elif isinstance(value, type) and str(value.__module__) == module.__name__:
                own = value.__dict__
                found.append((names, name, value, None, not VITAL.isdisjoint(own)))
                for part, held in list(own.items()):
                    if isinstance(held, (types.FunctionType, staticmethod, classmethod, property)):
                        found.append((own, part, held, getattr(held, "__code__", None), part in VITAL))
    return found


def _of_runner() -> List[Any]:
    names = [name for name in sys.modules if name.partition(".")[0] in ("_pytest", "pluggy")]
    return [sys.modules[name] for name in (*names, "unittest.case") if sys.modules[name] is not None]


def _trusted(config: Any) -> Set[int]:
    """Return the codes through which a report goes: of pytest, pluggy, and the plugins that are loaded."""
    modules = {id(module): module for module in _of_runner()}
    for plugin in config.pluginmanager.get_plugins():
        name = getattr(plugin, "__name__", None) or type(plugin).__module__
        if isinstance(name, str) and name in sys.modules:
            modules[id(sys.modules[name])] = sys.modules[name]
    found: Set[int] = set()
    for module in modules.values():
        for value in list(vars(module).values()):
            found.update(id(code) for code in _codes_of(value))
    return found


def _codes_of(value: Any) -> List[Any]:
    """Return the codes of a function or of all methods of a class, those within them too."""
    if isinstance(value, type):
        return [code for held in list(vars(value).values()) for code in _codes_of_function(held)]
    return _codes_of_function(value)


def _codes_of_function(value: Any) -> List[Any]:
    value = getattr(value, "fget", None) or getattr(value, "__func__", value)
    found, left = [], [value]
    for one in left:
        if isinstance(one, types.FunctionType):
            left += [one.__code__, getattr(one, "__wrapped__", None)]
        elif isinstance(one, types.CodeType):
            found.append(one)
            left += list(one.co_consts)
    return found


if __name__ == "__main__":
    main()
