"""A captured job as a candidate of the harvest: its change, its prompt, and the tests that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.core.errors import SnapshotError
from pytest_tfgrpo.harvest.fixes import FixCandidate, FixValidation, HarvestRow, HistoryChange, Statement
from pytest_tfgrpo.harvest.history.candidates import CandidateRules, candidate_of
from pytest_tfgrpo.harvest.history.changes import committed_at
from pytest_tfgrpo.harvest.history.git_compare import TreeComparison
from pytest_tfgrpo.harvest.history.git_objects import GitObjects
from pytest_tfgrpo.harvest.history.reverts import Reverts
from pytest_tfgrpo.harvest.prompt.statement import MESSAGE, statement_of
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees
from pytest_tfgrpo.harvest.proof.tests_to_run import files_to_run, nearest_tests
from pytest_tfgrpo.patterns.jobs.manifest import WorkSnapshot
from pytest_tfgrpo.patterns.synthesis.recipe_sources import FoundCommand, named_tests

PROMPT = "prompt.md"
"""In the folder of a job: what was asked for, then the acceptance criteria."""
SOURCE = "prompt"
"""What a statement from it is called."""


def captured_change(snapshot: WorkSnapshot, prompt: str, objects: GitObjects) -> HistoryChange:
    """Return the change of a job, whose message is its prompt; raises SnapshotError."""
    comparison = TreeComparison(objects)
    comparison.send([(snapshot.base_tree, snapshot.tree)])
    (files,) = comparison.receive()
    if files is None:
        raise SnapshotError(
            f"a tree of the snapshot {snapshot.commit[:12]} is missing or damaged in {objects.where!r}"
        )
    return HistoryChange(
        commit=snapshot.commit,
        base=snapshot.base,
        tree=snapshot.tree,
        base_tree=snapshot.base_tree,
        committed_at=committed_at(objects, snapshot.commit),
        message=prompt,
        files=files,
    )


def captured_candidate(
    change: HistoryChange, rules: CandidateRules, found: Sequence[FoundCommand], objects: GitObjects
) -> tuple[FixCandidate | HarvestRow, str]:
    """Return the candidate of a change, or the row that says why it is none; and where its tests are from.

    They are those that it changed and those that its first command names; without any the nearest ones.
    """
    one = candidate_of(change, replace(rules, untested=True), Reverts())
    if isinstance(one, HarvestRow):
        return one, ""
    tree = frozenset(entry.path for entry in objects.entries(change.tree))
    named = [name for name in named_tests(found, tree) if name not in one.tests]
    if one.tests or named:
        sources = [*(["changed tests"] if one.tests else []), *([found[0].source] if named else [])]
        return replace(one, tests=(*one.tests, *named)), ", ".join(sources)
    if one.protected:
        return one, "the tests nearest to what they share"
    near = files_to_run((), one.sources, tree, rules.tests, ".")
    near = near or nearest_tests(one.sources, tree, rules.tests)
    return replace(one, tests=near), "the nearest tests"


def captured_statement(candidate: FixCandidate, trees: FixTrees, validation: FixValidation) -> Statement:
    """Return the prompt of a proven job: the one it had, without lines of its fix."""
    found = statement_of(candidate, trees, validation)
    source = SOURCE if found.source == MESSAGE else f"{SOURCE}, {found.source}"
    return replace(found, source=source)


def read_prompt(folder: Path) -> str:
    """Return the prompt of a job; empty where it has none. Raises OSError."""
    path = folder / PROMPT
    return path.read_text("utf-8", "replace") if path.is_file() else ""
