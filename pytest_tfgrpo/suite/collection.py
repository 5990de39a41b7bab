"""A suite collected without pytest: from folders, files, values and records to unique scenarios."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.files import SCENARIO_SUFFIXES, USUAL_SUFFIXES, read_plain
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.suite.records import checked
from pytest_tfgrpo.suite.scenario import build_scenario
from pytest_tfgrpo.suite.scenario_files import Suite, load_scenarios
from pytest_tfgrpo.suite.scenario_paths import SKIPPED, holds_runs, scenario_paths

Source: TypeAlias = str | Path | Scenario | Mapping[str, Json]
"""A scenario file or a folder of them, relative to the root; a scenario, as a record or as in a file."""


def collect(root: Path, sources: Iterable[Source], kinds: Mapping[str, CheckKind]) -> list[Scenario]:
    """Return the scenarios of `sources`, in order; the files of a folder come by name, as pytest has them.

    Raises ScenarioError with all that is wrong, also with an id or a task that comes twice.
    """
    suite, problems = Suite(), []
    for n, source in enumerate(sources):
        try:
            for scenario in _scenarios(root, source, n, kinds):
                problems += [problem] if (problem := suite.add(scenario)) is not None else []
        except ScenarioError as error:
            problems.append(str(error))
    if problems:
        raise ScenarioError("\n".join(problems))
    if not suite.scenarios:
        raise ScenarioError(f"no scenario was found in {root} (looked for *{', *'.join(USUAL_SUFFIXES)})")
    return list(suite.scenarios.values())


def uncollected(root: Path, places: Sequence[Path], ids: Iterable[str]) -> list[str]:
    """Return those of `ids` that a file below `root`, but in none of `places`, seems to hold by its text.

    A marked test function has an id that starts with the name of its module.
    """
    wanted, found = set(ids), set[str]()
    for at, folders, names in os.walk(root):
        here = Path(at)
        folders[:] = [f for f in folders if f not in SKIPPED and f[0] != "." and not holds_runs(here / f)]
        for path in (here / name for name in names):
            if any(path.is_relative_to(place) for place in places):
                continue
            if path.suffix == ".py":
                found |= {id_ for id_ in wanted if id_.startswith(f"{path.stem}.")}
            elif path.name.endswith(SCENARIO_SUFFIXES):
                try:
                    text, stem = read_plain(path).decode("utf-8", "replace"), path.name.partition(".")[0]
                except OSError:  # a pipe, or a file of somebody else
                    continue
                found |= {id_ for id_ in wanted if id_ in text or id_.rpartition("-")[0] == stem}
    return sorted(found)


def _scenarios(root: Path, source: Source, n: int, kinds: Mapping[str, CheckKind]) -> Iterator[Scenario]:
    if isinstance(source, Scenario):
        yield _checked(source, root, kinds)
    elif isinstance(source, Mapping):
        yield build_scenario(source, source=f"scenarios[{n}]", checker=None, folder=root, kinds=kinds)
    else:
        path = root / source
        if not path.exists():
            raise ScenarioError(f"there is no file or folder {str(path)!r}")
        for file in scenario_paths(path) if path.is_dir() else (path,):
            yield from load_scenarios(file, root=root, kinds=kinds)


def _checked(scenario: Scenario, root: Path, kinds: Mapping[str, CheckKind]) -> Scenario:
    """Return a record with its stamp; raises ScenarioError, also on a checker."""
    if scenario.checker is not None:
        raise ScenarioError(
            f"scenario {scenario.id!r} is checked by the test function {scenario.checker}, which only pytest "
            "can call; run it with pytest --tfgrpo, or add checks to it"
        )
    return checked(scenario, root, kinds)
