"""Whether pytest, its plugins and the way to a report are what they were before the workspace was imported.

A part of the script `pytest_reporter`, loaded by `pytest_start`: for any Python from 3.8 on.
"""

# ruff: noqa: UP006, UP035 - Python 3.8

from __future__ import annotations

import gc
import os
import re
import sys
import types
from operator import is_ as same
from operator import itemgetter
from typing import Any, Callable, Dict, Iterable, Iterator, List, Set, Tuple

DECIDING = (
    "pytest_runtest_protocol", "pytest_runtest_makereport", "pytest_pyfunc_call", "pytest_runtest_call",
    "pytest_runtest_logreport",
)  # fmt: skip
"""Hooks that decide about outcomes."""
NEEDED = ("runner", "python", "skipping", "unittest", "pytest_results")
"""Plugins that must go on deciding."""
TEST_PLACE = re.compile(r"(?:^|/)(?:tests?/|conftest\.py$|test_[^/]*\.py$|[^/]*_tests?\.py$)", re.IGNORECASE)
VITAL = {"runtestprotocol", "call_and_report", "call_runtest_hook", "pytest_runtest_makereport", "runtest",
         "pytest_runtest_call", "from_call", "from_item_and_call", "pytest_pyfunc_call", "_multicall",
         "_hookexec"}  # fmt: skip
"""What is looked at with each test; the rest of pytest and unittest is at the end."""
LATE = ("_getini_unknown_type",)
"""What pytest itself replaces after the guard is open, and puts back before the end."""
PACKAGES = ("site-packages" + os.sep, "dist-packages" + os.sep)
PLAIN = frozenset((str, bytes, int, float, bool, dict, list, tuple, set, frozenset, types.ModuleType))
"""Types of what holds no code of its own."""
TRACES = re.compile(rb"settrace|setprofile|monitoring|ctypes")
_compile = compile


def open_guard(
    returns: Any, config: Any, tree: str, bottom: Any, kept: Any
) -> Tuple[Callable[[Any], str], Callable[[Any], bool], Callable[[Any, Any], str], Callable[[str], bool]]:
    """Return the function that says what was changed, ``-`` for a report not from pytest, else nothing.

    It is asked with the frame of a report, or with None at the end. The second says whether something is a
    function of pytest, pluggy or unittest, or a test: a change of its code is seen when it is made. The third
    is shown all tests that were found, and each before and after its call; the fourth says which it knows.
    `returns` is of the script beside this one.
    """
    trusted = _trusted(config)
    replaced, decided = _replaced(config, kept), _decided(config, tree)
    spoken = _spoken(config, bottom, trusted)
    own = {id(vars(module)) for module in _of_runner()}
    kept.installed.keep_rewritten(config, kept.rewritten)

    def guard(frame: Any) -> str:
        fault = replaced(frame) or decided()
        if fault:
            return fault
        return str(kept.fault_of_modules()) if frame is None else spoken(frame)

    def is_of_runner(function: Any) -> bool:
        if type(function) is not types.FunctionType:
            return False
        return id(function.__globals__) in own or id(function) in functions

    def look(frame: Any, found: Any) -> str:
        """Look at a test that is about to be called or was, or at a list of all that were found."""
        if frame.f_code not in lookers:
            return "a message is not from the reporter"
        for item in found if type(found) is list else (found,):
            fault = seen.fault(item, first=type(found) is list)
            if fault:
                return fault
        if type(found) is not list:
            returns.begin(found)
            return ""
        returns.expect(seen.functions, _came(trusted, bottom, kept))
        functions.update(map(id, seen.functions.values()))
        return str(kept.fault_of_modules())

    seen, functions = SeenTests(kept, _types(config)), set()  # type: Tuple[SeenTests, Set[int]]
    plugin = config.pluginmanager.get_plugin("pytest_results")
    lookers = {plugin.pytest_collection_finish.__code__, plugin.pytest_runtest_call.__code__}
    gc.freeze()  # what is frozen is in no list of objects
    gc.unfreeze = lambda: None
    gc.enable()
    return guard, is_of_runner, look, seen.knows


def _replaced(config: Any, kept: Any) -> Callable[[Any], str]:
    """Return the function that says which part of pytest is no longer what it is now.

    With a frame it looks at all but what pytest itself replaces; with None, at that and at codes too.
    """
    before = _snapshot()
    held = [row for row in before if row[1] not in LATE]
    spaces: Dict[int, Tuple[Any, List[str], List[Any]]] = {}
    for where, name, was, _ in held:
        _, names, values = spaces.setdefault(id(where), (where, [], []))
        names.append(name)
        values.append(was)
    looked = [(itemgetter(*names, names[0]), where) for where, names, _ in spaces.values()]
    wanted = [value for _, _, values in spaces.values() for value in (*values, values[0])]
    stand_ins = _stand_ins(config)

    def stands_in(name: str, now: Any) -> bool:
        plugins = stand_ins.get(name, ()) if type(now) is types.MethodType else ()
        return any(now.__self__ is one and now.__func__ is was for one, was in plugins)

    def is_as_before() -> bool:
        live: List[Any] = []
        try:
            for get, where in looked:
                live += get(where)
        except KeyError:
            return False
        return all(map(same, live, wanted))

    def replaced(frame: Any) -> str:
        for where, name, was, code in before if frame is None else ():
            if code is not None and where.get(name) is was and was.__code__ is not code:
                return f"{name} of pytest was replaced"
        if frame is not None and is_as_before():
            return ""
        for where, name, was, _ in before if frame is None else held:
            now = where.get(name)
            if now is was or (frame is not None and kept.is_of_tests(now)):
                continue
            if frame is None or not stands_in(name, now):
                return f"{name} of pytest was replaced"
        return ""

    return replaced


def _decided(config: Any, tree: str) -> Callable[[], str]:
    """Return the function that says which hook about outcomes a plugin of the workspace has."""
    known = {id(one) for one in config.pluginmanager.get_plugins()}
    hooks = config.hook
    deciding: Dict[str, List[Any]] = {name: [None] for name in DECIDING}  # no part is None: each is looked at
    needed = {
        name: [one for one in getattr(hooks, name).get_hookimpls() if one.plugin_name in NEEDED]
        for name in DECIDING
    }

    def decided() -> str:
        for name, last in deciding.items():
            impls = getattr(hooks, name).get_hookimpls()
            parts = [part for one in impls for part in (one, one.plugin, one.function)]
            if len(parts) == len(last) and all(map(same, parts, last)):
                continue
            if any(all(one is not other for other in impls) for one in needed[name]):
                return f"pytest's own part of {name} was taken out"
            for one in impls:
                if id(one.plugin) not in known and _foreign(one.function, tree):
                    return f"a plugin of the workspace decides in {name}"
            deciding[name] = parts
        return ""

    return decided


def _came(trusted: Set[int], bottom: Any, kept: Any) -> Callable[[Any], bool]:
    """Return the function that says whether a frame is of pytest, and all below it too, or of no agent."""

    def came(frame: Any) -> bool:
        while frame is not None and frame.f_code is not bottom:
            code = frame.f_code
            if not (id(code) in trusted or kept.has(code) or kept.installed.is_genuine(code)):
                return False
            frame = frame.f_back
        return frame is not None

    return came


def _spoken(config: Any, bottom: Any, codes: Set[int]) -> Callable[[Any], str]:
    """Return the function that says ``-`` of a report's frame below which is other code than pytest's."""
    loop = sys.modules["_pytest.main"].pytest_runtestloop.__code__
    speaker = config.pluginmanager.get_plugin("pytest_results").pytest_runtest_logreport.__code__
    trusted = codes - {id(code) for code in _codes_of(sys.modules["_pytest.runner"].CallInfo)}
    looping: Any = None  # the frame of pytest's loop over the tests, once all below it is known

    def spoken(frame: Any) -> str:
        nonlocal looping
        if frame.f_code is not speaker:
            return "-"
        frame, found = frame.f_back, looping
        while frame is not None and frame is not looping:
            code = frame.f_code
            if code is bottom:
                break
            if id(code) not in trusted:
                return "-"
            if code is loop:
                found = frame
            frame = frame.f_back
        if frame is None:
            return "-"
        looping = found
        return ""

    return spoken


class Installed:
    """What belongs to the interpreter and its packages, which no agent wrote."""

    def __init__(self, tree: str, own: str) -> None:
        """`own` is the folder of the reporter."""
        self._tree = tree + "/"
        self._library = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120
        places = [sys.prefix, sys.base_prefix, sys.exec_prefix, "/usr/lib", "/usr/local/lib", *sys.path]
        raw = {os.path.abspath(place) for place in places if place and place != own}  # noqa: PTH100
        self._homes = tuple({place + os.sep for one in raw for place in (one, os.path.realpath(one))})
        self._codes: Dict[str, Set[Any]] = {}

    def has(self, path: str) -> bool:
        """Return whether a file is installed."""
        return path.startswith(self._homes) and not path.startswith(self._tree) and "/../" not in path

    def is_library(self, path: str) -> bool:
        """Return whether a file that is installed is of the standard library."""
        return path.startswith(self._library) and not any(name in path for name in PACKAGES)

    def keep_rewritten(self, config: Any, rewritten: Callable[[str], Any]) -> None:
        """Keep the codes of plugins' files that may trace, which pytest rewrites as it does tests.

        `rewritten` does so, before anything of the workspace is imported and could replace how.
        """
        hook = getattr(config.pluginmanager, "rewrite_hook", None)
        places = [place + os.sep for place in sys.path if self.has(place + os.sep)]
        for path in _files_of(getattr(hook, "_must_rewrite", ()), places):
            if _may_trace(path) and (code := rewritten(path)) is not None:
                self._codes[path] = _codes_in(path) | _codes_below(code)

    def is_genuine(self, code: Any) -> bool:
        """Return whether code is of the installed file that it names, as anybody can give it a name."""
        path = code.co_filename
        if not self.has(path):
            return False
        if path not in self._codes:
            self._codes[path] = _codes_in(path)
        return code in self._codes[path]


def watch(installed: Installed, kept: List[Any]) -> Callable[[str, Tuple[Any, ...], Any], str]:
    """Return the function that says what an audit event shows the code under test to use, "" for nothing.

    That is by any code but what is installed, and that of the KeptTests in `kept`: tracing, ctypes; or
    native, a module in machine code that is not the environment's.
    """

    frozen = [sys.modules[name] for name in ("_frozen_importlib", "_frozen_importlib_external")]
    importing = {
        id(code) for module in frozen for value in vars(module).values() for code in _codes_of(value)
    }

    def watched(event: str, values: Tuple[Any, ...], frame: Any) -> str:
        if event == "import":
            path = values[1]
            return "native" if type(path) is str and not installed.has(path) else ""
        while frame is not None:
            code = frame.f_code
            if id(code) in importing:
                return ""
            if not (installed.is_genuine(code) or any(one.has(code) for one in kept)):
                return "ctypes" if event[:7] == "ctypes." else "tracing"
            if not installed.is_library(code.co_filename):
                return ""
            frame = frame.f_back
        return ""

    return watched


def _files_of(names: Iterable[str], places: List[str]) -> Iterator[str]:
    """Yield the files that modules and packages may have in folders."""
    for found in [os.path.join(place, *name.split(".")) for name in names for place in places]:  # noqa: PTH118
        yield found + ".py"
        for folder, _, files in os.walk(found):
            yield from (os.path.join(folder, file) for file in files if file[-3:] == ".py")  # noqa: PTH118


def _may_trace(path: str) -> bool:
    """Return whether a file names what `watch` looks for."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return TRACES.search(file.read()) is not None
    except OSError:
        return False


def _codes_in(path: str) -> Set[Any]:
    """Return the codes in a file, none where it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return _codes_below(_compile(file.read(), path, "exec", dont_inherit=True))
    except (OSError, SyntaxError, ValueError):
        return set()


def _codes_below(code: Any) -> Set[Any]:
    left = [code]
    for one in left:
        left += [held for held in one.co_consts if type(held) is types.CodeType]
    return set(left)


def _foreign(function: Any, tree: str) -> bool:
    """Return whether code lies in the workspace, but not where its tests are."""
    function = getattr(function, "__func__", function)
    name = getattr(getattr(function, "__code__", None), "co_filename", "")
    path = os.path.realpath(name)
    if not path.startswith(os.path.realpath(tree) + os.sep):
        return not os.path.exists(path)  # noqa: PTH110 - made by exec, or a callable of another kind
    return not TEST_PLACE.search(os.path.relpath(path, os.path.realpath(tree)))


def _snapshot() -> List[Tuple[Any, str, Any, Any]]:
    """Return where each function of pytest and unittest is held, its name, itself and its code.

    Of the packages that tests import, it is whatever they offer.
    """
    found: List[Tuple[Any, str, Any, Any]] = []
    for package in ("pytest", "unittest"):
        names = vars(sys.modules[package])
        found += [(names, name, value, None) for name, value in list(names.items()) if name[:2] != "__"]
    for module in _of_runner():
        names = vars(module)
        for name, value in list(names.items()):
            if isinstance(value, types.FunctionType):
                found.append((names, name, value, value.__code__))
            elif isinstance(value, type) and str(value.__module__) == module.__name__:
                own = value.__dict__
                found.append((names, name, value, None))
                for part, held in list(own.items()):
                    if isinstance(held, (types.FunctionType, staticmethod, classmethod, property)):
                        found.append((own, part, held, getattr(held, "__code__", None)))
    return found


def _of_runner() -> List[Any]:
    names = [name for name in sys.modules if name.partition(".")[0] in ("_pytest", "pluggy")]
    return [sys.modules[name] for name in (*names, "unittest.case") if sys.modules[name] is not None]


class SeenTests:
    """The tests that were found, each with what it is called with."""

    def __init__(self, kept: Any, types_: Set[int]) -> None:
        """`types_` are the ids of the classes of tests that are known."""
        self._kept = kept
        self._types = types_
        self._found: Dict[str, Tuple[Any, ...]] = {}
        self._kinds: Dict[int, Any] = {}
        self._classes: Dict[Any, List[Any]] = {}
        self.functions: Dict[int, Any] = {}
        self._asserts = frozenset(vars(sys.modules["unittest.case"].TestCase)) - {"__module__", "__doc__"}
        self._parts = sorted(
            part for part in self._asserts if part.startswith(("assert", "fail", "run", "_call"))
        )

    def knows(self, nodeid: str) -> bool:
        """Return whether the function of a test is looked at around its call."""
        return nodeid in self._found

    def fault(self, item: Any, *, first: bool) -> str:
        """Return what is wrong with a test; `first`: it was just found."""
        if first:
            self._kinds[id(item)] = type(item)
        elif self._kinds.get(id(item)) is not type(item):
            return "the class of a test was replaced"
        if id(type(item)) not in self._types:  # of a class that the tests' own files may define
            return ""
        held = object.__getattribute__(item, "__dict__")
        nodeid, function = item.nodeid, held.get("_obj")
        if type(nodeid) is not str:
            return "the name of a test was replaced"
        if type(function) is types.MethodType:
            function = function.__func__
        if function is None and not first:  # unittest's tests are taken down in their call
            return ""
        now = (function, *_parts(function), *_parameters(held.get("callspec")))
        if not first:
            was = self._found.get(nodeid, ())
            if len(was) != len(now) or not all(map(same, was, now)):
                return "" if self._kept.is_of_conftest(function) else f"the test {nodeid!r} was replaced"
            if "runtest" in held:
                return f"the test {nodeid!r} was replaced"
            return self._fault_of_instance(held)
        self._found[nodeid] = now
        self.functions[id(item)] = function
        fault = self._kept.fault(nodeid, str(item.fspath), function)
        return "" if fault == "?" else str(fault)

    def _fault_of_instance(self, held: Any) -> str:
        """Return which assertion of unittest a test's own object or class has in place of the true one."""
        for name in ("_instance", "_testcase"):
            instance = held.get(name)
            kind = type(instance)
            if instance is None or type(kind) is not type or not issubclass(kind, _test_case()):
                continue
            own = object.__getattribute__(instance, "__dict__")
            for part in self._asserts.intersection(own):
                if part.startswith(("assert", "run", "_call")) or part == "fail":
                    return f"{part} of a test was replaced"
            spaces = [type.__dict__["__dict__"].__get__(one) for one in kind.__mro__]
            now = [space.get(part) for space in spaces for part in self._parts]
            if not all(map(same, self._classes.setdefault(kind, now), now)):
                return f"an assertion of {kind.__name__} was replaced"
        return ""


def _test_case() -> Any:
    return sys.modules["unittest.case"].TestCase


def _parts(function: Any) -> Tuple[Any, ...]:
    """Return what a function is made of."""
    if type(function) is not types.FunctionType:
        return ()
    return (function.__code__, function.__globals__, function.__defaults__, function.__kwdefaults__,
            function.__closure__)  # fmt: skip


def _parameters(spec: Any) -> Tuple[Any, ...]:
    """Return the values of a test's parameters."""
    if spec is None:
        return ()
    params = object.__getattribute__(spec, "__dict__").get("params") if hasattr(spec, "__dict__") else None
    if type(params) is not dict:
        return ()
    return tuple(params.values())


def _types(config: Any) -> Set[int]:
    """Return the ids of the classes of tests that pytest and its plugins have."""
    base = sys.modules["_pytest.python"].Function
    values = [value for module in _deciding(config) for value in list(vars(module).values())]
    return {id(value) for value in values if isinstance(value, type) and base in value.__mro__}


def _stand_ins(config: Any) -> Dict[str, List[Tuple[Any, Any]]]:
    """Return what has a method of a vital function's name, and puts it in its place for a test.

    It is a plugin of the environment or lies in the module of one, as does flaky's.
    """
    found: Dict[str, List[Tuple[Any, Any]]] = {name: [] for name in VITAL}
    for plugin in config.pluginmanager.get_plugins():
        held = list(vars(plugin).values()) if isinstance(plugin, types.ModuleType) else []
        for one in (plugin, *held):
            for name in VITAL.intersection(vars(type(one))):
                found[name].append((one, vars(type(one))[name]))
    return found


def _trusted(config: Any) -> Set[int]:
    """Return the codes through which a report goes: of pytest, pluggy, and the plugins that are loaded."""
    values = [value for module in _deciding(config) for value in list(vars(module).values())]
    called = {id(value): value for value in values if type(value) not in PLAIN}
    return {id(code) for value in called.values() for code in _codes_of(value)}


def _deciding(config: Any) -> List[Any]:
    """Return the modules of pytest, pluggy and the plugins that are loaded, each once."""
    modules = {id(module): module for module in _of_runner()}
    for plugin in config.pluginmanager.get_plugins():
        name = getattr(plugin, "__name__", None) or type(plugin).__module__
        if isinstance(name, str) and name in sys.modules:
            modules[id(sys.modules[name])] = sys.modules[name]
    return list(modules.values())


def _codes_of(value: Any) -> List[Any]:
    """Return the codes of a function or of all methods of a class, those within them too."""
    if isinstance(value, type):
        return [code for held in list(vars(value).values()) for code in _codes_of_function(held)]
    return _codes_of_function(value)


def _codes_of_function(value: Any) -> List[Any]:
    if type(value) is not types.FunctionType:
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
    found: List[Any] = [value] if isinstance(value, types.CodeType) else []
    while isinstance(value, types.FunctionType):
        found.append(value.__code__)
        value = getattr(value, "__wrapped__", None)
    for code in found:
        found += [one for one in code.co_consts if type(one) is types.CodeType]
    return found
