"""Agents compared by the final sweeps of their runs: one JSON value; terminal text and page come from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.metrics.comparison import compare, figures
from pytest_tfgrpo.report.comparison.compare import compared_pairs, side
from pytest_tfgrpo.suite.families import sweeps_of

SCHEMA = "tfgrpo.agents/1"
PAIR = ("difference", "claim", "equal_within", "obstacles", "settling", "domains", "metrics", "apart")
"""What is kept of a comparison of two runs (see ``versus.schema.json``)."""


def agents_value(id_: str, runs: Mapping[str, Run]) -> dict[str, Any]:
    """Return how the runs of two agents or more compare, as ``agents.schema.json`` describes it.

    `id_` is what the ids of the runs have in common. Each agent is compared with each, by scenario; every p
    is corrected for the number of pairs (Holm).
    """
    names = list(combinations(runs, 2))
    compared = compared_pairs([(runs[one], runs[other]) for one, other in names])
    return {
        "schema": SCHEMA,
        "id": id_,
        "agents": [_agent(name, run) for name, run in runs.items()],
        "comparisons": len(names),
        "pairs": [
            {"before": one, "after": other, **{key: value[key] for key in PAIR}}
            for (one, other), value in zip(names, compared, strict=True)
        ],
        "metrics": [row["name"] for row in compared[0]["metrics"]],
        "scenarios": _scenarios([*runs.values()]),
    }


def _agent(name: str, run: Run) -> dict[str, Any]:
    """Return the facts of an agent's run, and what it learned where it did."""
    sweeps = sweeps_of(run)
    gained = compare(sweeps.rows_before, sweeps.rows_after) if sweeps.before is not None else None
    gain = figures(gained) if gained is not None and gained.ids else None
    return {"name": name, **side(run, sweeps), "gain": gain}


def _scenarios(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the scenarios of the final sweeps, those on which agents differ most first."""
    rows = [sweeps_of(run).rows_after for run in runs]
    domains = {s.id: s.domain for run in runs for s in run.scenarios}
    found = [
        {
            "scenario": id_,
            "domain": domains[id_],
            "means": [one[id_].mean() if id_ in one else None for one in rows],
            "errors": [one[id_].errors if id_ in one else 0 for one in rows],
        }
        for id_ in dict.fromkeys(id_ for one in rows for id_ in one)
    ]
    return sorted(found, key=_by_spread)


def _by_spread(row: Mapping[str, Any]) -> tuple[float, str]:
    known = [mean for mean in row["means"] if mean is not None]
    return (min(known) - max(known) if known else 0.0), row["scenario"]
