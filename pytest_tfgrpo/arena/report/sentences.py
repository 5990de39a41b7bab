"""What an arena comes to in plain sentences: first the result, then what a reader must know of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.texts.text import interval, line, number, plural, scenarios_of, signed

PLACEBO = "placebo"
"""The side whose prompts carry the right number of wrong lessons: what gains no more than it is any text."""


def first_sentence(value: Mapping[str, Any]) -> str:
    """Return the result of an arena: who gained for certain, and from whom it cannot be told."""
    over, gains = value["over"], gain_pairs(value)
    if not gains:
        scored = f"only {line(over)} has" if over else "no side has"
        return f"nothing to compare: {scored} a score"
    changed = [pair for pair in gains if not pair["alike"]]
    if not changed:
        return f"no side changed a prompt of the eval split, so that none differs from {line(over)}"
    if all(pair["obstacles"] for pair in changed):
        return f"not enough data to tell the sides apart: {changed[0]['obstacles'][0]}"
    worse = "".join(
        f"; {line(pair['after'])} is worse than {line(over)} ({signed(_gain(pair))})"
        for pair in changed
        if pair["claim"] == "worse"
    )
    if best := winner(value):
        return _won(value, best) + worse
    placebo = next((pair for pair in _better(gains) if pair["after"] == PLACEBO), None)
    return (_nobody(changed) if placebo is None else _placebo_alone(placebo)) + worse


def winner(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the pair of the optimizer with the largest gain that can be claimed; None without any."""
    found = [pair for pair in _better(gain_pairs(value)) if pair["after"] != PLACEBO]
    return max(found, key=_gain, default=None)


def _better(pairs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [pair for pair in pairs if pair["claim"] == "better"]


def gain_pairs(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the pairs of the side that gains are over with each other one that has scores in common."""
    return [pair for pair in value["pairs"] if pair["before"] == value["over"] and pair["difference"]["n"]]


def answer(pair: Mapping[str, Any]) -> str:
    """Return in a word or two what a pair came to."""
    if pair["alike"]:
        return "same prompts"
    if pair["obstacles"]:
        return "too little data"
    if pair["claim"]:
        return str(pair["claim"])
    return "not sure" if pair["equal_within"] is None else f"equal within {pair['equal_within']:g}"


def remarks(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader must know beyond the figures, each as a sentence without its full stop."""
    for side in value["sides"]:
        if side["note"]:
            yield f"{line(side['name'])}: {line(side['note'], 300)}"
    if limited := [side["name"] for side in value["sides"] if side["teacher_limited"]]:
        yield (
            f"the limit of {plural(value['budget_teacher_calls'], 'teacher call')} stopped "
            f"{_listed(limited)}; give more with --budget-teacher-calls"
        )
    if errors := [side for side in value["sides"] if side["errors"]]:
        counts = ", ".join(f"{line(side['name'])} {side['errors']}" for side in errors)
        yield (
            f"rollouts of the final sweep without a score: {counts}; a claim holds with errors left out and "
            "with errors as 0"
        )
    yield from _settling(value)
    if value["comparisons"] > 1:
        yield (
            f"each p is corrected for {value['comparisons']} comparisons (Holm); an interval is that of one "
            "difference alone"
        )
    if value["earlier"]:
        yield (
            f"earlier runs and arenas of this task on the same eval scenarios: {value['earlier']}; the best "
            "of several looks better than it is, so confirm it on a fresh eval split"
        )
    if gain_pairs(value):
        yield "each side was trained once: with another seed an optimizer may come out better or worse"


def _won(value: Mapping[str, Any], pair: Mapping[str, Any]) -> str:
    """Return the sentence about the side with the largest gain that can be claimed."""
    name, difference = pair["after"], pair["difference"]
    own = [_turned(other, name) for other in value["pairs"] if name in (other["before"], other["after"])]
    rest = [other for other in own if other["other"] != value["over"] and other["n"] and not other["alike"]]
    said = f"{line(name)} gained {_over(pair)}"
    placebo = next((other for other in rest if other["other"] == PLACEBO), None)
    if placebo is not None and placebo["claim"] == "better":
        said += f" and {signed(placebo['difference'])} over {PLACEBO}"
    if difference["just_these"]:
        count = scenarios_of(difference["n"], difference["families"], True)
        said += f", on {count}"
    parts = []
    if placebo is not None and placebo["claim"] != "better":
        parts.append(f"it cannot be told from {PLACEBO}, so any text may do this")
    others = [other for other in rest if other is not placebo]
    for words, found in (
        ("it cannot be told from", [o for o in others if o["claim"] is None and o["equal_within"] is None]),
        ("it is as good as", [o for o in others if o["equal_within"] is not None]),
        ("it is better than", [o for o in others if o["claim"] == "better"]),
        ("it is worse than", [o for o in others if o["claim"] == "worse"]),
    ):
        if found:
            parts.append(f"{words} {_listed([other['other'] for other in found])}")
    return "; ".join([said, *parts])


def _turned(pair: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a pair as seen from the side `name`."""
    forth = pair["after"] == name
    claim, found = pair["claim"], pair["difference"]
    flipped = {"better": "worse", "worse": "better"}
    return {
        "other": pair["before"] if forth else pair["after"],
        "n": found["n"],
        "difference": found["difference"] if forth or not found["n"] else -found["difference"],
        "claim": claim if forth or claim is None else flipped[claim],
        "equal_within": pair["equal_within"],
        "alike": pair["alike"],
    }


def _placebo_alone(pair: Mapping[str, Any]) -> str:
    over = line(pair["before"])
    return f"any text does this: {PLACEBO} gained {_over(pair)}, and no optimizer can be told from {over}"


def _nobody(pairs: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentence for an arena in which no side gained for certain."""
    best, over = max(pairs, key=_gain), line(pairs[0]["before"])
    margins = {pair["equal_within"] for pair in pairs}
    if None not in margins:
        return f"no side differs from {over} by more than {max(margins):g}"
    detectable = best["difference"]["detectable"]
    seen = f"; a difference of {number(detectable)} is found in 4 of 5 such arenas" if detectable else ""
    gain = _over(best, "")
    return f"no side gained over {over} for certain: the best, {line(best['after'])}, differs by {gain}{seen}"


def _settling(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield what would tell the best side from that of reference, or else from the next best."""
    means = {side["name"]: side["mean"] for side in value["sides"] if side["mean"] is not None}
    best, *rest = sorted(means, key=lambda name: -means[name]) or [""]
    for other in (value["over"], *rest[:1]):
        for pair in value["pairs"]:
            if {pair["before"], pair["after"]} == {best, other} and pair["settling"]:
                yield f"to tell {line(best)} from {line(other)}, {pair['settling']}"
                return


def _over(pair: Mapping[str, Any], over: str = " over {}") -> str:
    """Return a difference with its interval, and with what it is over."""
    found = pair["difference"]
    spread = f" (95 % interval {interval(found['ci95'], '+.3f')})" if found["ci95"] else ""
    return f"{signed(found['difference'])}{over.format(line(pair['before']))}{spread}"


def _gain(pair: Mapping[str, Any]) -> float:
    return float(pair["difference"]["difference"])


def _listed(names: Sequence[str]) -> str:
    *first, last = map(line, names)
    return f"{', '.join(first)} and {last}" if first else last
