"""The report of a run as if it had swept the deployed version itself: two runs of one suite, paired."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.settings.gate import GATE_STRICT
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.gate.result import RuleResult
from pytest_tfgrpo.gate.rules import GateInput, judge_complete, settle
from pytest_tfgrpo.metrics.comparison import compare, figures
from pytest_tfgrpo.metrics.epochs import epoch_row
from pytest_tfgrpo.suite.families import sweeps_of

GAIN = "gain"
"""The rule of the gate that compares both sweeps of a run that learned."""


def paired_report(report: Mapping[str, Json], deployed: Run, run: Run) -> Mapping[str, Json]:
    """Return the report of `run` with its gain over `deployed`, the rule for it, and the sweep of the other.

    Pairs are scenarios of one id and task; there is no gain without one.
    """
    before, sweeps = sweeps_of(deployed), sweeps_of(run)
    comparison = compare(before.rows_after, sweeps.rows_after)
    own = GateInput(run, sweeps, None, run.settings)
    gate, strict = report["gate"] or {"gates": []}, GATE_STRICT.of(run.settings)
    known = [one for one in gate.get("results", ()) if one["name"] != GAIN] or [to_wire(judge_complete(own))]
    results = [*known, to_wire(own.compared(GAIN, before.rows_after))]
    outcome = settle(from_wire(tuple[RuleResult, ...], results), strict=strict)
    rows = [] if before.after is None else [epoch_row(before.after, len(deployed.library.experiences))]
    return {
        **report,
        "gain": figures(comparison) if comparison.ids else None,
        "epochs": [*({**to_wire(row), "mode": "baseline"} for row in rows), *report["epochs"]],
        "gate": {**gate, "strict": strict, "outcome": outcome, "results": results},
    }
