"""JUnit XML of runners of many languages: one outcome a test, read from a file that nobody trusts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from xml.parsers import expat

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.scoring.runners.names import case_id, first_line
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome

MAX_BYTES = 64_000_000
MAX_DEPTH = 64
MAX_CASES = 200_000
MAX_MESSAGE = 4_000
"""Characters of a failure that are kept while it is read; the report has no more than its first line."""

_BAD = frozenset({"failure", "error", "rerunFailure", "rerunError"})
_SUITES = frozenset({"testsuite", "testsuites"})
_DRIVE = re.compile(r"^[A-Za-z]:[/\\]")


class JunitProblem(ValueError):
    """The file is not JUnit XML that can be used; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JunitCase:
    """One test of a report."""

    id: str
    """Its file, then its names; its class or suite, where the report names no file."""
    name: str
    """As the report has it."""
    outcome: CaseOutcome
    seconds: float
    message: str
    """The first line of why it failed; "" if it did not."""


@dataclass(slots=True)
class _Open:
    """The test that is being read."""

    attributes: Mapping[str, str]
    suites: tuple[Mapping[str, str], ...]
    outcome: CaseOutcome = CaseOutcome.PASSED
    message: str = ""
    text: str = ""


class _Reader:
    """Takes the events of the parser; refuses what a report of tests does not need."""

    def __init__(self, tree: Path, max_cases: int) -> None:
        self.cases: list[JunitCase] = []
        self._tree = tree
        self._max_cases = max_cases
        self._stack: list[str] = []
        self._suites: list[Mapping[str, str]] = []
        self._case: _Open | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition("}")[2]
        self._stack.append(tag)
        if len(self._stack) > MAX_DEPTH:
            raise JunitProblem(f"it is nested more than {MAX_DEPTH} deep")
        if len(self._stack) == 1 and tag not in _SUITES:
            raise JunitProblem(f"its root is {tag[:80]!r}, not 'testsuites' or 'testsuite'")
        case = self._case
        if tag == "testcase":
            if case is not None:
                raise JunitProblem("a 'testcase' lies within another")
            self._case = _Open(attributes, tuple(self._suites))
        elif tag in _SUITES:
            self._suites.append(attributes)
        elif case is not None and tag in _BAD and self._stack[-2] == "testcase":
            case.outcome = CaseOutcome.FAILED
            case.message = case.message or attributes.get("message", "")[:MAX_MESSAGE]
        elif case is not None and tag == "skipped" and case.outcome is CaseOutcome.PASSED:
            case.outcome = CaseOutcome.SKIPPED

    def text(self, data: str) -> None:
        case = self._case
        if case is not None and self._stack[-1] in _BAD and len(case.text) < MAX_MESSAGE:
            case.text += data[: MAX_MESSAGE - len(case.text)]

    def end(self, tag: str) -> None:
        tag = self._stack.pop()
        if tag in _SUITES:
            self._suites.pop()
        elif tag == "testcase" and self._case is not None:
            if len(self.cases) == self._max_cases:
                raise JunitProblem(f"it has more than {self._max_cases} tests")
            self.cases.append(_case(self._case, self._tree))
            self._case = None


def read_junit(data: bytes, tree: Path, *, max_cases: int = MAX_CASES) -> tuple[JunitCase, ...]:
    """Return the tests of a report on the project in `tree`; raises JunitProblem.

    Entities, document types with declarations and other files are refused: nothing is expanded or fetched.
    """
    if len(data) > MAX_BYTES:
        raise JunitProblem(f"it has {len(data)} bytes, more than {MAX_BYTES}")
    reader = _Reader(tree, max_cases)
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse("a document type")
    parser.EntityDeclHandler = _refuse("an entity")
    parser.ExternalEntityRefHandler = _refuse("an entity of another file")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise JunitProblem(f"it is not XML: {error}") from None
    except (LookupError, UnicodeError, ValueError) as error:  # an encoding that Python has not, or refuses
        if isinstance(error, JunitProblem):
            raise
        raise JunitProblem(f"it cannot be decoded: {error}") from None
    return tuple(reader.cases)


def _refuse(what: str) -> Callable[..., int]:
    """Return a handler that ends the reading."""

    def handler(*_args: object) -> int:
        raise JunitProblem(f"it declares {what}, which no report needs")

    return handler


def _case(case: _Open, tree: Path) -> JunitCase:
    name = case.attributes.get("name", "")
    message = case.message if case.message.strip() else case.text
    failed = case.outcome is CaseOutcome.FAILED
    return JunitCase(
        id=case_id(*_place(case, tree), name),
        name=name,
        outcome=case.outcome,
        seconds=_seconds(case.attributes.get("time", "")),
        message=first_line(message) if failed else "",
    )


def _place(case: _Open, tree: Path) -> Iterator[str]:
    """Yield the file and the class of a test, as far as the report names them; its suites, if neither."""
    file = next(
        (
            at[key]
            for at in (case.attributes, *reversed(case.suites))
            for key in ("file", "filepath")
            if at.get(key)
        ),
        "",
    )
    group = case.attributes.get("classname", "")
    if file:
        yield _relative(file, tree)
    if group and group != case.attributes.get("name"):
        yield group
    elif not file:
        yield from (name for at in case.suites if (name := at.get("name")))


def _relative(file: str, tree: Path) -> str:
    """Return the path of a file relative to the tree, with forward slashes; as it is if it lies elsewhere."""
    path = PurePosixPath(file.replace("\\", "/") if "/" not in file or _DRIVE.match(file) else file)
    for root in (tree, tree.resolve()):
        if path.is_relative_to(root):
            return str(path.relative_to(root))
    return str(path)


def _seconds(text: str) -> float:
    try:
        seconds = float(text.replace(",", ""))
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds >= 0 else 0.0
