"""Promotion: what keeps a pattern from going to agents, all of it at once, each with what to do.

A person promotes, and an agent may comment (decision 53).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.patterns.shelf.moves import MOVES, PROGRAM, ShelfDecision, ShelfMove, move, trials_of
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternBody, TrialResult
from pytest_tfgrpo.patterns.shelf.pattern_file import stamp_of
from pytest_tfgrpo.patterns.shelf.screens import PatternScreens
from pytest_tfgrpo.patterns.shelf.shelf import Shelf

SOURCE_MAX = 10_000_000
"""Bytes of a file that an excerpt is looked for in."""
MISSING = 3
"""Lines of an excerpt that a message names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternJob:
    """What a promotion needs to know of the job that a pattern rests on."""

    job: str
    status: str
    commit: str = ""
    diff_sha256: str = ""
    tests_seen_by: tuple[str, ...] = ()
    """People who saw the diff of its tests."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternReview:
    """What a promotion is decided on, beside the pattern."""

    screens: PatternScreens
    job: PatternJob | None = None
    """None: it is not found here."""
    untested: bool = False
    """Whether a person promotes without a trial."""
    trials: Sequence[str] = ()
    """What the log has of trials of the text as it is, the oldest first."""
    approvers: Collection[str] = ()
    """Who may decide; empty: every person."""
    agents: Collection[str] = ()
    """Names of agents, who may not."""


def promote(
    shelf: Shelf, name: str, decision: ShelfDecision, review: PatternReview, event: ShelfMove = "promoted"
) -> Pattern:
    """Promote or restore a pattern; raises PatternError with everything that keeps it from that."""
    pattern = shelf.pattern(name)
    review = replace(review, trials=trials_of(shelf, pattern))
    found = [*person_refusals(decision.by, review), *promotion_refusals(shelf.root, pattern, review)]
    if found:
        told = "\n".join(f"  {line}" for line in found)
        raise PatternError(f"{name!r} cannot be {event}:\n{told}")
    return move(shelf, name, event, decision, judged=pattern)


def decide(
    shelf: Shelf, name: str, event: ShelfMove, decision: ShelfDecision, review: PatternReview
) -> Pattern:
    """Make any move; what leads to agents is promoted. Raises PatternError."""
    if MOVES[event][1].value == "active":
        return promote(shelf, name, decision, review, event)
    if found := list(person_refusals(decision.by, review)):
        raise PatternError(f"{name!r} cannot be {event}: {'; '.join(found)}")
    return move(shelf, name, event, decision)


def person_refusals(by: str, review: PatternReview) -> Iterator[str]:
    """Yield why somebody may not decide."""
    if by.strip().casefold() in {PROGRAM, *(agent.strip().casefold() for agent in review.agents)}:
        yield f"{by!r} is an agent: it may comment, and a person decides; name yourself with --by"
    elif review.approvers and by not in review.approvers:
        yield f"{by!r} is not among the approvers of learn.toml: {', '.join(sorted(review.approvers))}"


def promotion_refusals(root: Path, pattern: Pattern, review: PatternReview) -> Iterator[str]:
    """Yield what keeps a pattern from agents."""
    yield from _job_refusals(pattern, review.job)
    for fault in review.screens.refusals(pattern):
        yield f"{fault.place}: {fault.message}; rewrite it, then 'tfgrpo patterns lint --fix --by YOU'"
    stamp = stamp_of(pattern)
    if stamp != pattern.stamp:
        yield "stamp: the text was changed since it was screened; 'tfgrpo patterns lint --fix --by YOU'"
    if gone := gone_lines(root, pattern.body):
        named = ", ".join(short(line, 60) for line in gone[:MISSING])
        yield f"excerpt: {len(gone)} of its lines are no longer in its files: {named}; renew it"
    yield from _trial_refusals(pattern, stamp, review)


def _trial_refusals(pattern: Pattern, stamp: str, review: PatternReview) -> Iterator[str]:
    """Yield what trials say against a pattern, by its file and by the log, which keeps each of them."""
    trial = pattern.trial if pattern.trial and pattern.trial.pattern_stamp == stamp else None
    harmed = max((n for n, outcome in enumerate(review.trials) if outcome == "harms"), default=-1)
    if trial is not None and trial.outcome == "harms":
        yield f"trial: it harms, {measured(trial)}; reject it"
    elif harmed >= 0 and "helps" not in review.trials[harmed:]:
        yield "trial: one of this text found that it harms, and none since that it helps; reject it"
    elif (trial is None or trial.outcome not in review.trials[-1:]) and not review.untested:
        yield (
            f"trial: it was not tried as it is; run 'tfgrpo patterns trial {pattern.name}', or add --untested"
        )


def _job_refusals(pattern: Pattern, job: PatternJob | None) -> Iterator[str]:
    evidence = pattern.evidence
    if evidence is None:
        yield "evidence: no job proves it; capture the work it comes from with 'tfgrpo learn capture'"
        return
    if job is None:
        yield (
            f"evidence: job {evidence.job} is not here: decide where it was worked, or name that folder "
            "with --out and --task-id"
        )
        return
    if job.status != "validated":
        yield f"evidence: job {job.job} is {job.status}, not validated; see 'tfgrpo learn show {job.job}'"
    elif (job.commit, job.diff_sha256) != (evidence.commit, evidence.diff_sha256):
        yield f"evidence: commit or diff is not that of job {job.job}; put the pattern back from git"
    if not job.tests_seen_by:
        yield f"tests: no person saw their diff; run 'tfgrpo learn show {job.job} --tests --reviewer YOU'"


def gone_lines(root: Path, body: PatternBody) -> list[str]:
    """Return the lines of an excerpt that none of its files has any more."""
    wanted = [line for row in body.excerpt.split("\n") if (line := row.strip())]
    known = {line.strip() for path in body.files for line in _lines(root, path)} if wanted else set()
    return [line for line in dict.fromkeys(wanted) if line not in known]


def _lines(root: Path, path: str) -> list[str]:
    place = (root / path).resolve()
    if not place.is_relative_to(root.resolve()):
        return []
    try:
        return read_plain(place, SOURCE_MAX).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def measured(trial: TrialResult) -> str:
    """Return the gain that a trial measured, with its interval, in words."""
    gain = "no gain" if trial.gain is None else f"{trial.gain:+.3f}"
    known = "" if trial.low is None or trial.high is None else f" ({trial.low:+.3f} to {trial.high:+.3f})"
    return f"{gain}{known} on {trial.scenarios} scenarios of {trial.families} families"
