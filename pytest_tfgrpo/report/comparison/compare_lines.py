"""Runs side by side as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.texts.text import interval, line, number, scenarios_of, signed, table, wrapped
from pytest_tfgrpo.report.comparison.compare_columns import (
    SHOWN,
    changed,
    differing,
    heads,
    metrics,
    pairs,
    runs,
    sides,
)

SHORT = 5
DIFFERING = 10
"""Scenarios that are shown of several runs."""


def compare_lines(
    value: Mapping[str, Any], width: int = 80, *, verbosity: int = 0, example: Sequence[str] = ()
) -> list[str]:
    """Return the lines of a comparison: its result, an `example` of `example_lines`, then tables.

    Below 0 only the result is shown; from 1 all lessons and all ids that are in one run only.
    """
    head = [*_results(value, width), *_names(value, width)]
    if verbosity < 0:
        return head
    every = verbosity > 0
    blocks = [
        head,
        list(example),
        table(["final sweep", *heads(value)], sides(value, width)),
        _metrics(value),
    ]
    for letter, one in pairs(value):
        blocks += [_domains(one["domains"], letter)] if letter == "B" or every else []
    blocks += (
        [_several(value, width)]
        if value["further"]
        else [_changes(value, kind) for kind in ("regressions", "gains")]
    )
    for letter, one in pairs(value):
        blocks += [
            [
                text
                for told in apart(one["apart"], letter, every=every)
                for text in wrapped(told, width, hanging="  ")
            ],
            _library(one["library"], letter, width, every=every),
        ]
    blocks.append(_settings(value, width))
    filled = [block for block in blocks if block]
    return [text for i, block in enumerate(filled) for text in ([""] * (i > 0) + block)]


def _results(value: Mapping[str, Any], width: int) -> list[str]:
    texts = []
    for letter, one in pairs(value):
        figures, why = told(one), "; ".join(reasons(one))
        texts += [f"{summary(one, letter)}: {why or figures[0]}", *(figures if why else figures[1:])]
    if value["further"]:
        texts.append(f"each p is corrected for {value['comparisons']} comparisons (Holm)")
    return [
        text
        for i, one in enumerate(texts)
        for text in wrapped(one, width, " " * 8 if i else "result  ", " " * 8)
    ]


def _names(value: Mapping[str, Any], width: int) -> list[str]:
    return [
        text
        for letter, side in runs(value)
        for text in wrapped(f"{letter:8}{line(side['run_id'], 120)}{how(side)}", width, hanging=" " * 8)
    ]


def how(side: Mapping[str, Any]) -> str:
    """Return how a run ended, where it did not end well."""
    if side["status"] == "complete":
        return ""
    return f", {side['status']}" + (f": {line(side['reason'], 200)}" if side["reason"] else "")


def summary(pair: Mapping[str, Any], letter: str) -> str:
    """Return the result of one comparison in a few words."""
    return answer(pair, "A", letter)


def answer(pair: Mapping[str, Any], before: str, after: str) -> str:
    """Return in a few words what a comparison of two named runs came to."""
    if pair["claim"] is not None:
        return f"{after} is {pair['claim']} than {before}"
    if (equal := pair.get("equal_within")) is not None:
        return f"{before} and {after} are equal within {equal:g}"
    return f"not sure whether {after} is better or worse than {before}"


def word(pair: Mapping[str, Any]) -> str:
    """Return the same in a word."""
    equal = pair.get("equal_within") is not None
    return str(pair["claim"] or ("equal" if equal else "not sure"))


def reasons(pair: Mapping[str, Any]) -> list[str]:
    """Return why there is no answer; empty where there is one."""
    if pair["claim"] is not None or pair.get("equal_within") is not None:
        return []
    return [line(why, 300) for why in pair["obstacles"]] or ["the difference may be chance"]


def told(pair: Mapping[str, Any]) -> list[str]:
    """Return the difference in words, and what would settle an open one."""
    found = pair["difference"]
    if not found["n"]:
        return []
    parts = [
        f"{found['difference']:+.3f} (from {found['before']:.3f} to {found['after']:.3f}), {_spread(found)}, "
        f"{scenarios_of(found['n'], found['families'], found['just_these'])}, paired"
    ]
    zero = found["errors_as_zero"]
    if zero is not None and zero["n"]:
        parts.append(f"with errors as 0: {zero['difference']:+.3f}, {_spread(zero)}")
    if pair["settling"] is not None:
        enough = pair["settling"]["scenarios"] is not None
        parts.append(
            f"to settle it, {pair['settling']['advice']}"
            if enough
            else "while the runs score alike, no number of scenarios settles it"
        )
        if found["detectable"]:
            parts.append(f"a difference of {found['detectable']:.3f} is found in 4 of 5 cases")
    return parts


def _spread(found: Mapping[str, Any]) -> str:
    spread = (
        f"95 % interval {interval(found['ci95'], '+.3f')}" if found["ci95"] else "too few for an interval"
    )
    p = found["p_adjusted"]
    return spread if p is None else f"{spread}, p {number(p)}" if p >= 0.001 else f"{spread}, p < 0.001"


def _metrics(value: Mapping[str, Any]) -> list[str]:
    rows = metrics(value)
    return (
        table(["metric", *heads(value), *([] if value["further"] else ["95 % interval"])], rows)
        if rows
        else []
    )


def _changes(value: Mapping[str, Any], kind: str) -> list[str]:
    """Return the largest regressions or gains of two runs."""
    rows = [
        [
            line(row["scenario"], 34),
            line(row["domain"], 16),
            number(row["before"]),
            number(row["after"]),
            signed(row["difference"]),
        ]
        for row in value[kind]
    ]
    return table([f"largest {kind}", "domain", "A", "B", "change"], rows, left=2) if rows else []


def _several(value: Mapping[str, Any], width: int) -> list[str]:
    """Return the scenarios that differ most between several runs."""
    letters = [letter for letter, _ in runs(value)]
    longest = width - 18 - 7 * len(letters)
    rows = [
        [line(row["scenario"], longest), line(row["domain"], 16), *map(number, row["means"])]
        for row in changed(value)[:DIFFERING]
    ]
    return table(["largest differences", "domain", *letters], rows, left=2) if rows else []


def _domains(rows: Sequence[Mapping[str, Any]], letter: str) -> list[str]:
    known = [row for row in rows if row["gain"] and row["gain"]["n"]]
    if not known:
        return []
    return table(
        ["by domain", "paired", "A", letter, "change", "95 % interval", "Holm's p", "claim"],
        [
            [
                line(row["domain"], 15),
                str(row["gain"]["n"]),
                number(row["gain"]["before"]),
                number(row["gain"]["after"]),
                signed(row["gain"]["difference"]),
                interval(row["gain"]["ci95"], "+.2f"),
                number(row["p_adjusted"]),
                row["claim"] or "-",
            ]
            for row in known
        ],
    )


def apart(ids_by: Mapping[str, Sequence[str]], letter: str, *, every: bool) -> Iterator[str]:
    """Yield the scenarios that are not compared, by why."""
    reasons = {
        "before": "only in A",
        "after": f"only in {letter}",
        "changed": f"different tasks in A and {letter}, by their stamps",
        "unscored": f"only errors in A or {letter}",
    }
    for key, why in reasons.items():
        ids = ids_by[key]
        if ids:
            shown = ids if every else ids[:SHORT]
            more = f", ... {len(ids) - len(shown)} more; -v shows all" if len(shown) < len(ids) else ""
            yield f"{why}: {len(ids)}: {', '.join(line(id_, 70) for id_ in shown)}{more}"


def _library(library: Mapping[str, Any], letter: str, width: int, *, every: bool) -> list[str]:
    """Return the lessons that differ between the libraries, as a diff."""
    changes = [("-", lesson) for lesson in library["removed"]] + [
        ("+", lesson) for lesson in library["added"]
    ]
    for change in library["changed"]:
        changes += [("-", lesson) for lesson in change["before"]] + [("+", change["after"])]
    if not changes:
        return [f"the libraries of A and {letter} are equal"]
    added, removed, changed = (len(library[key]) for key in ("added", "removed", "changed"))
    shown = changes if every else changes[: 2 * SHORT]
    found = [f"lessons +{added} ~{changed} -{removed}, from A to {letter}"]
    for sign, lesson in shown:
        text = f"{sign} {lesson['polarity']:5} {line(lesson['domain'], 20)}: {line(lesson['text'], 300)}"
        found += wrapped(text, width, "  ", " " * 10)
    if len(shown) < len(changes):
        found.append(f"  ... {len(changes) - len(shown)} more; -v shows all")
    return found


def _settings(value: Mapping[str, Any], width: int) -> list[str]:
    """Return the settings, versions and stamps that differ between runs."""
    names, longest = [letter for letter, _ in runs(value)], (width - 26) // len(runs(value)) - 2
    rows = [
        [line(name, 24), *(line(str(one), min(SHOWN, longest)) for one in values)]
        for name, values in (*differing(value, "settings"), *differing(value, "versions"))
    ]
    found = table(["what differs", *names], rows, left=len(names) + 1) if rows else []
    if stamps := differing(value, "stamps"):
        found += wrapped(
            f"stamps that differ: {', '.join(line(name, 40) for name, _ in stamps)}", width, hanging="  "
        )
    return found or ["settings, versions and stamps are equal"]
