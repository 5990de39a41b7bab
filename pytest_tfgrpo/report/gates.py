"""The gates of a run in words, for the terminal and for the failing items, made from the report value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_tfgrpo.core.report_blocks import GateBlock, RuleFinding
from pytest_tfgrpo.core.texts.text import line, plural, wrapped

OUTCOMES = {
    "pass": "passed",
    "fail": "FAILED",
    "inconclusive": "inconclusive",
    "skipped": "skipped",
    "not_judged": "not checked",
}
_OPEN = ("inconclusive", "not_judged")
DIFFERS = "; the baseline was "
"""Stands in the message of the rule `baseline` before what else differs: unsigned, made by another actor."""


def gate_lines(
    gate: GateBlock | None, width: int, *, every: bool, quiet: bool, told_above: bool = False
) -> list[str]:
    """Return all gates, failed ones first and the default gate after those with the same outcome.

    Of a named gate only what keeps it from passing is shown, of the default gate every rule that is
    set, unless `every` is. A failed one whose item has shown all, `told_above`, is named alone.
    """
    if gate is None:
        return []
    lines: list[str] = []
    for one in in_order((*named(gate), gate)):
        shown = list(_one(one, width, every=every, quiet=quiet))
        short = told_above and not every and one["outcome"] == "fail" and not _is_warning(one)
        lines += [f"{shown[0]}, as shown above"] if short else shown
    return lines


def default_text(gate: GateBlock, width: int = 80) -> list[str]:
    """Return the text of the failing item of the default gate: what failed, the other rules, what to do.

    pytest's short summary shows the first line, after ``FAILED`` and the name of the gate.
    """
    first = unsettled(gate)[0]
    strict = f"{note(gate).strip(' ()')}: " if first["outcome"] != "fail" else ""
    found = unsettled(gate) if "name" in gate else gate["results"]
    rest = [one for one in _gathered([one for one in found if one is not first]) if not _is_unset(one)]
    return [*wrapped(f"{strict}{_finding(first)}", width, hanging="  "), *_rules(rest, width)]


def named_text(gate: GateBlock, name: str, width: int = 80) -> list[str]:
    """Return the text of the failing item of a named gate."""
    return default_text(find(gate, name), width)


def find(gate: GateBlock, name: str) -> GateBlock:
    """Return the result of the named gate."""
    return next(one for one in named(gate) if one["name"] == name)


def named(gate: GateBlock) -> list[GateBlock]:
    """Return the results of the named gates; older reports have none."""
    return list(gate.get("gates", ()))


def overall(gate: GateBlock) -> str:
    """Return the outcome of all gates together; a failure with severity warn counts as inconclusive."""
    outcomes: list[str] = [gate["outcome"]]
    outcomes += ["inconclusive" if _is_warning(one) else one["outcome"] for one in named(gate)]
    return min(outcomes, key=("fail", "inconclusive", "pass").index)


def in_order(gates: Iterable[GateBlock]) -> list[GateBlock]:
    """Return gates with the worst first; among equals, named ones in order, then the default gate."""
    return sorted(gates, key=_rank)


def unsettled(gate: GateBlock) -> list[RuleFinding]:
    """Return the findings that keep a gate from passing: those that failed, then those that are open."""
    found = [result for result in gate["results"] if result["outcome"] in ("fail", *_OPEN)]
    return sorted(found, key=lambda result: result["outcome"] != "fail")


def _is_warning(gate: GateBlock) -> bool:
    return gate["outcome"] == "fail" and gate.get("severity") == "warn"


def _rank(gate: GateBlock) -> tuple[int, bool]:
    outcome = ("fail", "inconclusive", "pass").index(gate["outcome"])
    return 2 * outcome + _is_warning(gate), "name" not in gate


def _one(gate: GateBlock, width: int, *, every: bool, quiet: bool) -> Iterator[str]:
    name = f"gate {line(gate['name'])}" if "name" in gate else "gate"
    yield f"{name}  {OUTCOMES[gate['outcome']]}{note(gate)}"
    results = unsettled(gate) if "name" in gate and not every else gate["results"]
    if not every:
        results = [
            result
            for result in _gathered(results)
            if (result["outcome"] not in ("pass", "skipped") or not quiet or _is_qualified(result))
            and not _is_unset(result)
        ]
    yield from _rules(results, width)


def _rules(results: Iterable[RuleFinding], width: int) -> Iterator[str]:
    for result in results:
        yield from wrapped(f"{OUTCOMES[result['outcome']]:12}  {_finding(result)}", width, "  ", " " * 16)


def _finding(result: RuleFinding) -> str:
    advice = f"; {line(result['advice'], 300)}" if result["advice"] else ""
    return f"{line(result['name'], 90)}: {line(result['message'], 600)}{advice}"


def _is_unset(result: RuleFinding) -> bool:
    return result["outcome"] == "skipped" and not result["advice"]


def _is_qualified(result: RuleFinding) -> bool:
    """Return whether it passed against something that is not quite the same, which a reader must know."""
    return result["outcome"] == "pass" and DIFFERS in result["message"]


def _gathered(results: Sequence[RuleFinding]) -> Iterator[RuleFinding]:
    """Yield the findings, those that were not judged for one and the same reason as one."""
    unjudged = [result for result in results if result["outcome"] == "not_judged"]
    reasons = {(result["message"], result["advice"]) for result in unjudged}
    if len(unjudged) < 2 or len(reasons) > 1:
        yield from results
        return
    for result in results:
        if result is unjudged[0]:
            yield {**result, "name": ", ".join(one["name"] for one in unjudged)}
        elif result["outcome"] != "not_judged":
            yield result


def note(gate: GateBlock) -> str:
    """Return what a reader must know to read the outcome."""
    if _is_warning(gate):
        return " (severity warn: the run does not fail)"
    if gate["outcome"] == "fail":
        by_failure = any(result["outcome"] == "fail" for result in gate["results"])
        how = "strict" if "name" in gate else "gate_strict"
        return f" ({how}: an inconclusive result fails)" if gate["strict"] and not by_failure else ""
    if gate["outcome"] == "inconclusive":
        return " (passes with a warning)"
    return f", {plural(gate['scenarios'], 'scenario')}" if "name" in gate else ""
