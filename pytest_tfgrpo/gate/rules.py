"""The built-in rules of the gate.

Rules about means are checked twice, with errors excluded and with errors as 0, and must pass both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum

from pytest_tfgrpo.core.lessons import LeakedAnswer
from pytest_tfgrpo.core.named_scores import SHARE
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import PhaseResult, Reference, Run
from pytest_tfgrpo.core.settings.gate import (
    CONTAMINATION,
    GATE_ALARM,
    GATE_MARGIN,
    GATE_MAX_COST_PER_SUCCESS_USD,
    GATE_MAX_ERRORS,
    GATE_MIN_MEAN,
    GATE_STRICT,
)
from pytest_tfgrpo.core.texts.text import few, gist, line, plural
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.gate.baseline import (
    UNFAIR_ADVICE,
    Baseline,
    actor_name,
    compared_stamps,
    what_differs,
    why_unfair,
)
from pytest_tfgrpo.gate.difference import Bar, judge_difference
from pytest_tfgrpo.gate.looks import Look, looks_at
from pytest_tfgrpo.gate.pooling import drift_of, not_covered
from pytest_tfgrpo.gate.result import MIN_SHARE, OPEN, Outcome, RuleResult, Settled
from pytest_tfgrpo.gate.worst_rollout import worst_rollout
from pytest_tfgrpo.metrics.comparison import Sweeps, Tally, compare, sentence
from pytest_tfgrpo.metrics.passes import solved
from pytest_tfgrpo.metrics.placebo import IMPOSSIBLE, claimed, placebo_block
from pytest_tfgrpo.metrics.significance import ALPHA
from pytest_tfgrpo.metrics.values import GT, criteria_of

LOWEST = "read the scenarios with the lowest scores in the report, or lower the minimum"
WORLD = frozenset({"setup", "teardown", "fixture"})
"""Codes of errors of what stands around the agent, whatever the agent did."""
REWARDERS = "is its rewarder in a conftest.py that this run loads, and does it score these scenarios?"
GIVERS = {
    "test": "do the test functions of these scenarios call tfgrpo.score with this name?",
    "extra": "does the agent report a figure of this name beside its answer?",
}
"""What to look at where nothing has a metric, by its source; else it is a rewarder's."""
PARTIAL = "only part of the suite was selected"


@dataclass(frozen=True, slots=True)
class GateInput:
    """What the built-in rules judge."""

    run: Run
    sweeps: Sweeps
    baseline: Baseline | None
    settings: Mapping[str, object]
    metric: str = GT
    """What the minimum applies to; comparisons are of gt_score."""

    @property
    def looks(self) -> tuple[Look, ...]:
        """The looks taken at the final sweep."""
        stored = self.baseline is not None or self.run.reference is not None
        return looks_at(self.run, self.sweeps, stored=stored)

    def compared(self, name: str, before: Mapping[str, Tally], drift: float = 0.0) -> RuleResult:
        """Return what the rule called `name` finds, which compares the final sweep with `before`."""
        bar = Bar(margin=GATE_MARGIN.of(self.settings), alarm=GATE_ALARM.of(self.settings), drift=drift)
        own = before is self.sweeps.rows_before
        looks = [look if own else replace(look, before=None) for look in self.looks]
        return judge_difference(name, before, looks, bar)


def settle(results: Iterable[RuleResult], *, strict: bool) -> Settled:
    """Return the outcome of all results: one failure fails, and so does an inconclusive one when `strict`."""
    outcomes = {result.outcome for result in results}
    open_question = not outcomes.isdisjoint(OPEN)
    if "fail" in outcomes or (strict and open_question):
        return "fail"
    return "inconclusive" if open_question else "pass"


def broken(name: str, error: Exception, advice: str) -> RuleResult:
    """Return the result of a rule that raised: it fails, since its result is unknown."""
    message = f"the rule raised {type(error).__name__}: {line(str(error), 200)}"
    return RuleResult(name=name, outcome="fail", message=message, advice=advice)


def judge_complete(of: GateInput) -> RuleResult:
    """Fail closed unless every phase ran to its end; a part of the suite is never a pass."""
    run = of.run
    for result in run.phases:
        label, planned = result.phase.label, len(result.phase.scenarios)
        judged = len(result.counted) + len(result.excluded) + len(result.settled)
        if result.status != "complete" or judged < planned:
            why = f": {line(result.reason, 200)}" if result.reason else ""
            if len(of.looks) > 1 and (result.phase.concurrent or result.phase.mode == "eval"):
                had, wanted = (look.rollouts for look in of.looks[-2:])
                judged -= sum(len(group.rollouts) < result.phase.rollouts for group in result.counted)
                why = f", because {had} rollouts of each did not decide the gate and it needed {wanted}{why}"
            message = f"{label} is {result.status}, {judged} of {planned} groups are complete{why}"
            advice = "finish it with --tfgrpo-resume, or run again"
            return RuleResult(name="complete", outcome="fail", message=message, advice=advice)
    if run.status != "complete" or not run.phases:
        message = f"the run is {run.status}" if run.phases else "the run has no phase"
        message += f": {line(run.reason, 200)}" if run.reason else ""
        return RuleResult(name="complete", outcome="fail", message=message, advice="run it again")
    if run.partial_selection:
        return _not_judged("complete", _partial(run))
    ended = RuleResult(
        name="complete", outcome="pass", message=f"{len(run.phases)} of {len(run.phases)} phases ended"
    )
    sweep = of.sweeps.after
    return ended if sweep is None else _usable(sweep, ended, strict=GATE_STRICT.of(of.settings))


def _usable(sweep: PhaseResult, ended: RuleResult, *, strict: bool) -> RuleResult:
    """Return the result for a final sweep that has `ended`, by what it lacks: answers, scenarios."""
    statuses = {rollout.status for group in sweep.groups for rollout in group.rollouts}
    if statuses and "ok" not in statuses:
        first = sweep.groups[0].rollouts[0]
        why = (
            f": {first.failure.code}, {gist(first.failure.message, 300)}" if first.failure is not None else ""
        )
        message = f"no rollout of {sweep.phase.label} has an answer that counts; the first one{why}"
        world = first.failure is not None and first.failure.code in WORLD
        ask = "fix the set-up or tear-down of the scenario" if world else "is the actor set up?"
        advice = f"`tfgrpo show {first.rollout_id}` prints it in full; {ask}"
        return RuleResult(name="complete", outcome="fail", message=message, advice=advice)
    if not sweep.excluded:
        return ended
    planned, excluded = len(sweep.phase.scenarios) - len(sweep.settled), len(sweep.excluded)
    many = planned - excluded < MIN_SHARE * planned
    return replace(
        ended,
        outcome="inconclusive" if many or strict else "pass",
        message=f"{ended.message}; {skipped(sweep)}, so they do not count",
        advice="a test function that skips a bad answer hides it; let it fail instead",
        figures={"skipped": list(sweep.excluded), "of": planned},
    )


def skipped(sweep: PhaseResult) -> str:
    """Return which scenarios of a phase were skipped by their test functions, and with how many rollouts."""
    planned = len(sweep.phase.scenarios) - len(sweep.settled)
    return (
        f"{len(sweep.excluded)} of {plural(planned, 'scenario')} of {sweep.phase.label} "
        f"{'was' if len(sweep.excluded) == 1 else 'were'} skipped by their test function "
        f"({few(sweep.excluded)}), with {plural(len(sweep.excluded) * sweep.phase.rollouts, 'rollout')}"
    )


def judge_minimum(of: GateInput) -> RuleResult:
    """Fail when the eval mean, or that of a metric, is below ``gate_min_mean``, or nothing has a score."""
    minimum, named = GATE_MIN_MEAN.of(of.settings), of.metric != GT
    name, what = (f"minimum {of.metric}", of.metric) if named else ("minimum mean", "eval mean")
    if minimum is None:
        return _skipped(name, "no gate_min_mean is set")
    if why := _why_not(of):
        return _not_judged(name, why)
    rows = of.sweeps.rows_of(of.metric)
    tallies = rows.values()
    scored = sum(tally.n > 0 for tally in tallies)
    if named and not scored:
        message = f"no rollout of {plural(len(tallies), 'eval scenario')} has a score of {of.metric}"
        advice = GIVERS.get(of.metric.partition(".")[0], REWARDERS) if "." in of.metric else REWARDERS
        return RuleResult(name=name, outcome="fail", message=message, advice=advice)
    views = {}
    for view, as_zero in (("errors_excluded", False), ("errors_as_zero", True)):
        known = [mean for tally in tallies if (mean := tally.mean(errors_as_zero=as_zero)) is not None]
        views[view] = fsum(known) / len(known) if known else 0.0
    mean, with_errors = views.values()
    message = f"{what} {mean:.3f}, at least {minimum:g} required"
    if any(tally.errors for tally in tallies):
        message += f"; {with_errors:.3f} with errors as 0"
    if of.sweeps.after is not None and of.sweeps.after.excluded:
        message += f"; without {plural(len(of.sweeps.after.excluded), 'skipped scenario')}"
    passed = min(mean, with_errors) >= minimum
    found = RuleResult(
        name=name,
        outcome="pass" if passed else "fail",
        message=message,
        advice="" if passed else _lowest(of) if named else LOWEST,
        figures={"minimum": minimum, **views},
    )
    if not named:
        return found
    if (scale := of.sweeps.scale_of(of.metric)) != SHARE:
        found = replace(found, message=f"{found.message}; figures are {line(scale.words, 80)}")
    answers = of.sweeps.rows_of(GT)
    answered = sum(max(tally.n, answers[id_].n if id_ in answers else 0) for id_, tally in rows.items())
    counts = ((scored, len(rows), "scenario"), (sum(tally.n for tally in tallies), answered, "rollout"))
    return of_enough(found, of.metric, counts)


def _lowest(of: GateInput) -> str:
    return worst_rollout(of.sweeps.after, of.metric, criteria_of(of.run))


def of_enough(
    found: RuleResult, metric: str, counts: tuple[tuple[int, int, str], tuple[int, int, str]]
) -> RuleResult:
    """Return the result for a metric: of too few scenarios, or rollouts that are no errors, it is no pass.

    `counts` are those scored, all of them, and what they are.
    """
    figures = {**found.figures, "metric": metric, "n": counts[0][0]}
    missing = [(n, total, what) for n, total, what in counts if n < total]
    if not missing:
        return replace(found, figures=figures)
    n, total, what = missing[0]
    message = f"{found.message}; {n} of {plural(total, what)} have a score"
    if found.outcome == "pass" and any(n < MIN_SHARE * total for n, total, _ in missing):
        advice = "make its rewarder score every rollout, or limit the gate to domains or tags that it scores"
        return replace(found, outcome="inconclusive", message=message, advice=advice, figures=figures)
    return replace(found, message=message, figures=figures)


def judge_regression(of: GateInput) -> RuleResult:
    """Compare the final sweep with the stored baseline, paired by scenario (decision 21a)."""
    baseline, sweep, tallies = of.baseline, of.sweeps.after, of.sweeps.rows_after
    if baseline is None and of.run.reference is not None:
        return _against(of, of.run.reference)
    if baseline is None:
        return _skipped("baseline", "no baseline is set", "save one with `tfgrpo baseline save`")
    if sweep is None and of.run.status == "complete" and not of.run.partial_selection:
        of_baseline = plural(len(baseline.scenarios), "scenario")
        message = f"the run has no eval sweep to compare with the baseline of {of_baseline}"
        advice = f"add eval scenarios, or {save_again(baseline)}"
        return RuleResult(name="baseline", outcome="fail", message=message, advice=advice)
    if sweep is None or _why_not(of):
        return _not_judged("baseline", _why_not(of))
    stamps = compared_stamps(of.run)
    unfair = why_unfair(baseline, temperature=sweep.phase.temperature, stamps=stamps)
    if unfair:
        result = RuleResult(name="baseline", outcome="not_judged", message=unfair, advice=UNFAIR_ADVICE)
    else:
        notes = what_differs(baseline, actor=actor_name(of.run), stamps=stamps, tallies=tallies)
        drift = drift_of(baseline)
        result = of.compared("baseline", baseline.scenarios, drift or 0.0)
        said = f"drift of {drift:.3f} is covered" if drift is not None else not_covered(baseline)
        figures = {**result.figures, "drift": drift}
        result = replace(result, message=f"{result.message}; {said}", figures=figures)
        if notes:
            message = f"{result.message}; the baseline was {', '.join(notes)}"
            result = replace(result, message=message, figures={**result.figures, "notes": notes})
    present = {s.id: s.stamp for s in of.run.scenarios if s.split == "eval"}
    return held_to(result, baseline, present, strict=GATE_STRICT.of(of.settings))


def _against(of: GateInput, reference: Reference) -> RuleResult:
    """Compare the final sweep with that of a reference, which the run ran itself."""
    before = of.sweeps.before
    if before is None or of.sweeps.after is None or _why_not(of):
        return _not_judged("baseline", _why_not(of) or "the run has no sweep of the reference")
    of_packs = [{pack.stamp for pack in packs} for packs in (reference.packs, of.run.packs)]
    if before.library_hash == of.sweeps.after.library_hash and of_packs[0] == of_packs[1]:
        message = f"the reference {line(reference.title, 120)} is what the run itself uses"
        return RuleResult(name="baseline", outcome="pass", message=message)
    if reference.kind == "placebo" and not before.groups:
        return _not_judged("baseline", IMPOSSIBLE)
    result = of.compared("baseline", of.sweeps.rows_before)
    when = "pair by pair" if before.phase.concurrent else "before"
    message = f"{result.message}; reference {line(reference.title, 120)}, evaluated {when} in this run"
    if before.shared:
        alike = plural(len(before.shared), "scenario", "has", "have")
        message += f", where {alike} the same prompt and share the answers"
    figures = {**result.figures, "reference": reference.stamp}
    return replace(result, message=message, figures=figures)


def held_to(
    result: RuleResult, baseline: Baseline, present: Mapping[str, str], *, strict: bool
) -> RuleResult:
    """Return the result of a comparison, worse where the baseline itself does not hold any more.

    `present` are the task stamps of the eval split by id. A scenario that it lost fails the result: a gate
    must not be had by removing what is hard. A pass is open where a task is another now and, when `strict`,
    where the file has no hash and so may have been edited (decision 21a).
    """
    lost = [id_ for id_ in baseline.scenarios if id_ not in present]
    changed = [id_ for id_, row in baseline.scenarios.items() if present.get(id_, row.stamp) != row.stamp]
    if lost:
        verb = "are" if len(lost) > 1 else "is"
        message = f"{_named(lost)} of the baseline {verb} no longer in the eval split; {result.message}"
        advice = f"removed, renamed, ignored or moved on purpose? then {save_again(baseline)}"
        figures = {**result.figures, "lost": lost}
        return replace(result, outcome="fail", message=message, advice=advice, figures=figures)
    if changed and result.outcome == "pass":
        message = f"{result.message}; {_named(changed)} not compared, because the task changed"
        figures = {**result.figures, "changed": changed}
        return replace(
            result, outcome="inconclusive", message=message, advice=save_again(baseline), figures=figures
        )
    if baseline.unsigned and strict and result.outcome == "pass":
        advice = f"review the file, and {save_again(baseline)}, which signs it"
        return replace(result, outcome="inconclusive", advice=advice)
    return result


def _named(ids: Sequence[str]) -> str:
    return f"{len(ids)} scenarios ({few(ids)})" if len(ids) > 1 else f"scenario {few(ids)}"


def save_again(baseline: Baseline) -> str:
    """Return the advice to save a baseline again."""
    return f"save the baseline again with `tfgrpo baseline save {line(baseline.name, 60)}`"


def judge_gain(of: GateInput) -> RuleResult:
    """Compare the final sweep with the run's own baseline sweep: learning must not have made things worse."""
    sweeps, trained = of.sweeps, any(result.phase.trains for result in of.run.phases)
    if of.run.reference is not None:
        return _skipped("gain", "the baseline sweep is that of the reference")
    if sweeps.before is None:
        if trained and sweeps.after is None and of.run.status == "complete" and not of.run.partial_selection:
            advice = "set split: eval for some scenarios"
            return replace(_not_judged("gain", "no eval scenario, so nothing was measured"), advice=advice)
        if not trained and sweeps.after is not None and sweeps.after.phase.epoch > 1:
            message = "no train scenario, so nothing was learned and one sweep is enough"
            return _skipped("gain", message, "set split: train for some scenarios")
        return _skipped("gain", "the run has no baseline sweep")
    if sweeps.after is None or _why_not(of):
        return _not_judged("gain", _why_not(of))
    if sweeps.before.library_hash == sweeps.after.library_hash:
        return _skipped("gain", "both sweeps used the same library")
    return of.compared("gain", sweeps.rows_before)


def judge_placebo(of: GateInput) -> RuleResult | None:
    """Compare a gain with that of a placebo: what any text does is no gain of lessons; None without one."""
    name, found = "placebo", placebo_block(of.run, of.sweeps)
    if found is None:
        return None
    if why := _why_not(of):
        return _not_judged(name, why)
    if not found["possible"]:
        advice = (
            "set a family for each train scenario, or learn in several domains; or run without placebo_sweep"
        )
        message = IMPOSSIBLE if found["impossible"] else "no prompt of the final sweep carried a lesson"
        return RuleResult(name=name, outcome="inconclusive", message=message, advice=advice)
    over = compare(of.sweeps.rows_placebo, of.sweeps.rows_after)
    told = f"gain over {found['beside']} {_signed(found['total'])}, over placebo {sentence(over)}"
    gained = claimed(of.sweeps.rows_before, of.sweeps.rows_after, round(ALPHA / found["level"]))
    outcome: Outcome = "pass"
    if found["side"] == "worse":
        outcome, told = "fail", f"worse than placebo: {told}"
    elif gained == "better" and found["side"] is None:
        any_text = "any text does this" if found["gain_side"] == "better" else "not shown better than placebo"
        outcome, told = "inconclusive", f"{any_text}: {told}"
    advice = "" if outcome == "pass" else "read the lessons before you promote them; other texts did as much"
    return RuleResult(name=name, outcome=outcome, message=told, advice=advice, figures=found["over"])


def _signed(difference: float | None) -> str:
    return "unknown" if difference is None else f"{difference:+.3f}"


def judge_errors(of: GateInput) -> RuleResult:
    """Fail when the final sweep has more errors than ``gate_max_errors``."""
    limit, sweep = GATE_MAX_ERRORS.of(of.settings), of.sweeps.after
    if limit is None:
        return _skipped("errors", "no gate_max_errors is set")
    if sweep is None:
        return _not_judged("errors", _why_not(of))
    errors = sum(rollout.status == "error" for group in sweep.groups for rollout in group.rollouts)
    return RuleResult(
        name="errors",
        outcome="pass" if errors <= limit else "fail",
        message=f"{plural(errors, 'error')} in the final sweep, at most {limit} allowed",
        advice=""
        if errors <= limit
        else "check the error codes in the report, fix the infrastructure problem, and run again",
        figures={"errors": errors, "limit": limit},
    )


def judge_cost(of: GateInput) -> RuleResult:
    """Fail when a solved rollout of the final sweep costs more than ``gate_max_cost_per_success_usd``."""
    name = "cost per success"
    limit, sweep = GATE_MAX_COST_PER_SUCCESS_USD.of(of.settings), of.sweeps.after
    if limit is None:
        return _skipped(name, "no gate_max_cost_per_success_usd is set")
    if sweep is None:
        return _not_judged(name, _why_not(of))
    cost, successes = _cost(sweep), sum(solved(group) for group in sweep.groups)
    figures = {"cost_usd": cost, "successes": successes, "limit": limit}
    if cost is None:
        message, advice = (
            "the cost of some rollouts is unknown",
            "make the actor report cost_usd in its frames",
        )
        return RuleResult(name=name, outcome="inconclusive", message=message, advice=advice, figures=figures)
    if not successes:
        message = f"no rollout was solved, for ${cost:.4f}"
        return RuleResult(name=name, outcome="fail", message=message, figures=figures)
    each = cost / successes
    return RuleResult(
        name=name,
        outcome="pass" if each <= limit else "fail",
        message=f"${each:.4f} per solved rollout, at most ${limit:g} allowed",
        figures={**figures, "cost_per_success_usd": each},
    )


def judge_contamination(leaks: Sequence[LeakedAnswer], settings: Mapping[str, object]) -> RuleResult:
    """Fail when lessons hold eval answers (decision 21); under ``contamination=warn`` leave it open."""
    if not leaks:
        return RuleResult(name="contamination", outcome="pass", message="no lesson contains an eval answer")
    named = [f"{leak.experience_id} (scenario {leak.scenario_id})" for leak in leaks]
    return RuleResult(
        name="contamination",
        outcome="inconclusive" if CONTAMINATION.of(settings) == "warn" else "fail",
        message=(
            f"contaminated: {plural(len(leaks), 'lesson', 'contains', 'contain')} "
            f"an eval answer: {few(named)}"
        ),
        advice="remove those lessons, or move their scenarios to the train split",
        figures={"leaks": [to_wire(leak) for leak in leaks]},
    )


BUILT_IN: tuple[Callable[[GateInput], RuleResult | None], ...] = (
    judge_complete,
    judge_minimum,
    judge_regression,
    judge_gain,
    judge_placebo,
    judge_errors,
    judge_cost,
)


def _cost(sweep: PhaseResult) -> float | None:
    costs = [rollout.cost_usd for group in sweep.groups for rollout in group.rollouts]
    return None if None in costs else fsum(cost for cost in costs if cost is not None)


def _skipped(name: str, message: str, advice: str = "") -> RuleResult:
    return RuleResult(name=name, outcome="skipped", message=message, advice=advice)


def _not_judged(name: str, message: str) -> RuleResult:
    advice = "run the whole suite" if message.startswith(PARTIAL) else ""
    return RuleResult(name=name, outcome="not_judged", message=message, advice=advice)


def _partial(run: Run) -> str:
    """Return that only part of the suite was selected, and what left out the rest where that is known."""
    why = run.preflight.get("partial")
    return PARTIAL + (f": {line(why, 300)}" if why else "")


def _why_not(of: GateInput) -> str:
    """Return why means of the final sweep cannot be judged; empty when they can."""
    if of.run.partial_selection:
        return _partial(of.run)
    sweep = of.sweeps.after
    if sweep is None:
        return "the run has no final sweep"
    return "" if sweep.status == "complete" else "the final sweep did not end"
