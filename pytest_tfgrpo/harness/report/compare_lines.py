"""Two runs side by side as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.text import (
    cost,
    count,
    duration,
    interval,
    line,
    number,
    scenarios_of,
    signed,
    table,
    wrapped,
)
from pytest_tfgrpo.harness.report.cost import spent
from pytest_tfgrpo.harness.report.terminal import changes_table

SHORT = 5
SHOWN = 20
"""Most characters of a value that a table shows."""


def compare_lines(value: Mapping[str, Any], width: int = 80, *, verbosity: int = 0) -> list[str]:
    """Return the lines of a comparison.

    Below 0 only the difference is shown; from 1 all lessons and all ids that are in one run only.
    """
    before, after = value["before"], value["after"]
    head = wrapped(
        f"run {line(after['run_id'], 120)} compared with {line(before['run_id'], 120)}", width, hanging="  "
    )
    loud = [
        text
        for why in value["obstacles"]
        for text in wrapped(f"no claim can be made: {line(why, 300)}", width, hanging="  ")
    ]
    difference = wrapped(f"difference  {told(value)}", width, hanging=" " * 12)
    if verbosity < 0:
        return [*head, *loud, *difference]
    blocks = [
        [*head, *loud],
        table(["", "other run", "this run"], sides(value)),
        difference,
        _domains(value["domains"]),
        changes_table("largest regressions", value["regressions"]),
        changes_table("largest gains", value["gains"]),
        [
            text
            for one in apart(value["apart"], every=verbosity > 0)
            for text in wrapped(one, width, hanging="  ")
        ],
        _library(value["library"], width, every=verbosity > 0),
        _settings(value, width),
    ]
    filled = [block for block in blocks if block]
    return [text for i, block in enumerate(filled) for text in ([""] * (i > 0) + block)]


def sides(value: Mapping[str, Any]) -> list[list[str]]:
    """Return the rows of the table: a name, the other run, this run."""
    both = (value["before"], value["after"])
    finals = [side["final"] for side in both]

    def final(name: str, show: Any) -> list[str]:
        return [name, *("-" if own is None else show(own) for own in finals)]

    return [
        ["status", *(side["status"] + " (partial)" * side["partial_selection"] for side in both)],
        ["actor", *(line(side["actor"], SHOWN) for side in both)],
        final("temperature", lambda own: f"{own['temperature']:g}"),
        final("scenarios", lambda own: str(own["scenarios"])),
        final("rollouts", lambda own: str(own["rollouts"])),
        final("errors", lambda own: str(own["errors"])),
        final("gt mean, errors left out", lambda own: number(own["mean"])),
        final("gt mean, errors as 0", lambda own: number(own["mean_errors_as_zero"])),
        final("pass@1", lambda own: number(own["pass_at_1"])),
        final("tokens per rollout", lambda own: count(own["tokens"]["mean"])),
        final("cost of the final sweep", lambda own: cost(own["cost_usd"], own["rollouts"])),
        final("p50", lambda own: duration(own["p50_ms"])),
        ["tokens of the whole run", *(count(side["total"]["tokens"]) for side in both)],
        ["cost of the whole run", *(spent(side["total"]) for side in both)],
        ["lessons", *(str(side["lessons"]) for side in both)],
    ]


def told(value: Mapping[str, Any]) -> str:
    """Return the difference in words, with the claim about it."""
    found = value["difference"]
    if not found["n"]:
        return "unknown: no scenario is scored in both runs"
    text = (
        f"{found['difference']:+.3f} (from {found['before']:.3f} to {found['after']:.3f}), {_spread(found)}, "
        f"{scenarios_of(found['n'], found['families'], found['just_these'])}, paired"
    )
    zero = found["errors_as_zero"]
    if zero is not None and zero["n"]:
        text += f"; with errors as 0: {zero['difference']:+.3f}, {_spread(zero)}"
    if value["claim"] is not None:
        return f"{text}: {value['claim']}"
    if not value["obstacles"]:
        detectable = found["detectable"]
        text += "; this is not evidence of a difference"
        text += f", which these runs detect from {detectable:.3f} in 4 of 5 cases" if detectable else ""
    return text


def _spread(found: Mapping[str, Any]) -> str:
    spread = (
        f"95 % interval {interval(found['ci95'], '+.3f')}" if found["ci95"] else "too few for an interval"
    )
    p = found["p"]
    return spread if p is None else f"{spread}, p {number(p)}" if p >= 0.001 else f"{spread}, p < 0.001"


def _domains(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    known = [row for row in rows if row["gain"] and row["gain"]["n"]]
    if not known:
        return []
    return table(
        ["by domain", "paired", "before", "after", "change", "95 % interval", "Holm's p", "claim"],
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


def apart(ids_by: Mapping[str, Sequence[str]], *, every: bool) -> Iterator[str]:
    """Yield the scenarios that are not compared, by why."""
    reasons = {
        "before": "only in the other run",
        "after": "only in this run",
        "changed": "different task in each run, by its stamp",
        "unscored": "only errors in one of the runs",
    }
    for key, why in reasons.items():
        ids = ids_by[key]
        if ids:
            shown = ids if every else ids[:SHORT]
            more = f", ... {len(ids) - len(shown)} more; -v shows all" if len(shown) < len(ids) else ""
            yield f"{why}: {len(ids)}: {', '.join(line(id, 70) for id in shown)}{more}"


def _library(library: Mapping[str, Any], width: int, *, every: bool) -> list[str]:
    """Return the lessons that differ between the libraries, as a diff."""
    changes = [("-", lesson) for lesson in library["removed"]] + [
        ("+", lesson) for lesson in library["added"]
    ]
    for change in library["changed"]:
        changes += [("-", lesson) for lesson in change["before"]] + [("+", change["after"])]
    if not changes:
        return ["the libraries are equal"]
    added, removed, changed = (len(library[key]) for key in ("added", "removed", "changed"))
    shown = changes if every else changes[: 2 * SHORT]
    found = [f"lessons +{added} ~{changed} -{removed}, from the other run to this run"]
    for sign, lesson in shown:
        text = f"{sign} {lesson['polarity']:5} {line(lesson['domain'], 20)}: {line(lesson['text'], 300)}"
        found += wrapped(text, width, "  ", " " * 10)
    if len(shown) < len(changes):
        found.append(f"  ... {len(changes) - len(shown)} more; -v shows all")
    return found


def _settings(value: Mapping[str, Any], width: int) -> list[str]:
    """Return the settings, versions and stamps that differ."""
    rows = [
        [line(row["name"], 24), *(line(str(row[side]), SHOWN) for side in ("before", "after"))]
        for row in (*value["settings"], *value["versions"])
    ]
    found = table(["what differs", "other run", "this run"], rows, left=3) if rows else []
    if value["stamps"]:
        names = ", ".join(line(row["name"], 40) for row in value["stamps"])
        found += wrapped(f"stamps that differ: {names}", width, hanging="  ")
    return found or ["settings, versions and stamps are equal"]
