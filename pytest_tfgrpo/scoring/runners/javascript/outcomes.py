"""What a reporter's records say of tests: an outcome each, and whether the canaries ended as they must."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.scoring.runners.edits.canaries import random_word
from pytest_tfgrpo.scoring.runners.names import case_id, first_line, worst
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteRun
from pytest_tfgrpo.scoring.runners.signed import SignedRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class Canaries:
    """Names of the tests of ours in every file."""

    passing: str
    failing: str
    early: str
    """Passes before anything of the project is loaded; "" where a runner has none."""

    @classmethod
    def named(cls) -> Canaries:
        """Return canaries of names that nobody can know."""
        return cls(passing=_name(), failing=_name(), early=_name())


def _name() -> str:
    return f"{random_word()} {random_word()}"


@dataclass(slots=True)
class FileReport:
    """What was said of one file."""

    outcomes: dict[str, list[CaseOutcome]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    canaries: dict[str, list[CaseOutcome]] = field(default_factory=dict)
    broken: bool = False
    loaded: bool = False

    def why_tampered(self, canaries: Canaries, ended: bool) -> str:
        """Return what is wrong with its canaries; "" if nothing is.

        One that must pass may fail where nothing passes: the project's own set-up fails, and wins nothing.
        Where the run did not end, one that was not reported is missing as others are.
        """
        if self.broken:
            return ""
        failing = self.canaries.get(canaries.failing, [] if ended else [CaseOutcome.FAILED])
        if failing != [CaseOutcome.FAILED]:
            return "a test that must fail did not fail"
        anything = any(CaseOutcome.PASSED in found for found in self.outcomes.values())
        passing = self.canaries.get(canaries.passing, [] if ended else [CaseOutcome.PASSED])
        if anything and passing != [CaseOutcome.PASSED]:
            return "a test that must pass did not pass"
        return ""


@dataclass(slots=True)
class Reported:
    """What a report said, file by file; all in it came from the reporter."""

    files: dict[str, FileReport] = field(default_factory=dict)
    ended: bool = False
    broken: str = ""
    """Why the runner itself could not be used."""

    def tampered(self, canaries: Canaries) -> str:
        """Return which file's canaries did not end as they must, and how; "" if all did."""
        for file, report in self.files.items():
            if why := report.why_tampered(canaries, self.ended):
                return f"{file}: {why}"
        return ""


def read_records(records: Iterable[SignedRecord], tree: Path, canaries: Canaries) -> Reported:
    """Return what the records of one run say of the files in `tree`."""
    reported = Reported()
    for record in records:
        kind = record.get("kind")
        if kind == "end":
            reported.ended = True
        elif kind == "broken":
            reported.broken = first_line(str(record.get("message", ""))) or "the runner cannot be used"
        elif kind in ("file", "test", "loaded"):
            name = relative(str(record["file"]), tree)
            _add(reported.files.setdefault(name, FileReport()), name, _unplaced(record, tree), canaries)
    return reported


def _unplaced(record: SignedRecord, tree: Path) -> SignedRecord:
    """Return a record whose message does not say where the tree lies, which is another place in every run."""
    message = str(record.get("message", ""))
    for root in (tree, tree.resolve()):
        message = message.replace(f"{root}/", "")
    return {**record, "message": message}


def relative(file: str, tree: Path) -> str:
    """Return a file's path relative to the tree, as it is if it lies elsewhere."""
    for root in (tree, tree.resolve()):
        if Path(file).is_relative_to(root):
            return Path(file).relative_to(root).as_posix()
    return file


def _add(report: FileReport, file: str, record: SignedRecord, canaries: Canaries) -> None:
    kind = record["kind"]
    if kind == "loaded":
        report.loaded = True
        return
    if kind == "file":
        report.broken = True
        names: Sequence[str] = ()
        outcome = CaseOutcome.FAILED
    else:
        names, outcome = [str(name) for name in record["names"]], CaseOutcome(record["outcome"])
        if len(names) == 1 and names[0] in (canaries.passing, canaries.failing, canaries.early):
            report.canaries.setdefault(names[0], []).append(outcome)
            return
    test = case_id(file, *names)
    report.outcomes.setdefault(test, []).append(outcome)
    report.seconds[test] = report.seconds.get(test, 0.0) + max(0.0, float(record.get("ms", 0.0))) / 1000
    if outcome in (CaseOutcome.FAILED, CaseOutcome.HUNG):
        report.messages.setdefault(test, first_line(str(record.get("message", ""))))


def merged(reports: Iterable[Reported]) -> tuple[dict[str, CaseOutcome], dict[str, float], dict[str, str]]:
    """Return outcomes, seconds and messages by test id; tests of one name are as good as the worst."""
    outcomes: dict[str, list[CaseOutcome]] = {}
    seconds: dict[str, float] = {}
    messages: dict[str, str] = {}
    for reported in reports:
        for report in reported.files.values():
            for test, found in report.outcomes.items():
                outcomes.setdefault(test, []).extend(found)
            seconds |= report.seconds
            messages |= report.messages
    return {test: worst(found) for test, found in outcomes.items()}, seconds, messages


def problem_of(reported: Reported, canaries: Canaries | None) -> tuple[RunProblem | None, str]:
    """Return why a report cannot be used, and the words for it; None and "" if it can."""
    if reported.broken:
        return RunProblem.NO_RUNNER, reported.broken
    if canaries is not None and (why := reported.tampered(canaries)):
        return RunProblem.TAMPERED, why
    if not reported.ended:
        return RunProblem.NO_REPORT, "the run ended before all tests were reported"
    return None, ""


def suite_run(reports: list[Reported], problem: RunProblem | None, detail: str, elapsed_s: float) -> SuiteRun:
    """Return what came of a run of which `reports` say all."""
    outcomes, seconds, messages = merged(reports)
    if problem is None and not outcomes:
        problem, detail = RunProblem.NOTHING_COLLECTED, detail or "no test was found"
    return SuiteRun(
        outcomes=outcomes,
        seconds=seconds,
        messages=messages,
        problem=problem,
        detail=detail,
        elapsed_s=elapsed_s,
    )
