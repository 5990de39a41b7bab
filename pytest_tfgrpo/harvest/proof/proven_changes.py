"""Changes of tests that are proven: with the true fix, just the tests that they name fail by them.

So a check may change what only a run can judge, as an argument, a row of a table or the text of an error, and
refuses no true answer for a comparison that is lenient.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_tfgrpo.scoring.runners.edits.changed_tests import (
    FAILED,
    ChangedTests,
    LineChange,
    OtherLines,
    as_lines,
    parses,
    two_forms,
    with_lines,
)
from pytest_tfgrpo.scoring.runners.edits.edits import (
    ASSERTED,
    COMPUTED,
    EXPECTED,
    FIRST,
    LITERALS,
    OTHERS,
    EditChoice,
    choices_of,
    level,
)
from pytest_tfgrpo.scoring.runners.edits.test_functions import Target, targets
from pytest_tfgrpo.scoring.runners.edits.text_edits import text_choices
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, SuiteRun

ROUNDS = 12
"""How often changes are tried, of all tests at once."""
ENOUGH = 3
"""Proven changes of a function among which a check draws."""
TRIES = 3
"""How often what is left is tried in two forms, where tests failed that were not changed."""
SIDES = 4
"""How many sides of comparisons are tried where no expected value is a literal."""
MOST = 30
"""Functions that have changes; of more they are drawn."""
ASSERTION = re.compile("assert |Failed: |AssertionError: (?:assert |.* (?:!=|not|is|in) )")
"""How a message begins that is of an assertion: what an answer gave was looked at."""

Texts = Mapping[str, bytes]
UNSURE = (LITERALS, COMPUTED, ASSERTED)
"""Kinds of edits after which a test may fail before it looks at an answer."""
_random = secrets.SystemRandom()


class ProvenChanges(NamedTuple):
    """What trying changes of tests has shown."""

    changes: tuple[LineChange, ...]
    lenient: tuple[str, ...]
    """Tests of the fix that pass whatever value they expect, though they compare one with an answer."""


def proven_changes(
    texts: Texts,
    before: Texts,
    fixed: Collection[str],
    kept: Collection[str],
    run: Callable[[Texts], SuiteRun],
) -> ProvenChanges:
    """Return changes of the tests `fixed` that were tried with the true fix.

    `texts` are the files of tests, by name, and `before` what they were; `kept` are the other tests that a
    check lists. `run` runs the tests of these files with the fix, where the files that it is given replace
    those of their names. In files that are not Python a change is one of a line, of whatever test it is.
    """
    listed = (*fixed, *kept)
    found = [*targets(texts, listed), *_other_files(texts, listed)]
    found = [target for target in found if not {*fixed}.isdisjoint(target.ids)]
    chosen = _random.sample(found, min(len(found), MOST))
    tried = [_Tried(target, texts[target.file], before.get(target.file, b"")) for target in chosen]
    for _ in range(ROUNDS):
        if not (trying := [one for one in tried if one.next()]):
            break
        ran = run(_changed(texts, (one.trying for one in trying)))
        for one in trying:
            one.judge(ran)
    changes = [change for one in tried for change in one.proven()]
    lenient = {id_ for one in tried for id_ in one.lenient()}
    return ProvenChanges(
        still_proven(texts, changes, listed, run), tuple(sorted(lenient.intersection(fixed)))
    )


def _other_files(texts: Texts, ids: Iterable[str]) -> Iterator[Target]:
    """Yield the files that are not Python, each as one target with all its tests."""
    found: dict[str, list[str]] = {}
    for id_ in ids:
        found.setdefault(id_.partition("::")[0], []).append(id_)
    for file, those in found.items():
        if file in texts and not file.endswith(".py"):
            yield Target(file=file, functions=(), ids=tuple(those))


class _Tried:
    """The changes of one target: those to try, and those that are proven."""

    def __init__(self, target: Target, data: bytes, before: bytes) -> None:
        self._target, self._data = target, data
        self._left = [choice for function in target.functions for choice in choices_of(function, data)]
        if not target.functions:
            self._left = text_choices(data, before)
        self._found: list[tuple[LineChange, EditChoice]] = []
        self._indifferent, self._compared = False, 0
        self._choice = EditChoice([], FIRST)
        self.trying = LineChange(file=target.file, lines=(), fails=())

    def next(self) -> bool:
        """Take the next change to be tried; return whether there is one that may show more, or is wanted."""
        most, count = self._most()
        least = most + (count >= ENOUGH)
        also = (OTHERS,) if self._may_be_lenient() else ()
        self._left = [c for c in self._left if level(c.told) >= least or c.told in also]
        while self._left:
            self._choice = self._left.pop(0)
            if not self._target.functions or parses(self._data, self._choice.edits):
                lines = as_lines(self._data, self._choice.edits)
                self.trying = LineChange(file=self._target.file, lines=lines, fails=())
                return True
        return False

    def _may_be_lenient(self) -> bool:
        """Return whether more values to compare with have to be tried to know it."""
        shown = any(choice.told == EXPECTED for _, choice in self._found)
        return bool(self._target.functions) and not shown and self._compared < SIDES

    def _most(self) -> tuple[int, int]:
        """Return how much the strongest changes show, and how many they are."""
        most = max((level(choice.told) for _, choice in self._found), default=FIRST)
        return most, sum(level(choice.told) == most for _, choice in self._found)

    def judge(self, ran: SuiteRun) -> None:
        """Keep the change if some tests of the function failed by it, and the others passed.

        One by which a test hangs is left: each check would wait for it.
        """
        told = self._told_by(ran)
        passed = {ran.outcomes.get(id_) for id_ in self._target.ids} == {CaseOutcome.PASSED}
        compared = (EXPECTED, OTHERS) if self._target.functions else (EXPECTED,)
        self._indifferent |= passed and self._choice.told in compared
        self._compared += self._choice.told == OTHERS
        if told is not None:
            self._found.append((self.trying, self._choice._replace(told=told)))
        if told != self._choice.told:  # another value there will hardly do: other places come first
            place, kind = self._choice.edits[0].start, level(self._choice.told)
            like = [choice for choice in self._left if level(choice.told) == kind]
            turned = iter(sorted(like, key=lambda choice: choice.edits[0].start == place))
            self._left = [next(turned) if level(one.told) == kind else one for one in self._left]

    def _told_by(self, ran: SuiteRun) -> int | None:
        """Return how much the change shows, and note what fails by it; None where it proves nothing."""
        ends = {id_: ran.outcomes.get(id_) for id_ in self._target.ids}
        fails = tuple(id_ for id_, end in ends.items() if end is CaseOutcome.FAILED)
        if not fails or not {*ends.values()} <= {CaseOutcome.FAILED, CaseOutcome.PASSED}:
            return None
        self.trying = replace(self.trying, fails=fails)
        asserted = all(ASSERTION.match(ran.messages.get(id_, "")) for id_ in fails)
        return FIRST if self._choice.told in UNSURE and not asserted else self._choice.told

    def lenient(self) -> tuple[str, ...]:
        """Return the tests, where another value to compare with was tried and none made them fail."""
        shown = any(choice.told == EXPECTED or not self._target.functions for _, choice in self._found)
        return self._target.ids if self._indifferent and not shown else ()

    def proven(self) -> list[LineChange]:
        """Return the proven changes that show most."""
        most, _ = self._most()
        return [*dict.fromkeys(change for change, choice in self._found if level(choice.told) == most)]


def _changed(texts: Texts, changes: Iterable[LineChange]) -> Texts:
    lines: dict[str, list[OtherLines]] = {}
    for change in changes:
        lines.setdefault(change.file, []).extend(change.lines)
    return {file: with_lines(texts[file], those) for file, those in lines.items()}


def still_proven(
    texts: Texts, changes: Sequence[LineChange], listed: Collection[str], run: Callable[[Texts], SuiteRun]
) -> tuple[LineChange, ...]:
    """Return the changes beside which all tests end as they must in the two forms of a check.

    A test that fails where another one is changed would refuse true answers. `listed` are all tests of the
    check. Raises ValueError where a change does not fit its file.
    """
    left = tuple(changes)
    for _ in range(TRIES):
        if not left:
            return ()
        forms = [form for form in two_forms(texts, left) if form.fails]
        wrong = [form for form in forms if not _ends_as_it_must(form, run(form.files), listed)]
        odd = {id_ for form in wrong for id_ in form.fails}
        if not odd:
            return left
        left = tuple(change for change in left if odd.isdisjoint(change.fails))
    return ()


def _ends_as_it_must(form: ChangedTests, ran: SuiteRun, listed: Collection[str]) -> bool:
    """Return whether the changed tests failed, and all others passed of the files that ran."""
    there = {id_.partition("::")[0] for id_ in (*ran.outcomes, *form.fails)}
    right = {id_: FAILED if id_ in form.fails else (CaseOutcome.PASSED,) for id_ in listed}
    return all(
        ran.outcomes.get(id_) in ends for id_, ends in right.items() if id_.partition("::")[0] in there
    )
