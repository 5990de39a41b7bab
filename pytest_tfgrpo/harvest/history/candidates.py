"""Candidates: the changes of a history that are worth validating, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import few
from pytest_tfgrpo.harvest.fixes import (
    ChangedFile,
    FixCandidate,
    HarvestRow,
    HarvestStatus,
    HistoryChange,
    RootCause,
)
from pytest_tfgrpo.harvest.history.changed_lines import changed_lines
from pytest_tfgrpo.harvest.history.messages import title_of
from pytest_tfgrpo.harvest.history.reverts import Reverts, reverts_another
from pytest_tfgrpo.scoring.checks.hidden.protected import TEST_FOLDERS, is_protected, is_test

if TYPE_CHECKING:
    from pytest_tfgrpo.harvest.history.git_objects import GitObjects

MAX_SOURCES = 15
MAX_LINES = 1000
"""Lines that a change adds to its sources and removes from them; moved ones are not counted."""
SEVERAL = 2
"""Commits of a merge that are candidates themselves from which they are taken instead of it."""
MESSAGES, MESSAGE = 50, 8000
"""Messages of the commits of a merge that are kept, the oldest, and characters of each."""
SLUG = 40
SUBMODULE = "160000"
_OTHER = re.compile(
    r"(?:.*/)?(?:docs?|documentation|news|newsfragments|changelog\.d|changes|\.[^/]+)/.*"
    r"|.*\.(?:md|mdx|rst|adoc|asciidoc|po|pot|png|jpe?g|gif|svg|ico|webp|pdf|woff2?|ttf|map|lock|min\.js|min\.css)"
    r"|(?:.*/)?(?:\.[^/]*|(?:authors|change(?:s|log)|contribut(?:ing|ors)|copying|history|licen[sc]e|news|notice|"
    r"readme|thanks|todo|version)(?:\.txt)?|(?:pnpm-lock|poetry-lock)\.[a-z]+|"
    r"(?:[^/]*[-_.])?(?:requirements|constraints)[^/]*\.(?:in|txt)|requirements/[^/]*\.(?:in|txt))",
    re.IGNORECASE | re.DOTALL,
)
"""Documentation, pictures, settings of services, lists of packages: a change of these alone fixes nothing.

The packages are those of the fix before it too.
"""

NO_TEST = "no test changed"
_LIKELY = re.compile(r"(?:^|[/_.-])(?:checks?|specs?|tests?|testing|unittests?)(?:[/_.-]|$)", re.IGNORECASE)
"""Where tests may lie that are called otherwise than runners do."""
_NO_SLUG = re.compile(r"[^a-z0-9]+")

Screened: TypeAlias = FixCandidate | HarvestRow
MergedBy = Callable[[HistoryChange], Sequence[HistoryChange]]


@dataclass(frozen=True, kw_only=True, slots=True)
class CandidateRules:
    """What a harvest looks for, beside the customs of test runners."""

    tests: tuple[str, ...] = ()
    """Globs of files with tests; empty: by their names."""
    protected: tuple[str, ...] = ()
    """Globs of further files that come from the fix in every check."""
    left_out: tuple[str, ...] = ()
    """Folders and globs that belong to no change: the suite's own folder."""
    untested: bool = False
    """A change without tests is a candidate too, for tests that are there."""


def candidates(
    found: Iterable[HistoryChange], rules: CandidateRules | None = None, merged: MergedBy | None = None
) -> Iterator[Screened]:
    """Yield a candidate, or the row that says why it is none, for each change of a range, newest first.

    `merged` returns what a merge brings, newest first; where several of it are candidates themselves, they
    follow the row of the merge. Their lines are not counted yet: that takes the contents of their files (see
    `few_lines`).
    """
    reverts, known = Reverts(), rules or CandidateRules()
    for change in found:
        one = candidate_of(change, known, reverts)
        if merged is not None and change.is_merge and isinstance(one, FixCandidate):
            yield from _unfolded(one, merged(change), known, reverts)
        else:
            yield _sized(one)


def _unfolded(
    merge: FixCandidate, brought: Sequence[HistoryChange], rules: CandidateRules, reverts: Reverts
) -> Iterator[Screened]:
    """Yield the row of a merge and the candidates among its commits, or the merge where those are few."""
    parts = [_sized(candidate_of(change, rules, reverts)) for change in brought]
    fixes = [part for part in parts if isinstance(part, FixCandidate)]
    if len(fixes) < SEVERAL:
        messages = tuple(change.message[:MESSAGE] for change in brought[::-1][:MESSAGES])
        change = replace(merge.change, merged=messages)
        yield _sized(replace(merge, id=scenario_id(change), change=change))
        return
    named = few([fix.change.commit[:12] for fix in fixes[::-1]], 5)
    reason = f"it merges {len(fixes)} commits that are fixes themselves, which are taken instead: {named}"
    yield _row(merge.change, reason)
    yield from fixes


def candidate_of(change: HistoryChange, rules: CandidateRules, reverts: Reverts) -> Screened:
    """Return the candidate that a change is but for its size, or the row that says why it is none.

    `reverts` has seen the changes after it.
    """
    if change.missing:
        return _row(change, f"{change.missing} is missing or damaged in the repository; fetch it", lost=True)
    reverted_by = reverts.reverted_by(change)
    files, known = change.files, (rules.protected, rules.tests)
    if rules.left_out:
        files = tuple(file for file in files if not _is_test(file.path, rules.left_out))
    kinds = [_kind(file.path, *known) for file in files]
    protected = [file for file, kind in zip(files, kinds, strict=True) if kind.protected]
    code = [file for file, kind in zip(files, kinds, strict=True) if kind.code]
    tests = [f.path for f, kind in zip(files, kinds, strict=True) if kind.test and f.status != "deleted"]
    if reason := _why_not(change, files, reverted_by) or _lacks(protected, tests, code, rules.untested):
        return _row(change, reason)
    return FixCandidate(
        id=scenario_id(change),
        change=change,
        tests=tuple(tests),
        protected=tuple([file.path for file in protected]),
        sources=tuple([f.path for f, kind in zip(files, kinds, strict=True) if not kind.protected]),
    )


def few_lines(objects: GitObjects, candidate: FixCandidate) -> Screened:
    """Return a candidate, or the row that says why its lines make it none."""
    files = [file for file in candidate.change.files if file.path in candidate.sources and is_code(file.path)]
    lines = changed_lines(objects, files)
    if isinstance(lines, str):
        return _row(candidate.change, f"{lines} in the repository; fetch it", lost=True)
    if lines > MAX_LINES:
        reason = f"over {MAX_LINES} lines of source changed; split it, or write it by hand"
        return _row(candidate.change, reason)
    return candidate


@lru_cache(maxsize=65_536)
def is_code(path: str) -> bool:
    """Return whether a path that is not protected may hold what a fix has to change."""
    return _OTHER.fullmatch(path) is None


def scenario_id(change: HistoryChange) -> str:
    """Return the id of a change's scenario: a slug of its title, and the commit's first 12 characters."""
    slug = _NO_SLUG.sub("-", title_of(change)[:200].lower())[:SLUG].strip("-")
    return f"{slug or 'change'}-{change.commit[:12]}"


def _sized(one: Screened) -> Screened:
    """Return the row that says why a candidate is none where it changes too many sources."""
    if isinstance(one, FixCandidate) and (code := sum(map(is_code, one.sources))) > MAX_SOURCES:
        return _row(one.change, f"{code} source files changed, more than {MAX_SOURCES}")
    return one


def _why_not(change: HistoryChange, files: Sequence[ChangedFile], reverted_by: str | None) -> str:
    if not change.base:
        return "it is the first commit: there is nothing before it"
    if any(SUBMODULE in (file.old_mode, file.new_mode) for file in files):
        return "it changes a submodule"
    if reverted_by:
        return f"it is reverted by {reverted_by[:12]}"
    if reverts_another(change):
        return "it reverts another change"
    if odd := next((path for path in [file.path for file in files] if not path.isprintable()), ""):
        return f"a file has the name {odd!r}, which no archive for every machine can hold"
    return ""


def _lacks(
    protected: Sequence[ChangedFile], tests: Sequence[str], code: Sequence[ChangedFile], untested: bool
) -> str:
    if not (untested or tests) and not any(
        _in_tests(file.path) for file in protected if file.status != "deleted"
    ):
        likely = next((f.path for f in code if _LIKELY.search(f.path) and f.status != "deleted"), "")
        return f"no test changed; if {likely} holds tests, set tests in harvest.toml" if likely else NO_TEST
    if not code:
        return "no source changed"
    return ""


class _Kind(NamedTuple):
    protected: bool
    code: bool
    test: bool


@lru_cache(maxsize=65_536)
def _kind(path: str, globs: tuple[str, ...], tests: tuple[str, ...]) -> _Kind:
    test = is_test(path, tests)
    protected = is_protected(path, globs) or bool(tests and test)
    return _Kind(protected, not protected and is_code(path), test)


@lru_cache(maxsize=65_536)
def _is_test(path: str, globs: tuple[str, ...]) -> bool:
    return is_test(path, globs)  # with globs, it looks at nothing else


def _in_tests(path: str) -> bool:
    return any(part.lower() in TEST_FOLDERS for part in path.split("/")[:-1])


def _row(change: HistoryChange, reason: str, *, lost: bool = False) -> HarvestRow:
    return HarvestRow(
        commit=change.commit,
        id=scenario_id(change),
        status=HarvestStatus.VALIDATION_FAILED if lost else HarvestStatus.SKIPPED,
        cause=RootCause.SNAPSHOT_INTEGRITY if lost else None,
        reason=reason,
        committed_at=change.committed_at,
    )
