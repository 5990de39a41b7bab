"""The scenarios of a suite as their files have them, each with its folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.schema import pointer
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.documents.document import Problem, Refused
from pytest_tfgrpo.suite.scenario import Invalid, Loader
from pytest_tfgrpo.suite.scenario_files import Candidate, candidates_in, read_scenarios_text
from pytest_tfgrpo.suite.scenario_paths import scenario_paths


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenScenario:
    """A valid scenario, and what its file says."""

    scenario: Scenario
    data: Mapping[str, Json]
    """Its fields as written, with the defaults of its file."""
    folder: Path
    """That of its file."""


def written_scenarios(suite: Path) -> Iterator[WrittenScenario | tuple[str, str]]:
    """Yield the scenarios of a file or folder; of one that is not valid, where it stands and why.

    Raises ScenarioError where there is no such file or folder.
    """
    if not suite.exists():
        raise ScenarioError(f"there is no file or folder {str(suite)!r}")
    for path in scenario_paths(suite) if suite.is_dir() else [suite]:
        try:
            for one in candidates_in(read_scenarios_text(path), path):
                yield _read(one, path)
        except Refused as error:
            yield f"{path}:{error.problem.line}", str(error)
        except OSError as error:
            yield str(path), str(error.strerror)


def _read(one: Candidate | Problem, path: Path) -> WrittenScenario | tuple[str, str]:
    if isinstance(one, Problem):
        return f"{path}:{one.line}", one.message
    where = f"{path}:{one.line}"
    data = {**one.defaults, **one.data} if one.defaults and isinstance(one.data, dict) else one.data
    try:
        scenario = Loader(path.parent, KINDS).build(data, source=where)
    except Invalid as error:
        problem = one.locate(error.violations[0])
        return f"{path}:{problem.line}", f"#{pointer(problem.path)}: {problem.message}"
    return WrittenScenario(scenario=scenario, data=data, folder=path.parent)
