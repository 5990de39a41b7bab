"""The effect of each lesson, the value `attribution` of a report, on the terminal."""

from __future__ import annotations

from collections import Counter

from pytest_tfgrpo.core.report_blocks import AttributionBlock, EffectRow
from pytest_tfgrpo.core.texts.text import interval, line, plural, wrapped
from pytest_tfgrpo.numerics.attribution import MIN_ARM

TITLE = "lessons' effect  "
ORDER = ("harmful", "helpful", "unclear", "not_estimable")
WORDS = {"not_estimable": "not yet known"}


def attribution_lines(value: AttributionBlock | None, width: int, *, every: bool) -> list[str]:
    """Return the lines on the key `attribution` of a report; `every` adds what each estimated lesson does."""
    if value is None or not value["lessons"]:
        return []
    lessons = sorted(value["lessons"], key=lambda v: (ORDER.index(v["verdict"]), v["shrunken"] or 0.0))
    counts = Counter(lesson["verdict"] for lesson in lessons)
    told = ", ".join(
        f"{counts[verdict]} {WORDS.get(verdict, verdict)}" for verdict in ORDER if counts[verdict]
    )
    if set(counts) == {"not_estimable"}:
        told = f"not yet known: it takes {MIN_ARM} groups with a lesson and {MIN_ARM} without"
    text = f"{told}; each left out of {value['lesson_dropout']:.0%} of the training groups at random"
    if not value["groups"]:
        text = f"{told}; the run is too short for that, so none was left out"
    retired = sum(lesson["verdict"] == "harmful" and not lesson["in_force"] for lesson in lessons)
    if retired:
        text += f"; harmful and retired: {retired}"
    found = wrapped(text, width, TITLE, "  ")
    if value["unread"]:
        more = f" (and {len(value['unread']) - 1} more)" if len(value["unread"]) > 1 else ""
        found += wrapped(f"warning: {line(value['unread'][0], 200)}{more}", width, "  ", "  ")
    estimated = [lesson for lesson in lessons if lesson["effect"] is not None]
    if every and estimated:
        found += wrapped(
            "mean reward of training groups with it minus without, drawn towards the mean of the lessons; "
            "alone, with its interval and p adjusted by Holm's method:",
            width,
            "  ",
        )
        for lesson in estimated:
            found += wrapped(_row(lesson), width, "  ", " " * 4)
    return found


def _row(lesson: EffectRow) -> str:
    gone = "" if lesson["in_force"] else "removed: "
    what = f"{gone}{lesson['polarity']} {line(lesson['domain'], 20)}: {line(lesson['text'], 300)}"
    spread, p = interval(lesson["ci95"], "+.3f"), probability(lesson["p_adjusted"])
    return (
        f"{lesson['shrunken']:+.3f}; alone {lesson['effect']:+.3f} ({spread}), p {p}, "
        f"{plural(lesson['included'], 'group')} with, {lesson['left_out']} without: {what}"
    )


def probability(p: float | None) -> str:
    """Return a p value for a table; ``-`` when there is none."""
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"
