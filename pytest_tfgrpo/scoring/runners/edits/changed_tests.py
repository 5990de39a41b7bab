"""Two forms of hidden tests: in each, some expect something else, and these must fail there.

What would have credit runs in two trees at once. A test that is changed in one of them is as it was in the
other: same files, names and order, so that nothing but what is expected tells the two runs apart, and in
neither may all fail. It finds an answer that equals everything or keeps to what it met first, a value read
from its caller, an assertion that does nothing, a report that is not pytest's.
"""

from __future__ import annotations

import ast
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import islice

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import SPARSE
from pytest_tfgrpo.scoring.runners.edits.edit import Edit, edited, lines_of
from pytest_tfgrpo.scoring.runners.edits.edits import edits_of
from pytest_tfgrpo.scoring.runners.edits.test_functions import UNREADABLE, Function, bare, targets
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteRun

FAILED = (CaseOutcome.FAILED, CaseOutcome.HUNG)

_random = secrets.SystemRandom()


@dataclass(frozen=True, kw_only=True, slots=True)
class OtherLines:
    """Other text in the place of rows of a file, which count from 1."""

    row: int
    text: str
    """Without the end of its last row."""
    last: int = field(default=0, metadata=SPARSE)
    """The last of several rows."""

    @property
    def end(self) -> int:
        """The last row."""
        return max(self.row, self.last)


@dataclass(frozen=True, kw_only=True, slots=True)
class LineChange:
    """What makes tests of one function expect something else."""

    file: str
    lines: tuple[OtherLines, ...]
    fails: tuple[str, ...]
    """Ids of the tests that fail by it with a true answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedTests:
    """Files in which some tests expect something else."""

    files: Mapping[str, bytes]
    """Their contents, by name."""
    fails: frozenset[str]
    """The tests that must fail."""
    made: tuple[LineChange, ...] = ()
    """The changes in them."""

    def doubt(self, run: SuiteRun, passed: Collection[str]) -> str:
        """Return why a run of the files leaves no credit, nothing where it does.

        `passed` are the tests that passed as they were, in another run.
        """
        for id_ in sorted(self.fails.intersection(passed)):
            ends = self._ends(run.outcomes, id_)
            if CaseOutcome.PASSED in ends or ends.isdisjoint(FAILED):
                if run.problem is RunProblem.TIMEOUT:
                    return f"{run.detail} where tests expect something else"
                return f"tampered: {id_!r} does not fail where it expects something else"
        return ""

    def _ends(self, outcomes: Mapping[str, CaseOutcome], id_: str) -> set[CaseOutcome]:
        """Return how a test ended; where its id is gone with its parameters, those of its function."""
        if id_ in outcomes:
            return {outcomes[id_]}
        return {end for one, end in outcomes.items() if one not in self.fails and bare(one) == bare(id_)}


def two_forms(texts: Mapping[str, bytes], changes: Iterable[LineChange]) -> tuple[ChangedTests, ChangedTests]:
    """Return the two forms of tests, with changes that are drawn; `texts` are files by name.

    No test is changed in both. Where two can be, some are in each; else one form is the tests as they are.
    Raises ValueError where a change does not fit its file.
    """
    chosen = _apart(changes)
    cut = _random.randrange(1, len(chosen)) if len(chosen) > 1 else len(chosen)
    one, other = _random.sample((_form(texts, chosen[:cut]), _form(texts, chosen[cut:])), 2)
    return one, other


FEW = 3
"""Of fewer functions whose tests are changed, a guess is right too often for two forms."""
MORE = 2
"""Forms that are added then."""


def further_forms(
    texts: Mapping[str, bytes], changes: Sequence[LineChange], forms: Sequence[ChangedTests]
) -> list[ChangedTests]:
    """Return forms of changes that are in none of `forms`; none where these change many tests.

    A test may be changed in each of them, so that who knows of two forms that they differ does not know
    whether one is right. Raises ValueError where a change does not fit its file.
    """
    made = [change for form in forms for change in form.made]
    if len(made) >= FEW:
        return []
    left, found = [change for change in changes if change not in made], list[ChangedTests]()
    while left and len(found) < MORE:
        found.append(_form(texts, _apart(left)))
        left = [change for change in left if change not in found[-1].made]
    return found


def _apart(changes: Iterable[LineChange]) -> list[LineChange]:
    """Return changes that are drawn, none of a test of another one."""
    chosen, covered, every = list[LineChange](), set[str](), list(changes)
    for change in _random.sample(every, len(every)):
        if covered.isdisjoint(change.fails):
            chosen.append(change)
            covered.update(change.fails)
    return chosen


def _form(texts: Mapping[str, bytes], changes: Iterable[LineChange]) -> ChangedTests:
    """Return files with changes, of which none changes a row that another did."""
    lines: dict[str, list[OtherLines]] = {}
    taken: dict[str, list[tuple[int, int]]] = {}
    made = list[LineChange]()
    for change in changes:
        rows, own = taken.setdefault(change.file, []), [(one.row, one.end) for one in change.lines]
        if not any(first <= end and row <= last for row, end in own for first, last in rows):
            rows += own
            lines.setdefault(change.file, []).extend(change.lines)
            made.append(change)
    files = {file: with_lines(texts.get(file, b""), those) for file, those in lines.items()}
    fails = frozenset(id_ for change in made for id_ in change.fails)
    return ChangedTests(files=files, fails=fails, made=tuple(made))


def with_lines(data: bytes, changed: Iterable[OtherLines]) -> bytes:
    """Return a file with other lines; raises ValueError where it has no such rows."""
    rows = data.splitlines(keepends=True)
    for lines in sorted(changed, key=lambda lines: lines.row, reverse=True):
        if lines.end > len(rows):
            raise ValueError(f"there are {len(rows)} rows, no row {lines.end}")
        end = rows[lines.end - 1]
        rows[lines.row - 1 : lines.end] = [lines.text.encode() + end[len(end.rstrip(b"\r\n")) :]]
    return b"".join(rows)


def as_lines(data: bytes, edits: Iterable[Edit]) -> tuple[OtherLines, ...]:
    """Return edits of a file as the lines that they make of its rows."""
    rows, found = lines_of(data), list[OtherLines]()
    left = sorted(edits, key=lambda edit: edit.start)
    while left:
        first, last, here = left[0].start[0], left[0].end[0], list[Edit]()
        while left and left[0].start[0] <= last:
            here.append(left.pop(0))
            last = max(last, here[-1].end[0])
        text = edited(b"".join(rows[first : last + 1]), [edit.moved(-first) for edit in here])
        lines = text.decode().rstrip("\r\n")
        found.append(OtherLines(row=first + 1, text=lines, last=last + 1 if last > first else 0))
    return tuple(found)


def drawn_changes(texts: Mapping[str, bytes], ids: Iterable[str], fixed: Collection[str]) -> list[LineChange]:
    """Return changes of each function with one of the tests `fixed`, where its form alone says what fails.

    `ids` are all tests that are listed, those that a change makes fail among them.
    """
    found, of_fix = [], {*fixed}
    for target in targets(texts, ids):
        if len(target.functions) > 1 or of_fix.isdisjoint(target.ids):
            continue
        data, function = texts[target.file], target.functions[0]
        choices = edits_of(function, data)
        _random.shuffle(choices)
        whole = (edits for edits in choices if parses(data, edits, function))
        for edits in islice(whole, 1 + MORE):
            found.append(LineChange(file=target.file, lines=as_lines(data, edits), fails=target.ids))
    return found


def parses(data: bytes, edits: Iterable[Edit], function: Function | None = None) -> bool:
    """Return whether a file with edits is Python still; `function` is where they are, which may do alone."""
    found = list(edits)
    if function is not None:
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)]) - 1
        last = function.end_lineno or 0
        rows = lines_of(data)[first:last]
        if rows and all(first <= edit.start[0] and edit.end[0] < last for edit in found):
            above = rows[0][:1].isspace()
            alone = b"if 1:\n" * above + b"".join(rows)
            if _parses(alone, [edit.moved(above - first) for edit in found]):
                return True
    return _parses(data, found)


def _parses(data: bytes, edits: Iterable[Edit]) -> bool:
    try:
        ast.parse(edited(data, edits))
    except UNREADABLE:
        return False
    return True
