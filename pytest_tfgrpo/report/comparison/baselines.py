"""Two stored baselines side by side: the result of the gate, and where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import few, interval, line, number, plural, signed, table, wrapped
from pytest_tfgrpo.gate.baseline import UNFAIR_ADVICE, Baseline, of_metric, what_differs, why_unfair
from pytest_tfgrpo.gate.difference import Bar, judge_difference, share_level
from pytest_tfgrpo.gate.looks import one_look
from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.gate.rules import held_to
from pytest_tfgrpo.metrics.comparison import (
    Comparison,
    compare,
    figures,
    in_domain,
    on_scale,
    sentence,
)
from pytest_tfgrpo.report.gates import OUTCOMES
from pytest_tfgrpo.report.named_metrics import titled

REGRESSIONS = 10
NAMED = 10
"""Scenarios that are listed by name before the rest is counted."""
WIDTH = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """What a comparison of two baselines found."""

    lines: tuple[str, ...]
    """For a reader."""
    verdict: RuleResult
    """As the gate judges; ``not_judged`` when the two were not measured alike."""


def compare_baselines(before: Baseline, after: Baseline, *, bar: Bar, strict: bool = False) -> Compared:
    """Return how `after` compares with `before`, which is what the gate would compare it with."""
    unfair = why_unfair(before, temperature=after.temperature, stamps=after.stamps)
    if unfair:
        verdict = RuleResult(name="baseline", outcome="not_judged", message=unfair, advice=UNFAIR_ADVICE)
    else:
        found = judge_difference("baseline", before.scenarios, one_look(after.scenarios), bar)
        (verdict,) = share_level([found])
    present = {id_: row.stamp for id_, row in after.scenarios.items()}
    verdict = held_to(verdict, before, present, strict=strict)
    return Compared(lines=tuple(_lines(before, after, verdict, bar)), verdict=verdict)


def _lines(before: Baseline, after: Baseline, verdict: RuleResult, bar: Bar) -> Iterator[str]:
    for sign, baseline in (("-", before), ("+", after)):
        yield from _head(sign, baseline)
    for note in _differing(before, after):
        yield from wrapped(f"warning: {note}", WIDTH, hanging="  ")
    pairs = compare(before.scenarios, after.scenarios)
    yield from wrapped(f"difference  {sentence(pairs)}", WIDTH, hanging=" " * 12)
    if any(row.errors for b in (before, after) for row in b.scenarios.values()):
        as_zero = compare(before.scenarios, after.scenarios, errors_as_zero=True)
        yield from wrapped(f"errors as 0  {sentence(as_zero)}", WIDTH, hanging=" " * 13)
    yield from _metrics(before, after)
    yield from _domains(before, after, bar)
    yield from _regressions(pairs)
    yield from _alone(before, after)
    words = [OUTCOMES[verdict.outcome]]
    if verdict.outcome == "not_judged":
        words.append(verdict.message)
    else:
        unseen = verdict.figures.get("answer") == "unseen"
        words += [f"cannot see a drop of {bar.alarm:g}"] if unseen else []
        words.append(f"margin {bar.margin:g}")
    yield from wrapped("; ".join([*words, *filter(None, [verdict.advice])]), WIDTH, "result  ", " " * 8)


def _head(sign: str, baseline: Baseline) -> Iterator[str]:
    means = [mean for row in baseline.scenarios.values() if (mean := row.mean()) is not None]
    errors = sum(row.errors for row in baseline.scenarios.values())
    shown = number(sum(means) / len(means) if means else None)
    yield (
        f"{sign} {line(baseline.name, 60)}: mean {shown} over {plural(len(means), 'scenario')}, "
        f"{plural(errors, 'error')}"
    )
    yield (
        f"  run {line(baseline.run_id, 60)}, actor {line(baseline.actor, 60)} at temperature "
        f"{baseline.temperature:g}, library {line(baseline.library)[:12] or 'none'}"
    )


def _differing(before: Baseline, after: Baseline) -> list[str]:
    """Return how the two differ besides their scores."""
    notes = what_differs(before, actor=after.actor, stamps=after.stamps, tallies=after.scenarios)
    found = [f"{line(before.name, 60)} was {note}" for note in notes]
    unfair = why_unfair(before, temperature=after.temperature, stamps=after.stamps)
    return [f"not comparable: {unfair}"] * bool(unfair) + found


def _metrics(before: Baseline, after: Baseline) -> list[str]:
    """Return the table of the metrics that both know on one scale; not of what repeats their scores."""
    rows = []
    for name, scale in after.metrics.items():
        old, new = of_metric(before, name), of_metric(after, name)
        if old is None or new is None or before.metrics[name] != scale:
            continue
        if [_sums(one) for one in (old, new)] == [_sums(one) for one in (before, after)]:
            continue
        found = on_scale(scale, figures(compare(old.scenarios, new.scenarios)))
        means = [number(found["before"]), number(found["after"]), signed(found["difference"])]
        about = {"unit": scale.unit, "better": scale.better}
        rows.append([titled(name, about), str(found["n"]), *means, interval(found["ci95"], "+.3f")])
    head = ["by metric", "scenarios", "before", "after", "change", "95 % interval"]
    return table(head, rows) if rows else []


def _sums(of: Baseline) -> dict[str, tuple[int, float]]:
    return {id_: (row.n, row.sum) for id_, row in of.scenarios.items()}


def _domains(before: Baseline, after: Baseline, bar: Bar) -> list[str]:
    """Return the table of domains, where both know them, with what Holm's correction leaves of each."""
    known = {id_: row.domain for b in (before, after) for id_, row in b.scenarios.items() if row.domain}
    sides = [
        {id_: replace(row, domain=known.get(id_, "")) for id_, row in b.scenarios.items()}
        for b in (before, after)
    ]
    domains = sorted(set(known.values()))
    if len(domains) < 2:
        return []
    parts = {d: (in_domain(sides[0], d), in_domain(sides[1], d)) for d in domains}
    found = share_level(judge_difference("", old, one_look(new), bar) for old, new in parts.values())
    rows = [
        _domain_row(domain, compare(*parts[domain]), result)
        for domain, result in zip(parts, found, strict=True)
    ]
    return table(["by domain", "scenarios", "before", "after", "change", "95 % interval", "Holm p"], rows)


def _domain_row(domain: str, pairs: Comparison, result: RuleResult) -> list[str]:
    found: Mapping[str, Any] = result.figures
    return [
        line(domain, 24),
        str(len(pairs.ids)),
        number(pairs.before),
        number(pairs.after),
        f"{pairs.difference.mean:+.3f}" if pairs.ids else "-",
        interval(found.get("ci95"), "+.3f"),
        number(found.get("p_holm")),
    ]


def _regressions(pairs: Comparison) -> list[str]:
    lost = sorted(
        (after - before, id_, before, after)
        for id_, before, after in zip(pairs.ids, pairs.before_K, pairs.after_K, strict=True)
        if after < before
    )
    rows = [
        [line(id_, 40), number(before), number(after), f"{change:+.3f}"]
        for change, id_, before, after in lost[:REGRESSIONS]
    ]
    if not rows:
        return []
    more = [f"  ... {len(lost) - len(rows)} more got worse"] if len(lost) > len(rows) else []
    return [*table(["largest regressions", "before", "after", "change"], rows), *more]


def _alone(before: Baseline, after: Baseline) -> Iterator[str]:
    """Yield the scenarios that are in one of the two alone, and those whose task is another now."""
    old, new = before.scenarios, after.scenarios
    changed = [id_ for id_ in new if id_ in old and old[id_].stamp != new[id_].stamp]
    for text, ids in (
        (f"only in {line(before.name, 60)}", [id_ for id_ in old if id_ not in new]),
        (f"only in {line(after.name, 60)}", [id_ for id_ in new if id_ not in old]),
        ("changed tasks, not compared", changed),
    ):
        if ids:
            yield from wrapped(f"{text}: {_named(ids)}", WIDTH, hanging="  ")


def _named(ids: Sequence[str]) -> str:
    return f"{len(ids)} ({few(ids, NAMED)})"
