"""Records of a harvest, and a runner that runs nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_tfgrpo.harvest.fixes import (
    FixValidation,
    HarvestRow,
    HarvestStatus,
    RecipePart,
    Statement,
    ValidationRun,
)
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees
from pytest_tfgrpo.harvest.proof.validation import ValidationPlan, validate
from pytest_tfgrpo.harvest.proof.work_tree import WorkTree
from pytest_tfgrpo.harvest.suite.provenance import Provenance
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.scoring.runners.protocol import (
    CaseOutcome,
    RunProblem,
    SuiteCommand,
    SuiteRequest,
    SuiteRun,
)

COMMIT, BASE = "c" * 40, "b" * 40


def make_row(number: int = 0, **more: Any) -> HarvestRow:
    """Return a row of a validated change."""
    given: dict[str, Any] = {
        "commit": f"{number:040x}",
        "id": f"fix-{number:012x}",
        "status": HarvestStatus.VALIDATED,
        "committed_at": 1_600_000_000 + number,
        "tests": 1,
        "tags": ("harvested",),
    }
    return HarvestRow(**{**given, **more})


def make_recipe(**more: Any) -> RecipePart:
    """Return a recipe of pytest in the tree's own folder."""
    command = SuiteCommand(runner="pytest")
    return RecipePart(**{"folder": ".", "command": command, "python": None, "dependencies": (), **more})


def make_validation(**more: Any) -> FixValidation:
    """Return a validation that proved one test."""
    run = ValidationRun(tree="fix", passed=2, failed=0, skipped=0, hung=0, elapsed_s=0.5)
    given: dict[str, Any] = {
        "fail_to_pass": ("tests/test_a.py::test_x",),
        "pass_to_pass": ("tests/test_a.py::test_y",),
        "runs": (run,),
        "messages": {"tests/test_a.py::test_x": "assert 1 == 2"},
    }
    return FixValidation(**{**given, **more})


def make_provenance(number: int = 0, **more: Any) -> Provenance:
    """Return the provenance of the scenario of `make_row`."""
    id_ = f"fix-{number:012x}"
    given: dict[str, Any] = {
        "id": id_,
        "commit": f"{number:040x}",
        "base": BASE,
        "committed_at": 1_600_000_000 + number,
        "subject": "Fix it",
        "prompt": Statement(text=f"Rounding is wrong in case {number}.\nMend it.", source="commit message"),
        "recipe": make_recipe(),
        "validation": make_validation(),
        "archives": {f"archives/{id_}.{part}.tar.gz": "0" * 64 for part in ("base", "hidden")},
        "protected": ("tests/test_a.py",),
        "sources": ("a.py",),
    }
    return Provenance(**{**given, **more})


OUTCOMES = {
    "p": CaseOutcome.PASSED,
    "f": CaseOutcome.FAILED,
    "s": CaseOutcome.SKIPPED,
    "h": CaseOutcome.HUNG,
}
FILES = {"tests/test_a.py", "tests/test_b.py"}


def tree_of(**files: bytes) -> dict[str, ArchiveEntry]:
    """Return a tree of files; ``__`` stands for a slash, and each name ends with ``.py``."""
    names = {name: f"{name.replace('__', '/')}.py" for name in files}
    return {names[name]: ArchiveEntry(name=names[name], data=data) for name, data in files.items()}


TREES = FixTrees(
    base=tree_of(a=b"wrong", gone=b"", tests__test_a=b"old", tests__test_b=b"b"),
    hidden=tree_of(tests__test_a=b"new", tests__test_b=b"b"),
    reference=tree_of(a=b"right"),
    removed=("gone.py",),
)


class FakeTests:
    """A runner with prescribed outcomes: by tree and test a letter, or one for each run."""

    def __init__(self, folder: Path) -> None:
        self.work = WorkTree(folder / "work")
        self.requests: list[SuiteRequest] = []
        self.trees: dict[str, dict[str, bytes]] = {}
        self.says = ""
        """What each test says that does not pass."""
        self.detail = "it said why"
        """What a run says that has a problem."""
        self.test = b"new"
        """What the fix's file of tests holds."""
        self.uses: dict[str, tuple[str, ...]] = {}
        """What the code under test uses, by tree."""
        self.other = b"b"
        """What the other file of tests holds, before and after the fix."""
        self.plan: dict[str, Any] = {}
        """Further fields of the plan."""

    def validate(
        self,
        *,
        seconds: float = 0.0,
        problems: Mapping[str, RunProblem] | None = None,
        **outcomes: Mapping[str, str],
    ) -> FixValidation:
        """Validate the fix of `TREES`."""
        counts: Counter[str] = Counter()

        def run(request: SuiteRequest) -> SuiteRun:
            files = list(request.tree.rglob("*.py"))
            held = {p.relative_to(request.tree).as_posix(): p.read_bytes() for p in files}
            right, test = held["a.py"] == b"right", held["tests/test_a.py"]
            name = "fix" if right else "base" if test == b"old" else "base_with_tests"
            if test not in (b"old", self.test):
                name = "changed"
            self.requests.append(request)
            self.trees[name] = held
            place, counts[name] = counts[name], counts[name] + 1
            letters = {
                test: ends * 12 if len(ends) == 1 else ends for test, ends in outcomes.get(name, {}).items()
            }
            left = FILES - {*request.files}
            made = {
                test: OUTCOMES[ends[place]]
                for test, ends in letters.items()
                if test.partition("::")[0] not in left
            }
            if problem := (problems or {}).get(name):
                return SuiteRun(outcomes=made, problem=problem, detail=self.detail)
            return SuiteRun(
                outcomes=made,
                seconds=dict.fromkeys(made, seconds),
                messages={
                    t: self.says or f"because of {letters[t][place]}"
                    for t, end in made.items()
                    if end != "passed"
                },
                elapsed_s=0.5,
                uses=self.uses.get(name, ()),
            )

        plan = ValidationPlan(
            command=SuiteCommand(runner="pytest"),
            files=tuple(sorted(FILES)),
            tests=("tests/test_a.py",),
            **self.plan,
        )
        trees = replace(TREES, hidden=tree_of(tests__test_a=self.test, tests__test_b=self.other))
        return validate(trees, plan, self.work, run)
