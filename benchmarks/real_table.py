"""The table of `real_model.py`: what each arm gains over none, with the project's own statistics."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan

from real_arms import ALL, DEFAULT, HAND, HAND_PLACEBO, NONE, PLACEBO, PLACEBOS, Side, Sides

from pytest_tfgrpo.metrics.comparison import Comparison, Tally, compare, figures
from pytest_tfgrpo.metrics.significance import p_of
from pytest_tfgrpo.numerics.stats import holm

BAR, KEPT = 0.2, 0.5
"""What lessons by hand must move the model by, and the share of it that the tool must keep then."""
ORDER = (NONE, HAND, HAND_PLACEBO, DEFAULT, PLACEBO, ALL)
COLUMNS = (
    "lessons", "arm", "mean", "gain", "95 % interval", "p (Holm)", "seen from", "cut", "tokens",
    "in a prompt", "in the library", "claimed",
)  # fmt: skip


def pooled(none: Side, side: Side) -> Comparison:
    """Return the comparison of an arm with none over the seeds: a scenario is one, with all its rollouts."""
    before: dict[str, Tally] = {}
    after: dict[str, Tally] = {}
    for seed, rows in side.tallies.items():
        for id_, row in rows.items():
            if id_ in none.tallies[seed]:
                after[id_] = _sum(after.get(id_), row)
                before[id_] = _sum(before.get(id_), none.tallies[seed][id_])
    return compare(before, after)


def _sum(one: Tally | None, other: Tally) -> Tally:
    if one is None:
        return other
    return Tally(
        stamp=other.stamp,
        n=one.n + other.n,
        sum=one.sum + other.sum,
        sum_sq=one.sum_sq + other.sum_sq,
        errors=one.errors + other.errors,
        domain=other.domain,
        family=other.family,
    )


def table(sides: Sides) -> list[str]:
    """Return the lines of the table in Markdown; p is corrected for all arms in it but placebos."""
    compared = {key: pooled(sides[key[0], NONE], side) for key, side in sides.items()}
    tested = [key for key in compared if key[1] not in (NONE, *PLACEBOS)]
    p = dict(zip(tested, holm([_p(compared[key]) for key in tested]).tolist(), strict=True))
    lines = ["| " + " | ".join(COLUMNS) + " |", "| --- " * len(COLUMNS) + "|"]
    for place, name in sorted(sides, key=lambda key: (key[0], ORDER.index(key[1]))):
        side = sides[place, name]
        row = [place, name, *_gain(name, compared[place, name], p.get((place, name))), *_answers(side)]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def _p(compared: Comparison) -> float:
    p = p_of(compared)
    return nan if p is None else p


def _gain(name: str, compared: Comparison, p: float | None) -> list[str]:
    if not compared.ids:
        return ["not possible", "", "", "", ""]
    found = figures(compared)
    mean = f"{compared.after:.3f}"
    if name == NONE:
        return [mean, "", "", "", ""]
    low_high, least = found["ci95"], found["detectable"]
    return [
        mean,
        f"{compared.difference.mean:+.3f}",
        "none" if low_high is None else f"{low_high[0]:+.3f} to {low_high[1]:+.3f}",
        "" if p is None else "unknown" if p != p else f"{p:.3f}",
        "" if least is None else f"{least:.3f}",
    ]


def _answers(side: Side) -> list[str]:
    answers = max(side.answers, 1)
    shown = [f"{side.cut / answers:.1%}", f"{side.tokens / answers:.0f}", f"{side.carried / answers:.1f}"]
    return [*shown, ", ".join(side.lessons), ", ".join(side.claims)]


def findings(sides: Sides) -> Iterator[str]:
    """Yield what the bar says of lessons beside the task, and the smallest effect that could be seen."""
    none = sides["beside", NONE]
    at = {name: pooled(none, sides["beside", name]) for name in ORDER if ("beside", name) in sides}
    hand, default = at[HAND], at[DEFAULT]
    sized = [figures(compared)["detectable"] for name, compared in at.items() if name in (HAND, DEFAULT, ALL)]
    seen = [least for least in sized if least is not None]
    low = hand.difference.low
    if hand.difference.mean >= BAR and low is not None and low > 0:
        share = default.difference.mean / hand.difference.mean
        yield (
            f"Lessons by hand move this model by {_moved(hand)}; the "
            f"default run keeps {share:.0%} of that ({'at least' if share >= KEPT else 'less than'} half)"
        )
        for name in (HAND_PLACEBO, PLACEBO):
            yield f"The {name} moves it by {_moved(at.get(name))}"
    else:
        yield f"Lessons by hand move this model by {_moved(hand)}, not by {BAR} or more"
    if seen:
        yield f"Smallest gain that this plan shows in 4 of 5 runs: {min(seen):.3f} to {max(seen):.3f}"


def _moved(compared: Comparison | None) -> str:
    """Return a gain with its lower bound; a placebo needs lessons of two families or domains."""
    if compared is None or not compared.ids:
        return "an unknown amount: it was not possible"
    low = compared.difference.low
    bound = "unknown" if low is None else f"{low:+.3f}"
    return f"{compared.difference.mean:+.3f} (lower bound {bound})"
