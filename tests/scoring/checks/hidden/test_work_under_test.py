"""What runs of the hidden tests come to: credit, tampering, and which form counts for which test."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.scoring.checks.hidden import work_under_test as work
from pytest_tfgrpo.scoring.checks.hidden.fresh_tree import BaseTree, TooMuch
from pytest_tfgrpo.scoring.checks.hidden.work_under_test import WorkUnderTest, result_of
from pytest_tfgrpo.scoring.runners.edits.changed_tests import ChangedTests
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteCommand, SuiteRun

PASSED, FAILED = CaseOutcome.PASSED, CaseOutcome.FAILED


def check(fix: tuple[str, ...] = ("t.py::a", "t.py::b"), **params: Any) -> Check:
    own = {"fail_to_pass": list(fix), "runner": "command", "timeout_s": 10, **params}
    return Check(kind="tests", params=own)


def run(problem: RunProblem | None = None, detail: str = "", **outcomes: CaseOutcome) -> SuiteRun:
    ends = {f"t.py::{name}": end for name, end in outcomes.items()}
    return SuiteRun(outcomes=ends, problem=problem, detail=detail)


def test_credit_is_for_all_listed_tests_or_the_share_of_the_fix() -> None:
    both, one = run(a=PASSED, b=PASSED), run(a=PASSED, b=FAILED)
    assert result_of(check(), both).credit == 1.0
    assert result_of(check(pass_to_pass=["t.py::c"]), run(a=PASSED, b=PASSED, c=PASSED)).passed
    missed = result_of(check(), one)
    assert (missed.credit, missed.reason) == (0.0, "1 of 2 tests of the fix do not pass: t.py::b (failed)")
    part = result_of(check(credit="share"), one)
    assert (part.credit, part.reason) == (0.5, missed.reason)
    broken = result_of(
        check(credit="share", pass_to_pass=["t.py::c", "t.py::d"]), run(a=PASSED, b=FAILED, c=PASSED)
    )
    assert broken.credit == 0.0
    assert broken.reason.endswith("; 1 tests do not pass any more: t.py::d (was not run)")
    for end in (CaseOutcome.SKIPPED, CaseOutcome.HUNG):
        assert result_of(check(), run(a=PASSED, b=end)).credit == 0.0
    early = result_of(check(), run(RunProblem.TIMEOUT, "it took\ntoo long", a=PASSED))
    assert early.reason.endswith("; the run ended early: timeout, it took too long")
    why = SuiteRun(outcomes={"t.py::a": FAILED, "t.py::b": FAILED}, messages={"t.py": "no module"})
    assert "(no module)" in result_of(check(), why).reason


def test_what_was_tampered_with_has_no_credit_and_what_cannot_run_is_our_fault() -> None:
    spoiled = run(RunProblem.TAMPERED, "a canary passed", a=PASSED, b=PASSED)
    assert result_of(check(), spoiled).reason == "tampered: a canary passed"
    with pytest.raises(CheckError, match="the hidden tests cannot run: no node"):
        result_of(check(), run(RunProblem.NO_RUNNER, "no node"))


def form(*fails: str) -> ChangedTests:
    return ChangedTests(files={}, fails=frozenset(f"t.py::{name}" for name in fails))


def test_each_test_counts_in_the_form_that_leaves_it_as_it_is() -> None:
    first = SuiteRun(
        outcomes={"t.py::a": FAILED, "t.py::b": PASSED}, messages={"t.py::a": "changed"}, detail="1"
    )
    second = SuiteRun(
        outcomes={"t.py::a": PASSED, "t.py::b": FAILED}, messages={"t.py::b": "changed"}, detail="2"
    )
    whole = work._as_they_were((form("a"), form("b")), (first, second))
    assert (whole.outcomes, whole.messages) == ({"t.py::a": PASSED, "t.py::b": PASSED}, {})
    assert whole.detail == "2"
    broken = SuiteRun(outcomes={}, problem=RunProblem.TIMEOUT, detail="1")
    assert work._as_they_were((form("a"), form("b")), (broken, second)).problem is RunProblem.TIMEOUT
    assert work._as_they_were((form(),), (first,)) is first


def test_work_that_passes_what_expects_something_else_is_tampered() -> None:
    forms = (form("a"), form("b"))
    right = run(a=PASSED, b=PASSED)
    honest = (run(a=FAILED, b=PASSED), run(a=PASSED, b=FAILED))
    assert work._wrong(forms, honest, right) == ""
    guessed = (honest[0], run(a=PASSED, b=PASSED))
    assert work._wrong(forms, guessed, right) == (
        "tampered: 't.py::b' does not fail where it expects something else"
    )
    assert work._wrong(forms, guessed, None) == "", "without credit nothing is doubted"
    spoiled = (honest[0], run(RunProblem.TAMPERED, "x", b=FAILED))
    assert work._wrong(forms, spoiled, None) == "tampered: x"
    with pytest.raises(CheckError, match="cannot run"):
        work._wrong(forms, (honest[0], run(RunProblem.NO_RUNNER)), None)


def attempt(tmp_path: Path, of: Check, sandbox: Any = "none") -> WorkUnderTest:
    base = BaseTree(globs=(), protected=(ArchiveEntry(name="t.py"),), places=frozenset(), taken=frozenset())
    context: Any = SimpleNamespace(
        workspace=SimpleNamespace(path=tmp_path), sandbox=sandbox, task=make_scenario("a")
    )
    return WorkUnderTest(
        check=of, context=context, base=base, entries={"h.py": ArchiveEntry(name="h.py")}, environment=None
    )


def test_work_with_full_credit_runs_in_further_forms_and_other_work_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[ChangedTests, ...]] = []
    ends: dict[frozenset[str], SuiteRun] = {}

    def each(self: WorkUnderTest, forms: Any) -> list[SuiteRun]:
        asked.append(tuple(forms))
        return [ends[one.fails] for one in forms]

    further = (form("a", "b"),)
    monkeypatch.setattr(WorkUnderTest, "_forms", lambda self: ((form("a"), form("b")), further))
    monkeypatch.setattr(WorkUnderTest, "_run_each", each)
    own = attempt(tmp_path, check())
    ends |= {form("a").fails: run(a=FAILED, b=PASSED), form("b").fails: run(a=PASSED, b=FAILED)}
    ends |= {form("a", "b").fails: run(a=FAILED, b=FAILED)}
    assert own.result().credit == 1.0
    assert [len(forms) for forms in asked] == [2, 1]
    ends[form("a", "b").fails] = run(a=PASSED, b=FAILED)
    assert own.result().reason.startswith("tampered: 't.py::a'")
    asked.clear()
    ends[form("b").fails] = run(a=PASSED, b=PASSED)
    assert own.result().reason.startswith("tampered: 't.py::b'")
    ends[form("b").fails] = run(a=FAILED, b=FAILED)
    assert own.result().credit == 0.0
    assert [len(forms) for forms in asked] == [2, 2]

    def too_much(self: WorkUnderTest, forms: Any) -> list[SuiteRun]:
        raise TooMuch("its files are too many")

    monkeypatch.setattr(WorkUnderTest, "_run_each", too_much)
    assert (own.result().credit, own.result().reason) == (0.0, "its files are too many")


@pytest.mark.parametrize(("sandbox", "isolation"), [("none", "none"), ("auto", "bwrap"), ("bwrap", "bwrap")])
def test_a_form_runs_in_a_tree_of_its_own_with_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str, isolation: str
) -> None:
    seen: list[Any] = []

    def tree(workspace: Path, made: Path, **given: Any) -> None:
        assert workspace == tmp_path
        seen.append((made, {entry.name: entry.data for entry in given["hidden"]}))
        (made / "t.py").write_text("")

    monkeypatch.setattr(work, "make_tree", tree)
    monkeypatch.setattr(work, "run_suite", lambda request: seen.append(request) or run(a=PASSED))
    own = attempt(tmp_path, check(allow=["ctypes"]), sandbox)
    found = own._run(ChangedTests(files={"h.py": b"new", "i.py": b"more"}, fails=frozenset()))
    assert found.outcomes == {"t.py::a": PASSED}
    (made, hidden), request = seen
    assert hidden == {"h.py": b"new", "i.py": b"more"}
    assert (request.tree, request.files, request.protected) == (made, ("t.py",), ("t.py", "h.py", "i.py"))
    assert (request.allow, request.isolation, request.canary) == (("ctypes",), isolation, True)
    assert 0 < request.timeout_s <= 9.5
    assert request.hang_s == pytest.approx(4.0)
    assert not made.exists()
    gone = attempt(tmp_path, check(runner={"name": "command", "folder": "web", "run": ["x"]}))
    with pytest.raises(TooMuch, match="the folder 'web' with the tests is gone"):
        gone._run(form())


def test_a_runner_is_named_alone_or_with_folder_and_words() -> None:
    assert work._command("jest") == SuiteCommand(runner="jest")
    assert work._command({"name": "command", "folder": "web", "run": ["a", "b"]}) == SuiteCommand(
        runner="command", folder="web", run=("a", "b")
    )
    assert work._command({"name": "pytest"}) == SuiteCommand(runner="pytest", folder=".", run=())


def test_the_files_of_listed_tests_are_paths_or_dotted_modules(tmp_path: Path) -> None:
    for name in ("tests/test_a.py", "tests/test_b.py", "lib/x.py", "tests.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    names = ("tests/test_a.py", "tests/test_b.py", "lib/x.py")

    def files(*ids: str, **params: Any) -> tuple[str, ...]:
        return work._files(check(ids, **params), tmp_path, names)

    assert files("tests/test_b.py::t", "tests/test_b.py::u") == ("tests/test_b.py",)
    assert files("tests.test_b::t", pass_to_pass=["tests.test_a.TestX::t"]) == (
        "tests/test_a.py",
        "tests/test_b.py",
    )
    assert files("tests/gone.py::t") == ("tests/gone.py",)
    assert files("tests/test_b.py::t", "no.such::t") == ("tests/test_a.py", "tests/test_b.py")


def test_changes_that_do_not_fit_are_the_fault_of_the_suite(tmp_path: Path) -> None:
    assert attempt(tmp_path, check())._forms() == ([ChangedTests(files={}, fails=frozenset())], ())
    change = {"file": "gone.py", "lines": [{"row": 1, "text": "x"}], "fails": ["t.py::a"]}
    with pytest.raises(CheckError, match="changes of the check 'tests' do not fit its tests"):
        attempt(tmp_path, check(changes=[change, {**change, "fails": ["t.py::b"]}]))._forms()
