"""The command ``tfgrpo check``: read scenario files as a run does, without an agent."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import ini_in, project_of
from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.files import USUAL_SUFFIXES, scenario_name
from pytest_tfgrpo.core.python.import_path import importable
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.core.texts.text import few, plural
from pytest_tfgrpo.scoring.checks.protocol import CheckContext, CheckKind
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.collection import collect
from pytest_tfgrpo.suite.scenario_paths import scenario_paths

UNKNOWN = "unknown check kind"


def check(arguments: Arguments) -> Iterator[str]:
    """Read scenario files as a run does, without an agent, and say all that is wrong."""
    root = project_of(arguments).root
    places = [Path.cwd() / place for place in arguments.places] or [root]
    files = [file for place in places for file in (scenario_paths(place) if place.is_dir() else (place,))]
    if not files:
        raise ScenarioError(_none_in(places))
    scenarios = suite_of(root, files, kinds_with(arguments.kind))
    splits = Counter(scenario.split for scenario in scenarios)
    listed = ", ".join(f"{splits[name]} {name}" for name in ("train", "dev", "eval") if splits[name])
    yield f"ok  {plural(len(scenarios), 'scenario')} in {plural(len(files), 'file')}: {listed}"


def kinds_with(supplied: Iterable[str]) -> Mapping[str, CheckKind]:
    """Return the kinds of checks there are, with those that a conftest.py supplies under these names."""
    return KINDS | {name: _supplied(name) for name in supplied}


def suite_of(root: Path, files: Sequence[Path], kinds: Mapping[str, CheckKind]) -> Sequence[Scenario]:
    """Return the scenarios of files, whose checks are of these kinds; raises ScenarioError."""
    with ExitStack() as stack:
        for folder in reversed([root, *_python_path(root)]):
            stack.enter_context(importable(folder))
        try:
            return collect(root, files, kinds)
        except ScenarioError as error:
            hint = "\n--kind NAME passes over a kind that your conftest.py supplies"
            raise ScenarioError(f"{error}{hint if UNKNOWN in str(error) else ''}") from error


def _none_in(places: Sequence[Path]) -> str:
    """Return which files of folders without scenarios may hold some under another name."""
    others = [path for place in places for path in sorted(place.iterdir()) if path.is_file()]
    named = [f"rename {path.name} to {name}" for path in others if (name := scenario_name(path))]
    hint = f"; {few(named)} if it holds scenarios" if named else ""
    where = ", ".join(map(str, places))
    return f"no scenario was found in {where} (looked for *{', *'.join(USUAL_SUFFIXES)}){hint}"


def _python_path(root: Path) -> list[Path]:
    """Return the folders that pytest's ini key ``pythonpath`` adds."""
    ini = ini_in(root)
    value = ini.keys.get("pythonpath", []) if ini is not None else []
    return [root / name for name in (shlex.split(value) if isinstance(value, str) else value)]


def _supplied(name: str) -> CheckKind:
    """Return a kind that takes any parameters: who supplies it knows which are right."""
    return CheckKind(name=name, params={"type": "object"}, evaluate=_never)


def _never(_check: Check, _context: CheckContext) -> NoReturn:
    raise NotImplementedError("no agent runs, so nothing is checked")
