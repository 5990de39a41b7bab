"""Scenario files, and what must hold over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.files import SCENARIO_SUFFIXES, USUAL_SUFFIXES
from pytest_tfgrpo.core.scenarios import Scenario, task_key
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.wire.schema import LIMIT, Violation, pointer
from pytest_tfgrpo.core.wire.schema import Path as Place
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.suite.documents.csv_text import parse_csv
from pytest_tfgrpo.suite.documents.document import Document, Problem, Refused, read_lines, read_text
from pytest_tfgrpo.suite.documents.json_text import parse_json, parse_json_line
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml
from pytest_tfgrpo.suite.ground_truth import with_checks
from pytest_tfgrpo.suite.scenario import Invalid, Loader

FILE_MAX_BYTES = 256_000_000
"""Of a file that is read whole: any but JSON lines."""
LINE_MAX_BYTES = 64_000_000
"""Of a line of JSON lines, which are read one by one."""
LINES = "jsonl"
"""End of the name of a file that has a scenario on each line."""
NOTHING: Mapping[str, Json] = {}


class Candidate(NamedTuple):
    """A value in a file that should be a scenario."""

    data: Json
    document: Document
    at: Place = ()
    """Where it stands in its document."""
    defaults: Mapping[str, Json] = NOTHING
    """Fields that it takes from the document where it has none."""

    @property
    def line(self) -> int:
        """Line on which it starts."""
        return self.document.line(self.at)

    def locate(self, violation: Violation) -> Problem:
        """Return the violation as a problem of the file."""
        path, message = violation
        inherited = path and path[0] in self.defaults and path[0] not in self.data
        place = ("defaults", *path) if inherited else (*self.at, *path)
        return Problem(self.document.line(place), place, message)


FoundScenario = Iterator[Candidate | Problem]


def load_scenarios(path: Path, *, root: Path, kinds: Mapping[str, CheckKind]) -> tuple[Scenario, ...]:
    """Return the scenarios of the file `path`, in its order; sources are relative to `root`.

    Raises ScenarioError with a line for each problem: file, line, JSON pointer and what is wrong.
    """
    return _loaded(candidates_of(path), path, root, kinds)


def scenarios_in(
    text: str, path: Path, *, root: Path, kinds: Mapping[str, CheckKind]
) -> tuple[Scenario, ...]:
    """Return the scenarios that the file `path` has with this `text`, as `load_scenarios` does."""
    return _loaded(candidates_in(text, path), path, root, kinds)


def _loaded(
    candidates: FoundScenario, path: Path, root: Path, kinds: Mapping[str, CheckKind]
) -> tuple[Scenario, ...]:
    where = _where(path, root)
    loader = Loader(path.parent, kinds)
    scenarios: dict[str, Scenario] = {}
    problems: dict[Problem, None] = {}  # a bad default is reported once, not once for each scenario
    try:
        for found in candidates:
            if len(problems) >= LIMIT:
                break
            if isinstance(found, Problem):
                problems[found] = None
                continue
            try:
                _add(scenarios, found, loader, where)
            except Invalid as error:
                problems.update(dict.fromkeys(map(found.locate, error.violations)))
        if not scenarios and not problems:
            raise Refused(1, "holds no scenario")
    except Refused as error:
        problems[error.problem] = None
    if problems:
        raise ScenarioError(_message(where, list(problems)))
    return tuple(scenarios.values())


def _add(scenarios: dict[str, Scenario], found: Candidate, loader: Loader, where: str) -> None:
    data = {**found.defaults, **found.data} if found.defaults and isinstance(found.data, dict) else found.data
    scenario = loader.build(data, source=f"{where}:{found.line}")
    if scenario.id in scenarios:
        first = scenarios[scenario.id].source
        raise Invalid([Violation(("id",), f"duplicate id {scenario.id!r}; first at {first}")])
    scenarios[scenario.id] = scenario


def _message(where: str, problems: list[Problem]) -> str:
    """Return a line for each problem; one that many scenarios share is said once, with the other lines."""
    alike: dict[tuple[str, str], list[Problem]] = {}
    for one in problems[:LIMIT]:
        key = "".join(f"/{part}" for part in one.path if isinstance(part, str))
        alike.setdefault((key, one.message), []).append(one)
    lines = []
    for first, *others in alike.values():
        lines.append(f"{where}:{first.line}: #{pointer(first.path)}: {first.message}")
        at = list(dict.fromkeys(str(other.line) for other in others if other.line != first.line))
        if at:
            lines.append(f"{where}: the same on line{'s' if len(at) > 1 else ''} {', '.join(at)}")
    more = [f"{where}: there may be more; fix these first"] if len(problems) >= LIMIT else []
    return "\n".join([*lines, *more])


def candidates_in(text: str, path: Path) -> FoundScenario:
    """Yield the scenarios of a file's text as they are written, or what is wrong; raises Refused."""
    suffix = _suffix(path)
    yield from READERS[suffix.rpartition(".")[2]](text, path.name.removesuffix(suffix))


def candidates_of(path: Path) -> FoundScenario:
    """Yield the same of a file, of JSON lines one by one; raises Refused."""
    if _suffix(path).endswith(LINES):
        yield from _json_lines(read_lines(path, LINE_MAX_BYTES))
    else:
        yield from candidates_in(read_text(path, FILE_MAX_BYTES), path)


def read_scenarios_text(path: Path) -> str:
    """Return the text of a scenario file, of any size if it has JSON lines; raises Refused and OSError."""
    return read_text(path, path.stat().st_size if path.name.endswith(LINES) else FILE_MAX_BYTES)


def _suffix(path: Path) -> str:
    suffix = next((suffix for suffix in SCENARIO_SUFFIXES if path.name.endswith(suffix)), "")
    if not suffix:
        raise Refused(1, f"the name of a scenario file ends in one of {', '.join(USUAL_SUFFIXES)}")
    return suffix


def _where(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _one_document(document: Document) -> FoundScenario:
    """Yield the scenarios of a document: one, a list, or defaults with scenarios."""
    value = document.value
    if isinstance(value, list):
        yield from _listed(document, value, ())
    elif isinstance(value, dict) and ("scenarios" in value or "defaults" in value):
        yield from _with_defaults(document, value)
    elif value is not None:
        yield Candidate(with_checks(value), document)


def _listed(
    document: Document, items: list[Json], at: Place, defaults: Mapping[str, Json] = NOTHING
) -> FoundScenario:
    for i, item in enumerate(items):
        yield Candidate(with_checks(item), document, (*at, i), defaults)


def _with_defaults(document: Document, value: Mapping[str, Json]) -> FoundScenario:
    def problem(place: Place, message: str) -> Problem:
        return Problem(document.line(place), place, message)

    keys = ("defaults", "scenarios")
    for key in value:
        if key not in keys:
            yield problem((key,), f"unknown key {short(key)}{nearest(key, keys)}")
    defaults, scenarios = value.get("defaults", {}), value.get("scenarios")
    if not isinstance(defaults, dict):
        yield problem(("defaults",), f"defaults must be an object, not {short(defaults)}")
    elif "id" in defaults:
        yield problem(("defaults", "id"), "an id cannot be a default")
    elif not isinstance(scenarios, list):
        yield problem(("scenarios",), f"scenarios must be a list, not {short(scenarios)}")
    else:
        yield from _listed(document, scenarios, ("scenarios",), with_checks(defaults))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    number, end = 0, -1
    while end < len(text):  # not splitlines(): JSON may hold other line ends, and all lines take much room
        start, number = end + 1, number + 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield number, text[start:end]


def _json_lines(lines: Iterable[tuple[int, str]]) -> FoundScenario:
    for number, line in lines:
        if line and not line.isspace():
            try:
                yield Candidate(with_checks(parse_json_line(line, number)), Document(None, {(): number}))
            except Refused as error:
                yield error.problem


def _rows(text: str, stem: str) -> FoundScenario:
    for row in parse_csv(text, stem):
        yield row if isinstance(row, Problem) else Candidate(row[1], Document(None, {(): row[0]}))


READERS: Mapping[str, Callable[[str, str], FoundScenario]] = {
    "yaml": lambda text, _stem: _one_document(parse_yaml(text)),
    "yml": lambda text, _stem: _one_document(parse_yaml(text)),
    "json": lambda text, _stem: _one_document(parse_json(text)),
    LINES: lambda text, _stem: _json_lines(_lines(text)),
    "csv": _rows,
}


class Suite:
    """Scenarios taken together: ids are unique, and a task is in one split only."""

    def __init__(self) -> None:
        self.scenarios: dict[str, Scenario] = {}
        """All scenarios by id, in the order they were added."""
        self._tasks: dict[str, Scenario] = {}

    def add(self, scenario: Scenario) -> str | None:
        """Take a scenario; returns what is wrong with it beside those before it, or None."""
        known = self.scenarios.setdefault(scenario.id, scenario)
        if known.source != scenario.source:
            return f"{scenario.source}: the id {scenario.id!r} is taken by {known.source}; ids must be unique"
        twin = self._tasks.setdefault(task_key(scenario), scenario)
        if twin.split != scenario.split:
            return (
                f"{scenario.source}: scenario {scenario.id!r} ({scenario.split}) has the prompt, input and "
                f"attachments of {twin.id!r} ({twin.split}, {twin.source}); set the same split for both"
            )
        return None
