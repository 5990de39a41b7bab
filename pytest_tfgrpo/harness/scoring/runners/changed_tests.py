"""A second form of hidden tests, which expect something else: what passes both is no answer.

What would have credit runs once more in a tree of its own, its tests edited in place: same files, names and
order, so that nothing but what is expected tells the two runs apart. An edited test must fail there. It finds
an answer that equals everything or keeps to what it met first, a value read from its caller, an assertion
that does nothing, a report that is not pytest's.

All tests are edited at once; at times, in another run, one alone that is drawn, and the others must pass:
else who solves one of them honestly would always know by it which run it is.
"""

from __future__ import annotations

import ast
import codecs
import secrets
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO

from pytest_tfgrpo.core.dataclass import dataclass
from pytest_tfgrpo.harness.scoring.runners.edits import Edit, Function, edited, edits_of
from pytest_tfgrpo.harness.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteRun

UTF_8 = ("utf-8", "utf-8-sig", "ascii")
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)

_random = secrets.SystemRandom()


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedTests:
    """Files with tests that expect something else; ids are without parameters."""

    files: Mapping[str, bytes]
    """Their contents, by name."""
    ids: tuple[str, ...]
    """The tests that must fail."""
    others: tuple[str, ...] = ()
    """Tests that must still pass."""

    def unfailed(self, run: SuiteRun) -> tuple[str, ...]:
        """Return the tests that must fail, but did not in a run of the files."""
        ends = _ends(run)

        def is_as_it_must(id_: str) -> bool:
            failed = ends[id_][CaseOutcome.FAILED] + ends[id_][CaseOutcome.HUNG]
            return failed > 0 and not ends[id_][CaseOutcome.PASSED]

        return tuple(id_ for id_ in self.ids if not is_as_it_must(id_))

    def doubt(self, first: SuiteRun, second: SuiteRun) -> str:
        """Return why a run of the files leaves no credit to what passed first, nothing where it does."""
        if second.problem is RunProblem.TAMPERED:
            return f"tampered: {second.detail}"
        before, after, late = _ends(first), _ends(second), second.problem is RunProblem.TIMEOUT
        for id_ in self.unfailed(second):
            if before[id_][CaseOutcome.PASSED]:
                what = f"tampered: {id_!r} does not fail where it expects something else"
                return f"{second.detail} where they expect something else" if late else what
        for id_ in self.others:
            if {*before[id_]} == {CaseOutcome.PASSED} and before[id_] != after[id_]:
                return f"tampered: {id_!r} does not pass where another test expects something else"
        return ""


def _ends(run: SuiteRun) -> Mapping[str, Counter[CaseOutcome]]:
    """Return how often each test ended in each way, by its id without parameters."""
    ends: defaultdict[str, Counter[CaseOutcome]] = defaultdict(Counter)
    for id_, outcome in run.outcomes.items():
        ends[bare(id_)][outcome] += 1
    return ends


def bare(id_: str) -> str:
    """Return the id of a test without its parameters."""
    return id_.partition("[")[0]


def change_tests(
    texts: Mapping[str, bytes], ids: Iterable[str], *, alone: bool = False
) -> ChangedTests | None:
    """Return files in which tests `ids`, those that can be edited, expect something else; None without any.

    `texts` are files by name. `alone`: one of them that is drawn; all others must pass.
    """
    by_file: dict[str, list[str]] = {}
    for id_ in dict.fromkeys(map(bare, ids)):
        file, _, name = id_.partition("::")
        if name and file in texts:
            by_file.setdefault(file, []).append(name)
    found = {
        (file, name): one for file in by_file for name, one in _edits(texts[file], by_file[file]).items()
    }
    if not found:
        return None
    every = [(file, name) for file, names in by_file.items() for name in names]
    chosen = _random.choice(list(found)) if alone else None
    if chosen is not None:
        found = {chosen: found[chosen]}
    return ChangedTests(
        files={
            file: edited(texts[file], [edit for (of, _), one in found.items() if of == file for edit in one])
            for file in {file for file, _ in found}
        },
        ids=tuple("::".join(one) for one in found),
        others=tuple("::".join(one) for one in every if one != chosen) if alone else (),
    )


def _edits(data: bytes, names: Iterable[str]) -> dict[str, list[Edit]]:
    """Return edits of those tests of a file that can be edited."""
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        module = ast.parse(data)
        tests = {name: test for name in names if (test := _find(module, name.split("::"))) is not None}
        choices = {name: edits_of(test, data) for name, test in tests.items()}
    except UNREADABLE:
        return {}
    if codecs.lookup(encoding).name not in UTF_8:  # columns would not count its bytes
        return {}
    found = {name: _random.choice(edits) for name, edits in choices.items() if edits}
    if _parses(data, found.values()):
        return found
    return {name: edits for name, edits in found.items() if _parses(data, [edits])}


def _parses(data: bytes, edits: Iterable[list[Edit]]) -> bool:
    try:
        ast.parse(edited(data, [one for some in edits for one in some]))
    except UNREADABLE:
        return False
    return True


def _find(module: ast.Module, names: Sequence[str]) -> Function | None:
    """Return a test's function, unless another of its name is defined beside it."""
    body = module.body
    for name in names[:-1]:
        classes = [one for one in body if isinstance(one, ast.ClassDef) and one.name == name]
        if len(classes) != 1:
            return None
        body = classes[0].body
    functions = [
        one
        for one in body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == names[-1]
    ]
    return functions[0] if len(functions) == 1 else None
