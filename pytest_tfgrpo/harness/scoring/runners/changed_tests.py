"""A second form of hidden tests, which expect something else: what passes both is no answer.

What would have credit runs once more in a tree of its own, its tests edited in place: same files, names and
order, so that nothing but what is expected tells the two runs apart. An edited test must fail there. It finds
an answer that equals everything or keeps to what it met first, a value read from its caller, an assertion
that does nothing, a report that is not pytest's.
"""

from __future__ import annotations

import ast
import codecs
import secrets
import tokenize
from collections.abc import Collection, Iterable, Mapping, Sequence
from io import BytesIO

from pytest_tfgrpo.core.dataclass import dataclass
from pytest_tfgrpo.harness.scoring.runners.edits import Edit, Function, edited, edits_of
from pytest_tfgrpo.harness.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteRun

UTF_8 = ("utf-8", "utf-8-sig", "ascii")
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)

_random = secrets.SystemRandom()


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedTests:
    """Files with tests that expect something else."""

    files: Mapping[str, bytes]
    """Their contents, by name."""
    ids: tuple[str, ...]
    """The tests that must fail, without parameters."""

    def unfailed(self, run: SuiteRun) -> tuple[str, ...]:
        """Return the tests that did not fail in a run of the files."""
        ends: dict[str, set[CaseOutcome]] = {}
        for id_, outcome in run.outcomes.items():
            ends.setdefault(bare(id_), set()).add(outcome)
        failed = {id_ for id_, found in ends.items() if {CaseOutcome.FAILED, CaseOutcome.HUNG} & found}
        return tuple(id_ for id_ in self.ids if id_ not in failed or CaseOutcome.PASSED in ends[id_])

    def doubt(self, run: SuiteRun, passed: Collection[str]) -> str:
        """Return why a run of the files leaves no credit, nothing if each of `passed` tests failed there."""
        if run.problem is RunProblem.TAMPERED:
            return f"tampered: {run.detail}"
        for id_ in self.unfailed(run):
            if id_ in passed and run.problem is RunProblem.TIMEOUT:
                return f"{run.detail} where they expect something else"
            if id_ in passed:
                return f"tampered: {id_!r} does not fail where it expects something else"
        return ""


def bare(id_: str) -> str:
    """Return the id of a test without its parameters."""
    return id_.partition("[")[0]


def change_tests(texts: Mapping[str, bytes], ids: Iterable[str]) -> ChangedTests | None:
    """Return files in which tests `ids`, those that can be edited, expect something else; None without any.

    `texts` are files by name.
    """
    by_file: dict[str, list[str]] = {}
    for id_ in dict.fromkeys(map(bare, ids)):
        file, _, name = id_.partition("::")
        if name and file in texts:
            by_file.setdefault(file, []).append(name)
    files, changed = {}, list[str]()
    for file, names in by_file.items():
        found = _edits(texts[file], names)
        if found:
            files[file] = edited(texts[file], [edit for edits in found.values() for edit in edits])
            changed += [f"{file}::{name}" for name in found]
    return ChangedTests(files=files, ids=tuple(changed)) if changed else None


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
