"""Stored baselines: the sums of one final sweep in a small JSON file, one line per scenario, fit for git."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path
from typing import Any, Protocol

from pytest_tfgrpo.core.errors import BaselineError
from pytest_tfgrpo.core.files import write_atomic
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.schema import violations
from pytest_tfgrpo.core.settings import is_task_id
from pytest_tfgrpo.core.stamp import stamp
from pytest_tfgrpo.core.strict import finite
from pytest_tfgrpo.core.text import line
from pytest_tfgrpo.core.wire import Json, from_wire, to_wire
from pytest_tfgrpo.harness.metrics.comparison import Sweeps, Tally

SCHEMA = "tfgrpo.baseline/2"
FIRST = "tfgrpo.baseline/1"
"""Files without domains and without a hash, which are still read."""
FOLDER = "baselines"
COMPARED_STAMPS = ("actor", "packs")
"""Stamps that show whether two runs used the same inputs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """What the gate compares a final sweep with."""

    schema: str
    name: str
    run_id: str
    task_id: str
    created_at: str
    actor: str
    """Spec of the actor."""
    temperature: float
    library: str
    """Hash of the library that the sweep's prompts carried."""
    stamps: Mapping[str, str]
    scenarios: Mapping[str, Tally]
    """Tallies by scenario id."""

    @property
    def hash(self) -> str:
        """Stamp of the content, which the file carries so that an edit by hand is found."""
        return stamp(to_wire(self))


def from_run(run: Run, name: str) -> Baseline:
    """Return the baseline that the final sweep of `run` makes.

    Raises BaselineError when the run is not whole: it would lower the bar for those after it.
    """
    sweeps = Sweeps(run)
    sweep = sweeps.after
    if sweep is None or run.status != "complete" or run.partial_selection:
        what = "has no final sweep" if sweep is None else f"is {run.status}"
        what = "ran on part of the suite" if run.partial_selection else what
        raise BaselineError(
            f"run {run.run_id!r} {what}, so it cannot become a baseline; save one from a complete run"
        )
    if sweep.settled:
        raise BaselineError(
            f"run {run.run_id!r} skipped {len(sweep.settled)} eval scenarios as its gate was decided, so it "
            "cannot become a baseline; save one from a run without gate_sequential"
        )
    return Baseline(
        schema=SCHEMA,
        name=name,
        run_id=run.run_id,
        task_id=run.task_id,
        created_at=run.finished_at,
        actor=actor_name(run),
        temperature=sweep.phase.temperature,
        library=sweep.library_hash,
        stamps=compared_stamps(run),
        scenarios=dict(sorted(sweeps.rows_after.items())),
    )


class Stamped(Protocol):
    """A run, made or planned."""

    @property
    def stamps(self) -> Mapping[str, str]: ...
    @property
    def scenarios(self) -> tuple[Scenario, ...]: ...
    @property
    def identities(self) -> Mapping[str, Json]: ...


def compared_stamps(run: Stamped) -> dict[str, str]:
    """Return the stamps that show whether two runs used the same inputs.

    The judge is one of them where it scores an eval scenario: another judge is another measure.
    """
    stamps = {key: run.stamps[key] for key in COMPARED_STAMPS if key in run.stamps}
    if any(s.truth == "judge" and s.split == "eval" for s in run.scenarios):
        stamps["judge"] = stamp(run.identities.get("judge"))
    return stamps


def actor_name(run: Run) -> str:
    """Return the spec of a run's actor; in a replay that of the one recorded."""
    return str(run.identities.get("actor", {}).get("name") or run.settings.get("actor"))


def locate(name: str, root: Path) -> Path:
    """Return the file of a baseline: ``baselines/<name>.json`` under `root`, or `name` if it ends in .json.

    Raises BaselineError on a name that is no file name.
    """
    if name.endswith(".json"):
        return root / name
    if not is_task_id(name):
        raise BaselineError(
            f"{name!r} does not name a baseline; use letters, digits, '.', '_', '-', or a .json file"
        )
    return root / FOLDER / f"{name}.json"


def load(path: Path) -> Baseline:
    """Return the baseline in a file; raises BaselineError naming the file and the key."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=finite)
    except FileNotFoundError:
        raise BaselineError(
            f"{path}: there is no such baseline; create it with `tfgrpo baseline save`"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise BaselineError(f"{path}: cannot read the baseline: {error}") from error
    for pointer, message in _problems(data):
        raise BaselineError(f"{path}: {pointer or '/'}: {message}; save the baseline again")
    written = data.pop("hash", None)
    baseline = from_wire(Baseline, data)
    if written not in (None, baseline.hash):
        raise BaselineError(
            f"{path}: /hash: {written!r} is not the hash of its content; if it was edited on purpose and "
            f"reviewed, set it to {baseline.hash!r}"
        )
    return baseline


def save(path: Path, baseline: Baseline) -> None:
    """Write a baseline, whole or not at all; raises BaselineError when it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [_pretty(_to_file(baseline)).encode()])
    except OSError as error:
        raise BaselineError(f"{path}: cannot write the baseline: {error}") from error


def describe(baseline: Baseline) -> list[str]:
    """Return the lines that ``tfgrpo baseline show`` prints."""
    means = [mean for row in baseline.scenarios.values() if (mean := row.mean()) is not None]
    errors = sum(row.errors for row in baseline.scenarios.values())
    width = max((len(line(id)) for id in baseline.scenarios), default=0)
    return [
        f"baseline {line(baseline.name)}: mean {_mean(means)} over {len(means)} scenarios, {errors} errors",
        f"  run {line(baseline.run_id)} of task {line(baseline.task_id)}, {line(baseline.created_at)}",
        f"  actor {line(baseline.actor)} at temperature {baseline.temperature:g}, "
        f"library {line(baseline.library)[:12] or 'none'}",
        *(_scenario_line(line(id).ljust(width), row) for id, row in baseline.scenarios.items()),
    ]


def _scenario_line(id: str, row: Tally) -> str:
    mean = row.mean()
    errors = f", {row.errors} errors" if row.errors else ""
    return f"  {id}  {_mean([] if mean is None else [mean])}  {row.n} rollouts{errors}"


def _mean(values: list[float]) -> str:
    return f"{fsum(values) / len(values):.3f}" if values else "-"


def _problems(data: Any) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the value of a file, as JSON pointer and message."""
    broken = violations("baseline", data)
    yield from ((violation.pointer, violation.message) for violation in broken)
    if broken:
        return
    if "hash" not in data and data["schema"] != FIRST:
        yield "", "missing key 'hash'"
    for id, row in data["scenarios"].items():
        for key in ("sum", "sum_sq"):
            if row[key] > row["n"]:  # scores lie in [0, 1]
                yield f"/scenarios/{id}/{key}", f"{row[key]!r} is more than n = {row['n']}"


def _to_file(baseline: Baseline) -> dict[str, Any]:
    """Return the value of a file; a baseline read from an older form is written in the present one."""
    present = replace(baseline, schema=SCHEMA)
    return {"schema": SCHEMA, "hash": present.hash, **to_wire(present)}


def _pretty(data: dict[str, Any]) -> str:
    """Return JSON with one line per scenario, so that a diff shows which ones changed."""
    head = json.dumps({**data, "scenarios": {}}, indent=2, ensure_ascii=False)
    rows = ",\n".join(
        f"    {json.dumps(id, ensure_ascii=False)}: {json.dumps(row)}"
        for id, row in data["scenarios"].items()
    )
    return head.removesuffix("{}\n}") + ("{\n" + rows + "\n  }\n}\n" if rows else "{}\n}\n")
