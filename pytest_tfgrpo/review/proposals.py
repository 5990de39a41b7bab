"""Changes of a suite that follow from marks, each tried on every marked answer of its scenario first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pytest_tfgrpo.core.errors import CheckError, ScenarioError
from pytest_tfgrpo.core.records import Rollout
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.review.disagreements import ReviewedAnswer
from pytest_tfgrpo.review.variants import Variant, WrittenCheck, is_exact, looser, stricter
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.scoring.checks.registry import evaluate
from pytest_tfgrpo.suite.ground_truth import criteria_of
from pytest_tfgrpo.suite.scenario import build_scenario
from pytest_tfgrpo.suite.suite_files import SuiteFile

ON_TEXT = frozenset(("exact", "contains", "regex", "number", "tool_calls"))
"""Kinds that need nothing but the answer and its frames, so that they can be tried after the run.

Only these are changed or added. Others stay, so their results in the run hold, and no file of an agent is
looked at and no program is run again.
"""
TRIED = 300
"""Variants of one scenario that are tried, at most."""
COMMENT = 500
"""Characters of a comment in a criterion."""
CRITERIA = 20
"""Of a scenario, at most."""


CanHold: TypeAlias = Callable[[str, Mapping[str, Json]], bool]
"""Whether a file has a place for a change of a scenario, named by its id."""


class CheckProposal(NamedTuple):
    """What to change in one scenario."""

    scenario: Scenario
    fields: Mapping[str, Json]
    """Fields with their new values."""
    why: str
    answers: tuple[ReviewedAnswer, ...]
    """Those on which checks and people disagree today."""
    agreed: int = 0
    """Marked answers on which the new checks and people agree; 0: nothing was tried."""
    now_failed: tuple[str, ...] = ()
    """Rollouts without a mark that would no longer pass."""
    now_passed: tuple[str, ...] = ()
    """Rollouts without a mark that would pass."""
    by_heart: bool = False
    """Whether it names whole answers."""
    not_tried: tuple[str, ...] = ()
    """Kinds of its checks that were not tried again: they stay, with the results of the run."""


class NeedsPerson(NamedTuple):
    """A scenario of which nothing could be proposed."""

    scenario: Scenario
    reason: str
    answers: tuple[ReviewedAnswer, ...]


def propose(
    file: SuiteFile,
    answers: Sequence[ReviewedAnswer],
    others: Sequence[tuple[Rollout, bool]],
    can_hold: CanHold,
) -> CheckProposal | NeedsPerson:
    """Return what follows from the marked `answers` of one scenario; `others` has its rollouts without mark.

    With each of these is whether it passed. `can_hold` says whether a file can hold a change.
    """
    scenario = answers[0].scenario
    off = tuple(answer for answer in answers if answer.is_false_pass or answer.is_false_fail)
    if scenario.truth == "checks":
        lost = [answer for answer in off if answer.is_false_fail and answer.rollout.status != "ok"]
        if lost:
            failure = lost[0].rollout.failure
            code = failure.code if failure else "failed"
            return NeedsPerson(scenario, f"it failed before any check: {line(code, 60)}", off)
        tried = _Trial(file, answers, others)
        found = tried.best(_variants(tried.written, answers, scenario), can_hold)
        if found is not None:
            return found._replace(answers=off)
    return _criterion(file, scenario, off, can_hold) or NeedsPerson(scenario, _why_not(scenario, off), off)


class _Trial:
    """Tries checks on the answers of one scenario, as often as needed."""

    def __init__(
        self, file: SuiteFile, answers: Sequence[ReviewedAnswer], others: Sequence[tuple[Rollout, bool]]
    ) -> None:
        self._file = file
        self._scenario = answers[0].scenario
        self._data = {**file.written[self._scenario.id].defaults, **file.written[self._scenario.id].data}
        self._marked = [(a.rollout, a.opinion == "right") for a in answers if a.opinion in ("right", "wrong")]
        self._others = others
        self.written: tuple[WrittenCheck, ...] = tuple(self._data.get("checks", ()))

    def best(self, variants: Iterator[Variant], can_hold: CanHold) -> CheckProposal | None:
        """Return the first variant that does as people say, rather one that leaves other answers alone."""
        fit = []
        for n, variant in enumerate(islice(variants, TRIED)):
            found = self._tried(variant)
            if found is not None:
                others = bool(found.now_failed or found.now_passed) and not variant.chosen
                fit.append((found.by_heart, others, n, found))
        for *_, found in sorted(fit, key=lambda one: one[:3]):
            if can_hold(self._scenario.id, found.fields):
                return found
        return None

    def _tried(self, variant: Variant) -> CheckProposal | None:
        """Return the variant as a proposal if the marked answers pass and fail as they should."""
        data = {**self._data, "checks": list(variant.checks)}
        try:
            made = build_scenario(
                data, source="", checker=None, folder=self._file.path.parent, kinds=self._file.kinds
            )
            if any(self._passes(made.checks, rollout) is not wanted for rollout, wanted in self._marked):
                return None
            after = [(r.rollout_id, before, self._passes(made.checks, r)) for r, before in self._others]
        except (ScenarioError, CheckError):
            return None
        some_pass = any(wanted for _, wanted in self._marked) or any(now for *_, now in after)
        if not (some_pass or variant.chosen or variant.by_heart):
            return None  # nothing shows that any answer could still pass
        return CheckProposal(
            scenario=self._scenario,
            fields={"checks": list(variant.checks)},
            why=variant.why,
            answers=(),
            agreed=len(self._marked),
            now_failed=tuple(id_ for id_, before, now in after if before and not now),
            now_passed=tuple(id_ for id_, before, now in after if now and not before),
            by_heart=variant.by_heart,
            not_tried=tuple(sorted({check.kind for check in self._scenario.checks} - ON_TEXT)),
        )

    def _passes(self, checks: Sequence[Check], rollout: Rollout) -> bool:
        """Return whether a rollout passes; what did not change is as the run has it. Raises CheckError."""
        if rollout.status != "ok":
            return False
        context = CheckContext(
            answer=rollout.answer,
            frames=rollout.frames,
            workspace=Workspace(Path("/nonexistent")),
            task=self._scenario.task(),
            latency_ms=rollout.latency_ms,
        )
        for n, check in enumerate(checks):
            if n < len(self._scenario.checks) and check == self._scenario.checks[n]:
                passed = rollout.checks[n].passed
            elif check.kind in ON_TEXT:
                passed = evaluate([check], context, self._file.kinds)[0].passed
            else:
                raise CheckError(f"a check of kind {check.kind!r} cannot be tried after the run")
            if not passed:
                return False
        return True


def _variants(
    checks: Sequence[WrittenCheck], answers: Sequence[ReviewedAnswer], scenario: Scenario
) -> Iterator[Variant]:
    """Yield checks to try: those that accept more where right answers fail, each also made stricter."""
    failing = [
        n
        for n in range(len(scenario.checks))
        if any(a.is_false_fail and not a.rollout.checks[n].passed for a in answers)
    ]
    wrong = [answer for answer in answers if answer.opinion == "wrong"]
    passed = [answer for answer in wrong if answer.is_false_pass]
    for variant in _widened(Variant(checks=tuple(checks), why=""), failing, answers):
        if failing:
            yield variant
        # of wrong answers that fail already nothing has to be said, unless the wider checks let them pass
        for rejected in (passed, wrong) if passed and len(passed) < len(wrong) else (wrong,):
            texts = [answer.rollout.answer for answer in rejected]
            for more in stricter(variant.checks, texts, _words(rejected, "wrong")):
                yield _both(variant, more)


def _widened(
    variant: Variant, failing: Sequence[int], answers: Sequence[ReviewedAnswer]
) -> Iterator[Variant]:
    if not failing:
        yield variant
        return
    n = failing[0]
    right = [a.rollout.answer for a in answers if a.is_false_fail and not a.rollout.checks[n].passed]
    replace = any(answer.is_false_pass for answer in answers)
    for more in looser(variant.checks, n, right, _words(answers, "right"), replace=replace):
        yield from _widened(_both(variant, more), failing[1:], answers)


def _both(first: Variant, second: Variant) -> Variant:
    """Return the checks of a variant that was made from another one, and what both do."""
    return Variant(
        checks=second.checks,
        why="; ".join(filter(None, (first.why, second.why))),
        by_heart=first.by_heart or second.by_heart,
        chosen=first.chosen or second.chosen,
    )


def _words(answers: Sequence[ReviewedAnswer], opinion: str) -> list[str]:
    """Return the words that reviewers chose in answers of one kind, as far as they stand in them."""
    return [
        mark.words.strip()
        for answer in answers
        if answer.opinion == opinion
        for mark in answer.marks
        if mark.opinion == opinion and mark.words.strip() and mark.words.strip() in answer.rollout.answer
    ]


def _criterion(
    file: SuiteFile, scenario: Scenario, off: Sequence[ReviewedAnswer], can_hold: CanHold
) -> CheckProposal | None:
    """Return a criterion for a judge from what reviewers wrote on answers that should fail; None without."""
    comments = dict.fromkeys(
        line(mark.comment, COMMENT)
        for answer in off
        if answer.is_false_pass
        for mark in answer.marks
        if mark.opinion == "wrong" and mark.comment.strip()
    )
    data = {**file.written[scenario.id].defaults, **file.written[scenario.id].data}
    rubric = data.get("rubric", [])
    known = rubric if isinstance(rubric, list) else [rubric]
    added = [f"TODO {comment}" for comment in comments]
    told = {criterion.text for criterion in criteria_of(known)}
    exact = is_exact(data.get("checks", ()))
    full = len(known) >= CRITERIA
    if not added or full or set(added) & told or exact or scenario.truth == "majority":
        return None
    fields = {"rubric": [*known, *added][:CRITERIA]}
    if not can_hold(scenario.id, fields):
        return None
    return CheckProposal(scenario, fields, "a criterion for a judge, to word; nothing was tried", tuple(off))


def _why_not(scenario: Scenario, off: Sequence[ReviewedAnswer]) -> str:
    if scenario.truth != "checks":
        return f"its score is an estimate by {scenario.truth}; change its rubric, or add checks"
    expects_one = any(check.kind == "exact" and not check.negated for check in scenario.checks)
    if expects_one and any(answer.is_false_pass for answer in off):
        return "it expects just one answer, which is not what people call right; correct it in its file"
    kinds = sorted({check.kind for check in scenario.checks} - ON_TEXT)
    if kinds:
        return f"no check on the answer or its calls does as people say; its kinds are {', '.join(kinds)}"
    return "no change of one check does as people say on every marked answer, and fits its file"
