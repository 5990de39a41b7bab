"""Whether pytest, its plugins and the way to a report are what they were before the workspace was imported.

A part of the script `pytest_reporter`, which imports it by its name alone: for any Python from 3.8 on.
"""

# ruff: noqa: UP006, UP035 - Python 3.8

from __future__ import annotations

import gc
import os
import re
import sys
import types
from operator import is_ as same
from typing import Any, Callable, Dict, List, Set, Tuple

DECIDING = (
    "pytest_runtest_protocol", "pytest_runtest_makereport", "pytest_pyfunc_call", "pytest_runtest_call",
    "pytest_runtest_logreport",
)  # fmt: skip
"""Hooks that decide about outcomes."""
TEST_PLACE = re.compile(r"(?:^|/)(?:tests?/|conftest\.py$|test_[^/]*\.py$|[^/]*_tests?\.py$)", re.IGNORECASE)
VITAL = {"runtestprotocol", "call_and_report", "call_runtest_hook", "pytest_runtest_makereport", "runtest",
         "pytest_runtest_call", "from_call", "from_item_and_call", "pytest_pyfunc_call", "_multicall",
         "_hookexec"}  # fmt: skip
"""What is looked at with each test; the rest of pytest and unittest is at the end."""


def open_guard(config: Any, tree: str, bottom: Any) -> Tuple[Callable[[Any], str], Callable[[Any], bool]]:
    """Return the function that says what was changed, ``-`` for a report not from pytest, else nothing.

    It is asked with the frame of a report, or with None at the end. The second says whether something is a
    function of pytest, pluggy or unittest: a change of its code is seen when it is made.
    """
    before = _snapshot()
    vital = [(where, name, was) for where, name, was, _, vital in before if vital]
    known = {id(one) for one in config.pluginmanager.get_plugins()}
    hooks, loop = config.hook, sys.modules["_pytest.main"].pytest_runtestloop.__code__
    speaker = config.pluginmanager.get_plugin("pytest_results").pytest_runtest_logreport.__code__
    trusted = _trusted(config) - {id(code) for code in _codes_of(sys.modules["_pytest.runner"].CallInfo)}
    deciding: Dict[str, List[Any]] = {name: [] for name in DECIDING}
    own = {id(vars(module)) for module in _of_runner()}
    stand_ins = _stand_ins(config)
    looping: Any = None  # the frame of pytest's loop over the tests, once all below it is known

    def stands_in(name: str, now: Any) -> bool:
        plugins = stand_ins.get(name, ()) if type(now) is types.MethodType else ()
        return any(now.__self__ is one and now.__func__ is was for one, was in plugins)

    def guard(frame: Any) -> str:
        if frame is None:
            for where, name, was, code, _ in before:
                now = where.get(name)
                if now is not was or (code is not None and getattr(now, "__code__", None) is not code):
                    return f"{name} of pytest was replaced"
        for where, name, was in vital:
            if where.get(name) is not was and not stands_in(name, where.get(name)):
                return f"{name} of pytest was replaced"
        for name, last in deciding.items():
            impls = getattr(hooks, name).get_hookimpls()
            parts = [part for one in impls for part in (one, one.plugin, one.function)]
            if len(parts) == len(last) and all(map(same, parts, last)):
                continue
            for one in impls:
                if id(one.plugin) not in known and _foreign(one.function, tree):
                    return f"a plugin of the workspace decides in {name}"
            deciding[name] = parts
        return "" if frame is None else stack(frame)

    def stack(frame: Any) -> str:
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

    def is_of_runner(function: Any) -> bool:
        return type(function) is types.FunctionType and id(function.__globals__) in own

    gc.collect()
    gc.freeze()  # what is frozen is in no list of objects
    gc.unfreeze = lambda: None
    return guard, is_of_runner


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
