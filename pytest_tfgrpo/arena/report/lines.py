"""An arena as lines of a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tfgrpo.arena.report.sentences import answer, first_sentence, remarks
from pytest_tfgrpo.core.texts.text import duration, interval, line, money, number, signed, table, wrapped

LONGEST = 24
"""Characters of a name."""


def arena_lines(value: Mapping[str, Any], width: int = 80) -> list[str]:
    """Return the result in a sentence, the gains, what they took, the other pairs, and remarks."""
    others = [pair for pair in value["pairs"] if pair["before"] != value["over"]]
    blocks = [
        wrapped(f"arena  {first_sentence(value)}", width, hanging=" " * 7),
        table(["side", "score", "gain", "95 % interval", "Holm's p", "result"], gain_rows(value)),
        table(
            ["training", "rollouts", "teacher calls", "cost", "time", "tokens added"], training_rows(value)
        ),
        table(["pair", "difference", "95 % interval", "Holm's p", "result"], pair_rows(others))
        if others
        else [],
        [text for said in remarks(value) for text in wrapped(said, width, hanging="  ")],
    ]
    return [text for i, block in enumerate(filter(None, blocks)) for text in ([""] * (i > 0) + block)]


def gain_rows(value: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each side: score, gain with interval and p, and what it came to."""
    pairs = {pair["after"]: pair for pair in value["pairs"] if pair["before"] == value["over"]}
    return [
        [
            line(side["name"], LONGEST),
            number(side["mean"]),
            *(
                _figures(pairs[side["name"]])
                if side["name"] in pairs
                else ["-", "-", "-", _alone(side, value)]
            ),
        ]
        for side in value["sides"]
    ]


def training_rows(value: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each side: what its training took, and the tokens that it adds to a prompt."""
    return [
        [
            line(side["name"], LONGEST),
            str(side["rollouts"]),
            str(side["teacher_calls"]),
            money(side["usd"]),
            duration(1000 * side["wall_s"] or None),
            "?" if side["tokens_added"] is None else f"{round(side['tokens_added']):+d}",
        ]
        for side in value["sides"]
    ]


def pair_rows(pairs: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return a row for each pair of sides, the one with the higher score first."""
    return [
        [f"{line(pair['after'], LONGEST)} - {line(pair['before'], LONGEST)}", *_figures(pair)]
        for pair in map(_upwards, pairs)
    ]


def _upwards(pair: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a pair turned so that its difference is not negative."""
    found = pair["difference"]
    if not found["n"] or found["difference"] >= 0:
        return pair
    ci95 = found["ci95"] and [-bound for bound in reversed(found["ci95"])]
    turned = {**found, "difference": -found["difference"], "ci95": ci95}
    claim = pair["claim"] and ("better" if pair["claim"] == "worse" else "worse")
    return {**pair, "before": pair["after"], "after": pair["before"], "difference": turned, "claim": claim}


def _figures(pair: Mapping[str, Any]) -> list[str]:
    found = pair["difference"]
    return [
        signed(found["difference"]),
        interval(found["ci95"], "+.3f"),
        chance(found["p_adjusted"]),
        answer(pair),
    ]


def chance(p: float | None) -> str:
    """Return a p for a table."""
    return "-" if p is None else "< .001" if p < 0.001 else number(p)


def _alone(side: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    return "gains are over it" if side["name"] == value["over"] else "no score"
