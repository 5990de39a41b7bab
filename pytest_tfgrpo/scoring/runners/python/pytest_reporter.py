"""Run pytest and report each test over a private socket; `pytest_start` loads it, in any Python from 3.8 on.

It runs in the interpreter of the project's environment, loaded before anything of the workspace can be. Each
line is authenticated with a key that comes over the socket, is in no file, argument or variable, and changes
with each line. What decides about outcomes is compared with what it was before the workspace was imported.
"""

# ruff: noqa: UP006, UP035 - Python 3.8

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import sys
import threading
import types
from _blake2 import blake2b as digest  # hashlib would load OpenSSL for it
from os import _exit
from os import readlink as _link
from typing import Any, Callable, Dict, FrozenSet, List, Set, Tuple

MESSAGE = 500
EVENT = "pytest_results"
"""Audit event by which the plugin speaks to the hook that holds the key."""
MEMORY = re.compile(r"mem|.*/mem")
LINKS = 40
"""How many links Linux follows."""
COMPILED_MAX = 4 << 20
"""Letters of a compiled file that are worth sending."""
TOGETHER = 32
"""Reports that wait for the start of the next test, so that each test costs one message."""
UNHEARD = frozenset(("builtins.id", "object.__getattr__", "sys._getframe", "compile", "exec", "os.putenv",
                     "os.unsetenv", "os.listdir", "os.scandir", "marshal.loads"))  # fmt: skip
"""Frequent audit events that say nothing here; each look of the guard causes thousands."""
WATCHED = ("sys.settrace", "sys.setprofile", "sys.monitoring.register_callback", "import")
"""Audit events that are looked at by `watch`, beside those of ctypes."""
WRAPPERS = ("pytest_load_initial_conftests", "pytest_collection_modifyitems", "pytest_runtest_call")
NEVER_LOADED = ("tfgrpo", "randomly", "random_order")
"""Plugins that must not take part: ours, and those that choose an order."""
LINTERS = ("pytest_black", "pytest_checkdocs", "pytest_codestyle", "pytest_flake8", "pytest_flakes",
           "pytest_isort", "pytest_mypy", "pytest_pep8", "pytest_pycodestyle", "pytest_pydocstyle",
           "pytest_pylint", "pytest_ruff")  # fmt: skip
"""Plugins that add items of their own to each file, also to ours."""
FLAGS = {"pytest_ruff": ("--ruff", "--ruff-format")}
"""Options of linters' plugins, where they are not called as the plugin is."""
tell = sys.audit
Send = Callable[[Tuple[Any, ...]], None]
Tampered = Callable[[str], None]


def report(
    number: int, request: Dict[str, Any], here: str, guarding: Any, keeping: Any, returning: Any
) -> None:
    """Run pytest as the request says, and report to the descriptor `number` until its end.

    `guarding`, `keeping` and `returning` are the scripts beside this one, in the folder `here`.
    """
    installed = guarding.Installed(request["tree"], here)
    known: List[Any] = []
    watch = guarding.watch(installed, known)
    _keep(number, bytes.fromhex(request.pop("key")), guarding.open_guard, watch, request, returning.Returns)
    _run(request, keeping, installed, known, here)


def _run(request: Dict[str, Any], keeping: Any, installed: Any, known: List[Any], here: str) -> None:
    start = os.path.join(request["tree"], request["folder"])  # noqa: PTH118
    os.chdir(start)
    try:
        pytest: Any = importlib.import_module("pytest")
        importlib.import_module("unittest.case")
    except BaseException as error:
        tell(EVENT, "p", f"pytest cannot be imported: {error!r}"[:MESSAGE])
        raise
    tell(EVENT, "b")  # it began: whatever ends it from here on is the tree's fault
    listed = [os.path.normpath(os.path.join(start, name)) for name in request["files"]]  # noqa: PTH118
    tree = request["tree"]
    kept = keeping.KeptTests(
        tree, [path[len(tree) + 1 :] for path in listed], request["protected"], installed, request["compiled"]
    )
    known.append(kept)
    for key, code in kept.fresh.items() if request["compiled"] is not None else ():
        if len(code) < COMPILED_MAX:
            tell(EVENT, "k", key, code)
    arguments = _arguments(request)
    plugin = _plugin(request, pytest, kept)
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != here]  # noqa: PTH100
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


def _keep(
    number: int,
    key: bytes,
    open_guard: Callable[..., Any],
    watch: Callable[..., str],
    request: Dict[str, Any],
    new_returns: Callable[[], Any],
) -> None:
    """Install the hook that holds the key and sends lines.

    The interpreter holds it in a list that no code can reach and traces nothing in it. Anybody can speak to
    it: what would do good to a test counts only from pytest's own calls, and bad is always believed.
    """
    send, tampered, pending = _signed(number, key)
    take, guards = _taking(open_guard, send, tampered, new_returns())
    hear, unheard = _hearing(take, guards, send, tampered, watch, frozenset(request["allow"])), UNHEARD

    def hook(event: str, values: Tuple[Any, ...]) -> None:
        if event in unheard:
            return
        try:
            hear(event, values)
        except BaseException:  # noqa: BLE001 - its traceback would lead to the key
            pending.append(("x", "the reporter was disturbed"))  # calls nothing, as there may be no room to

    sys.addaudithook(hook)


def _signed(number: int, key: bytes) -> Tuple[Send, Tampered, List[Tuple[Any, ...]]]:
    """Return the functions that send a signed line and say once what was tampered with, and what waits."""
    write, dumps, here, lock = os.write, json.dumps, os.getpid, threading.RLock()
    own, said, pending = here(), [], []  # type: Tuple[int, List[str], List[Tuple[Any, ...]]]

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

    return send, tampered, pending


def _taking(
    open_guard: Callable[..., Any], send: Send, tampered: Tampered, returns: Any
) -> Tuple[Callable[[str, Tuple[Any, ...], Any], None], List[Callable[..., Any]]]:
    """Return the function that takes what the plugin says, and the list of its guards once they are open."""
    loads, get_thread = json.loads, threading.get_ident
    thread, codes = get_thread(), {}  # type: Tuple[int, Dict[str, int]]
    guards: List[Callable[..., Any]] = []

    def take(verb: str, values: Tuple[Any, ...], frame: Any) -> None:
        if verb == "guard" and not guards:
            guards.extend(open_guard(returns, *values[:2], _run.__code__, *values[2:]))
        elif verb == "look":
            tampered(guards[2](frame, *values))
        elif not _plain(values):  # what is no text or number could run code here
            tampered("a message is not from the reporter")
        elif verb == "tests":
            for name, code in loads(values[0]):
                if codes.setdefault(name, code) != code:
                    tampered(f"the test {name!r} was replaced")
        elif verb == "torn" and (
            values[2] or (codes.get(values[0]) != values[1] and not guards[3](values[0]))
        ):
            tampered(f"the test {values[0]!r} was replaced")
        elif verb == "r" and (values[1:3] == ("call", "passed") or "rerun" in values[2:3]):
            found = guards[0](frame) if guards and get_thread() == thread else "-"
            found = found or (values[2] == "passed" and returns.fault()) or ""
            tampered(found.strip("-"))
            if not found:
                send((verb, *values))
        elif verb == "end":
            tampered(guards[0](None) if guards else "")
            send(("e", *values))
        elif verb in ("b", "p", "k") and frame.f_code is not _run.__code__:  # nobody else can know it
            tampered("a message is not from the reporter")
        elif verb in ("b", "p", "k", "v", "n", "c", "s", "r"):
            if verb == "s" or (verb == "r" and values[1] == "call"):
                returns.fault()
            send((verb, *values))

    return take, guards


def _hearing(
    take: Callable[[str, Tuple[Any, ...], Any], None],
    guards: List[Callable[..., Any]],
    send: Send,
    tampered: Tampered,
    watch: Callable[..., str],
    allow: FrozenSet[str],
) -> Callable[[str, Tuple[Any, ...]], None]:
    """Return the function that hears each audit event, called by the hook itself."""
    get_frame, get_thread, thread = sys._getframe, threading.get_ident, threading.get_ident()
    is_memory = _is_memory  # a name of the module is anybody's to change
    used: Set[str] = set()

    def hear(event: str, values: Tuple[Any, ...]) -> None:
        if event == EVENT:
            if type(values[0]) is str:
                take(values[0], values[1:], get_frame(2))
        elif event == "open":
            if type(values[0]) is not int and is_memory(values[0]):
                tampered("the memory of the tests was opened")
        elif event == "object.__setattr__":
            if type(values[1]) is str and values[1] == "__code__" and guards and guards[1](values[0]):
                tampered(f"{values[0].__name__} of pytest was replaced")
        elif event == "sys._current_frames" and get_thread() != thread:
            tampered("another thread looked into the reporter")
        elif event in WATCHED or event[:7] == "ctypes.":
            use = watch(event, values, get_frame(2))
            if use and use not in allow:
                tampered(f"the code under test uses {use}: {event}; `allow` says where it may")
            elif use and use not in used:
                used.add(use)
                send(("u", use))

    return hear


def _is_memory(name: Any) -> bool:
    """Return whether a path of a file, or where links of this name lead, is the memory of a process."""
    for _ in range(LINKS):  # nothing of the name is called, as its class may be anybody's
        if issubclass(type(name), bytes):
            name = bytes.decode(name, "latin-1")
        if not issubclass(type(name), str):
            return False
        path = str.__str__(name)
        if path[-3:] == "mem" and MEMORY.fullmatch(path):
            return True
        try:
            name = _link(path)  # noqa: PTH115
        except (OSError, ValueError):
            return False
    return True


def _plain(values: Tuple[Any, ...]) -> bool:
    """Return whether values are texts and numbers, and not of classes that only resemble them."""
    for value in values:
        kind = type(value)
        if kind is not str and kind is not int and kind is not float and kind is not bool:
            return False
    return True


def _plugin(request: Dict[str, Any], pytest: Any, kept: Any) -> Any:
    """Return the plugin: it knows no secret, and passes what pytest says to the hook."""
    plugin: Any = types.ModuleType("pytest_results")
    names = _Names(request["tree"])
    for function in (*_collecting(request, names, kept), *_reporting(names)):
        wraps = function.__name__ in WRAPPERS
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


def _collecting(request: Dict[str, Any], names: _Names, kept: Any) -> Tuple[Any, ...]:
    """Return the hooks that put canaries among the tests, and note what is found."""
    tree, canaries, skipped = request["tree"], dict(request["canaries"]), frozenset(request["skipped"])
    places, join, dumps = list(request["at"]), os.path.join, json.dumps
    words = list(request["words"])
    own = {os.path.normpath(join(tree, name)) for name in canaries}

    def pytest_load_initial_conftests(early_config: Any) -> Any:
        root = getattr(early_config, "rootpath", None) or early_config.rootdir  # before pytest 6.1
        names.root = str(root).rstrip("/").split("/")
        for name, text in canaries.items():
            with open(join(tree, name), "x", encoding="utf-8") as file:  # noqa: PTH123
                file.write(_canary(text, early_config.getini("python_functions")))
        tell(EVENT, "guard", early_config, tree, kept)
        outcome = yield
        if outcome.excinfo is not None:
            tell(EVENT, "v", repr(_raised(outcome.excinfo[1]))[:MESSAGE])

    def pytest_addoption(parser: Any) -> None:
        for name in LINTERS:  # an environment without them may have settings that name them
            if importlib.util.find_spec(name) is None:
                for flag in FLAGS.get(name, ("--" + name[7:],)):
                    parser.addoption(flag, action="store_true", help="does nothing, as it is not installed")

    def pytest_collection_modifyitems(items: List[Any]) -> Any:
        ours = [
            item for item in items if str(item.fspath) in own and any(word in item.name for word in words)
        ]
        items[:] = [item for item in items if str(item.fspath) not in own and not _is_linted(item)]
        yield
        left = [item for item in items if names(item.nodeid) not in skipped]
        items[:] = _mixed(left, ours, places)

    def pytest_collection_finish(session: Any) -> None:
        tell(EVENT, "tests", dumps([(item.nodeid, _code_id(item)) for item in session.items]))
        tell(EVENT, "look", session.items)
        tell(EVENT, "n", len(session.items))

    def pytest_collectreport(report: Any) -> None:
        if report.failed:
            tell(EVENT, "c", names(report.nodeid), _message(report))

    return (pytest_addoption, pytest_load_initial_conftests, pytest_collection_modifyitems,
            pytest_collection_finish, pytest_collectreport)  # fmt: skip


def _reporting(names: _Names) -> Tuple[Any, ...]:
    """Return the hooks that report what comes of each test."""

    def pytest_runtest_logstart(nodeid: str) -> None:
        tell(EVENT, "s", names(nodeid))

    def pytest_runtest_logreport(report: Any) -> None:
        outcome = str(report.outcome)
        if outcome in ("passed", "skipped") and hasattr(report, "wasxfail"):
            outcome = "skipped"
        if hasattr(report, "context") and outcome != "failed":  # a part of a test; the whole is reported too
            return
        message = (
            _message(report) if outcome == "failed" else _skipped(report) if outcome == "skipped" else ""
        )
        seconds = float(report.duration or 0.0)
        tell(EVENT, "r", names(report.nodeid), str(report.when), outcome, seconds, message)

    def pytest_runtest_call(item: Any) -> Any:
        tell(EVENT, "look", item)
        yield
        tell(EVENT, "look", item)

    def pytest_runtest_makereport(item: Any, call: Any) -> None:
        if call.excinfo is not None:
            _cut(call.excinfo, _code(item))

    def pytest_runtest_teardown(item: Any) -> None:
        tell(EVENT, "torn", item.nodeid, _code_id(item), "runtest" in vars(item))

    return (pytest_runtest_logstart, pytest_runtest_logreport, pytest_runtest_call,
            pytest_runtest_makereport, pytest_runtest_teardown)  # fmt: skip


def _code(item: Any) -> Any:
    """Return the code of a test; None where it has none, such as an example in a text."""
    called = getattr(item, "obj", None)
    return getattr(getattr(called, "__func__", called), "__code__", None)


def _code_id(item: Any) -> int:
    code = _code(item)
    return 0 if code is None else id(code)


def _cut(excinfo: Any, code: Any) -> None:
    """Drop frames below a test, all but the last: pytest drops them too, but looks for the file of each."""
    entry, below = excinfo.tb, 0
    while entry is not None and entry.tb_frame.f_code is not code:
        entry, below = entry.tb_next, below + 1
    if entry is not None and below > 1:
        excinfo.traceback = excinfo.traceback[below - 1 :]


def _is_linted(item: Any) -> bool:
    """Return whether an item is a linter's look at a file, which is no test."""
    return str(type(item).__module__).partition(".")[0] in LINTERS


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


def _raised(error: BaseException) -> BaseException:
    """Return what a conftest raised, of the error that pytest makes of it: before pytest 8 it is a triple."""
    told = getattr(error, "excinfo", None)
    inner = told[1] if type(told) is tuple and len(told) == 3 else getattr(error, "cause", None)
    return inner if isinstance(inner, BaseException) else error


def _skipped(report: Any) -> str:
    """Return why a test was skipped."""
    told = report.longrepr
    said = told[2] if type(told) is tuple and len(told) == 3 else getattr(report, "wasxfail", "")
    return str(said)[:MESSAGE].encode("utf-8", "replace").decode()


def _message(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(getattr(crash, "message", "") or report.longrepr or "").strip()
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    return (lines[0] if crash is not None else lines[-1])[:MESSAGE].encode("utf-8", "replace").decode()
