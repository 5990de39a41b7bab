"""What happens to one candidate: its trees, its recipe and environment, the proof, the prompt, the files."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from pytest_tfgrpo.core.errors import SnapshotError, StoreError, TfgrpoError
from pytest_tfgrpo.core.texts.text import few, line, plural
from pytest_tfgrpo.harvest.environment.package_tools import BuildProblem
from pytest_tfgrpo.harvest.fixes import (
    FixCandidate,
    FixValidation,
    HarvestRow,
    HarvestStatus,
    RecipePart,
    RootCause,
)
from pytest_tfgrpo.harvest.history.candidates import few_lines
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.history.tree_files import tree_files
from pytest_tfgrpo.harvest.job.plan import HarvestedFix, HarvestPlan, HarvestTools
from pytest_tfgrpo.harvest.job.progress import WorkerProgress
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees, by_name, left_out_by_checks
from pytest_tfgrpo.harvest.proof.tests_to_run import files_to_run, nearest_tests
from pytest_tfgrpo.harvest.proof.validation import ORDER, ROUNDS, ValidationPlan, check_timeout_s, validate
from pytest_tfgrpo.harvest.proof.work_tree import WorkTree
from pytest_tfgrpo.harvest.suite.manual import manual_advice, partial_value
from pytest_tfgrpo.harvest.suite.provenance import Provenance, read_provenance
from pytest_tfgrpo.harvest.suite.suite_files import (
    SuitePaths,
    digests,
    lacks_archives,
    tags_of,
    write_archives,
    write_partial,
    write_proof,
    write_scenario,
)
from pytest_tfgrpo.sandbox.archives import ArchiveProblem
from pytest_tfgrpo.sandbox.paths import check_name
from pytest_tfgrpo.sandbox.programs.cancelling import require_going
from pytest_tfgrpo.sandbox.programs.environments import Environment
from pytest_tfgrpo.scoring.checks.hidden.protected import matches
from pytest_tfgrpo.scoring.runners.protocol import SuiteRequest, SuiteRun

LEAST_ROOM = 50_000_000
"""Bytes that a disk must have free, or a test that fails for want of room would be taken for a result."""

ALSO = "; with "
"""Between the reason of a try and that of one with more packages."""
Proof: TypeAlias = tuple[RecipePart | None, Environment | None, FixValidation]


class HarvestWorker:
    """Validates one candidate after another, with a folder of its own."""

    def __init__(
        self,
        plan: HarvestPlan,
        tools: HarvestTools,
        folder: Path,
        left_out: tuple[str, ...],
        progress: WorkerProgress,
    ) -> None:
        """`left_out` is the suite's own folder in the repository."""
        self._plan, self._tools, self._progress = plan, tools, progress
        self._left_out = (*plan.exclude, *left_out)
        self._work = WorkTree(folder)
        self._notes: list[str] = []
        self._objects = GitObjects(plan.repository)

    def close(self) -> None:
        """End the connection to the repository."""
        self._objects.close()

    def harvest(self, candidate: FixCandidate) -> HarvestedFix:
        """Return what became of a candidate, whose files are written.

        Raises StoreError, OSError, Cancelled.
        """
        began = time.monotonic()
        self._notes = []
        try:
            found = self._harvest(candidate)
        except (SnapshotError, ArchiveProblem) as error:
            found = HarvestedFix(
                row=_row(
                    candidate,
                    HarvestStatus.VALIDATION_FAILED,
                    cause=RootCause.SNAPSHOT_INTEGRITY,
                    reason=line(str(error), 300),
                )
            )
        row = replace(found.row, elapsed_s=round(time.monotonic() - began, 3))
        return replace(found, row=row, notes=(*found.notes, *dict.fromkeys(self._notes)))

    def _harvest(self, candidate: FixCandidate) -> HarvestedFix:
        if isinstance(checked := few_lines(self._objects, candidate), HarvestRow):
            return HarvestedFix(row=checked)
        trees = self._trees(candidate)
        if (kept := self._proven_before(candidate, trees)) is not None:
            return kept
        fix = trees.tree("fix")
        if secrets := self._tools.secrets(trees.base, fix):
            reason = f"the fix holds a secret: {few(secrets, 3)}; --exclude leaves a file out"
            return HarvestedFix(row=_row(candidate, HarvestStatus.REFUSED, reason=reason))
        if not candidate.tests:  # it changes what tests need
            tests = nearest_tests(candidate.protected, fix, self._plan.tests)
            candidate = replace(candidate, tests=tests)
        part, environment, validation = self._prove(candidate, trees)
        if part is None or validation.cause is RootCause.SCENARIO_SYNTHESIS:
            return self._needs_manual(candidate, part, validation)
        if validation.cause is not None:
            status = HarvestStatus.VALIDATION_FAILED
            row = _row(candidate, status, cause=validation.cause, reason=validation.reason)
            return HarvestedFix(row=replace(row, broken=len(validation.doubts.broken)))
        return self._keep(candidate, trees, part, environment, validation)

    def _trees(self, candidate: FixCandidate) -> FixTrees:
        """Return the trees of a candidate; raises SnapshotError."""
        change, there = candidate.change, {f.path for f in candidate.change.files if f.status != "deleted"}
        hidden, sources = there.intersection(candidate.protected), there.intersection(candidate.sources)
        after = by_name(tree_files(self._objects, change.tree, only=hidden | sources))
        return FixTrees(
            base=by_name(tree_files(self._objects, change.base_tree, leave_out=self._is_left_out)),
            hidden={name: entry for name, entry in after.items() if name in hidden},
            reference={name: entry for name, entry in after.items() if name in sources},
            removed=tuple(name for name in candidate.sources if name not in there),
            removed_tests=tuple(n for n in candidate.protected if n not in there and _can_be_named(n)),
        )

    def _is_left_out(self, path: str) -> bool:
        return matches(path, self._left_out)

    def _prove(self, candidate: FixCandidate, trees: FixTrees) -> Proof:
        """Return the recipe that proves a fix, or the last one tried, and what came of it."""
        fix = trees.tree("fix")

        def read(path: str) -> bytes | None:
            return fix[path].data if path in fix and fix[path].link is None else None

        none: Proof = (
            None,
            None,
            _failed(RootCause.SCENARIO_SYNTHESIS, "no runner: no recipe for its tests"),
        )
        last = none
        for part in self._tools.recipes(read, tuple(fix), candidate):
            cause = last[2].cause
            if part.extras and last[2].lacking:
                last = _better(last, self._try(candidate, trees, part))
            elif not part.extras and cause not in (None, RootCause.TEST_FAILURE):
                last = self._try(candidate, trees, part)
        return last

    def _try(self, candidate: FixCandidate, trees: FixTrees, part: RecipePart) -> Proof:
        self._progress.enter("environment")
        require_going()
        try:
            made = self._tools.environment(part, candidate.change.committed_at)
            self._notes += made.notes
        except BuildProblem as error:
            return part, None, _failed(RootCause.ENVIRONMENT, f"no environment: {line(str(error), 400)}")
        if odd := left_out_by_checks(trees, made.built):
            reason = f"the fix adds modules that no check takes from an agent: {few(odd, 3)}"
            return part, None, _failed(RootCause.SCENARIO_SYNTHESIS, reason)
        fix = trees.tree("fix").keys()
        named = (n for n in candidate.protected if part.tests and n in fix and matches(n, part.tests))
        tests = tuple(dict.fromkeys((*candidate.tests, *named)))
        files = files_to_run(tests, candidate.sources, fix, part.tests, part.folder)
        plan = ValidationPlan(
            command=part.command,
            files=files,
            tests=tests,
            environment=made.built,
            isolation=self._plan.isolation,
            relaxed=part.relaxed,
            protected=part.protected,
        )
        again = part.command.runner == "pytest"  # with tests that expect something else
        self._progress.enter("runs", ROUNDS * len(ORDER) + again)
        found = validate(trees, plan, self._work, self._run)
        if self._tools.judge is not None:
            found = self._tools.judge(trees, plan, found, self._work, self._run)
        return part, made.environment, found

    def _run(self, request: SuiteRequest) -> SuiteRun:
        require_going()
        free = shutil.disk_usage(request.tree).free
        if free < LEAST_ROOM:
            raise StoreError(
                f"the disk of {request.tree} has only {free} bytes left; make room and harvest again"
            )
        self._progress.start_run()
        return self._tools.run(request)

    def _keep(
        self,
        candidate: FixCandidate,
        trees: FixTrees,
        part: RecipePart,
        environment: Environment | None,
        validation: FixValidation,
    ) -> HarvestedFix:
        """Write what is proven; raises StoreError."""
        change = candidate.change
        self._progress.enter("prompt")
        try:
            statement = self._tools.statement(candidate, trees, validation)
        except StoreError:
            raise
        except TfgrpoError as error:
            reason = f"no prompt: {line(str(error), 300)}"
            failed = HarvestStatus.VALIDATION_FAILED
            return HarvestedFix(
                row=_row(candidate, failed, cause=RootCause.SCENARIO_SYNTHESIS, reason=reason)
            )
        if secrets := self._tools.secrets_in_text(statement.text):
            reason = f"the prompt holds a secret: {few(secrets, 3)}"
            return HarvestedFix(row=_row(candidate, HarvestStatus.REFUSED, reason=reason))
        archives = trees.archives()
        provenance = Provenance(
            id=candidate.id,
            commit=change.commit,
            base=change.base,
            committed_at=change.committed_at,
            subject=change.message.partition("\n")[0][:200],
            prompt=statement,
            recipe=part,
            validation=validation,
            archives=digests(SuitePaths(suite=self._plan.suite, id=candidate.id), archives),
            removed=trees.removed,
            removed_tests=trees.removed_tests,
            protected=candidate.protected,
            sources=candidate.sources,
            timeout_s=check_timeout_s(validation),
            origin=self._plan.origin,
        )
        write_proof(self._plan.suite, provenance, environment)
        write_scenario(self._plan.suite, provenance, archives, self._plan.domain)
        return self._validated(candidate, provenance, trees)

    def _proven_before(self, candidate: FixCandidate, trees: FixTrees) -> HarvestedFix | None:
        """Return what an earlier harvest proved of this candidate, whose files are made whole; else None."""
        paths = SuitePaths(suite=self._plan.suite, id=candidate.id)
        if not paths.provenance.is_file():
            return None
        provenance, archives = read_provenance(paths.provenance), trees.archives()
        same = (provenance.commit, provenance.base) == (candidate.change.commit, candidate.change.base)
        same = same and provenance.removed_tests == trees.removed_tests
        if not same or provenance.archives != digests(paths, archives):
            return None
        if not paths.scenario.is_file():
            write_scenario(self._plan.suite, provenance, archives, self._plan.domain)
        elif lacks_archives(self._plan.suite, candidate.id):
            write_archives(self._plan.suite, candidate.id, archives)
        return self._validated(candidate, provenance, trees)

    def _validated(self, candidate: FixCandidate, provenance: Provenance, trees: FixTrees) -> HarvestedFix:
        validation, notes = provenance.validation, []
        if validation.wavering:
            notes.append(f"wavering tests left out: {few(validation.wavering, 3)}")
        if same := validation.unchanged():
            those = f"{len(same)} of {plural(len(validation.fail_to_pass), 'test')} of the fix"
            notes.append(f"{those} cannot be changed to fail: {few(same, 2)}")
        if secrets := self._tools.secrets({}, trees.base):
            notes.append(
                f"the files before the fix hold secrets: {few(secrets, 3)}; --exclude leaves them out"
            )
        row = _row(candidate, HarvestStatus.VALIDATED, reason="; ".join(notes))
        tags = tuple(tags_of(provenance))
        return HarvestedFix(
            row=replace(
                row, tests=len(validation.fail_to_pass), broken=len(validation.doubts.broken), tags=tags
            ),
            notes=tuple(notes),
        )

    def _needs_manual(
        self, candidate: FixCandidate, part: RecipePart | None, validation: FixValidation
    ) -> HarvestedFix:
        """Write what a person needs to complete a scenario; raises StoreError."""
        value = partial_value(candidate, part, validation, self._plan.domain)
        advice = manual_advice(candidate, part, validation, self._plan.origin)
        write_partial(self._plan.suite, candidate.id, value, advice)
        row = _row(candidate, HarvestStatus.NEEDS_MANUAL, cause=RootCause.SCENARIO_SYNTHESIS)
        return HarvestedFix(row=replace(row, reason=validation.reason))


def _better(first: Proof, wide: Proof) -> Proof:
    """Return what proves a fix whose tests lacked something; else the first try, with what the second gave.

    A third is worth it where the tests did not run with all extras, groups and lists.
    """
    (_, _, was), (part, _, now) = first, wide
    if now.cause is None or part is None:
        return wide
    tried = f"all that it lists ({few(part.extras, 4)})"
    reason = was.reason.partition(ALSO)[0]
    reason += f"{ALSO}{tried}: {'the same' if now.reason == reason else now.reason}"
    return first[0], first[1], replace(was, reason=reason, lacking=now.cause is not RootCause.TEST_FAILURE)


def _can_be_named(name: str) -> bool:
    """Return whether a scenario can name a file; one with an odd name stays in all trees."""
    try:
        check_name(name)
    except ValueError:
        return False
    return True


def _failed(cause: RootCause, reason: str) -> FixValidation:
    return FixValidation(fail_to_pass=(), pass_to_pass=(), cause=cause, reason=reason)


def _row(
    candidate: FixCandidate, status: HarvestStatus, *, reason: str = "", cause: RootCause | None = None
) -> HarvestRow:
    return HarvestRow(
        commit=candidate.change.commit,
        id=candidate.id,
        status=status,
        cause=cause,
        reason=reason,
        committed_at=candidate.change.committed_at,
    )
