"""Stored baselines: the sums of one final sweep in a small JSON file, one line per scenario, fit for git."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from math import fsum
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from pytest_tfgrpo.core.errors import BaselineError
from pytest_tfgrpo.core.files import read_plain, write_atomic
from pytest_tfgrpo.core.keys.setting_parsers import is_task_id
from pytest_tfgrpo.core.named_scores import MetricScale
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.agents import ACTOR
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.texts.text import few, line, plural
from pytest_tfgrpo.core.wire.schema import pointer, violations
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.strict import finite, unique
from pytest_tfgrpo.core.wire.wire import SPARSE, Json, from_wire, to_wire
from pytest_tfgrpo.metrics.comparison import Sweeps, Tally
from pytest_tfgrpo.metrics.named import metric_names
from pytest_tfgrpo.metrics.values import GT, criteria_of
from pytest_tfgrpo.recording.place import digest_of, named

SCHEMA = "tfgrpo.baseline/2"
FOLDER = "baselines"
ROUNDING = 1e-6
NOT_COMPARED = (GT, "relative_rank")
"""Metrics that no baseline keeps apart: its tallies are of gt_score, and ranks have one mean."""
_Sums: TypeAlias = dict[str, dict[str, tuple[float, ...]]]
COMPARED_STAMPS = ("actor", "packs")
"""Stamps that show whether two runs used the same inputs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepSums:
    """What a baseline keeps of one sweep that it pools, to show how much sweeps of one build differ."""

    created_at: str
    scenarios: str
    """Stamp of the tasks: only sweeps of the same ones show drift."""
    n: int
    """Scenarios with a score."""
    sum: float
    """Of their means."""
    rollouts: int
    """Scored, over all scenarios."""


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
    looks: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=SPARSE)
    """Variants that were evaluated when it was saved, by the stamp of the eval split."""
    sweeps: Mapping[str, SweepSums] = field(default_factory=dict, metadata=SPARSE)
    """The sweeps pooled, by run, oldest first; empty where there is one."""
    metrics: Mapping[str, MetricScale] = field(default_factory=dict, metadata=SPARSE)
    """Scales of the further metrics that its scenarios have; empty in older files."""
    recordings: Mapping[str, str] = field(default_factory=dict, metadata=SPARSE)
    """SHA-256 of the recording whose answers it was made from, by file; empty where an agent answered."""
    unsigned: bool | None = field(default=None, metadata=SPARSE)
    """True when its file has no hash, so that nobody knows whether it was edited; never written."""

    @property
    def hash(self) -> str:
        """Stamp of the content, which the file carries so that an edit by hand is found."""
        return stamp(to_wire(replace(self, unsigned=None)))

    def other_recording(self, name: str, path: Path) -> str:
        """Return how the recording `name` at `path` differs from the one it was made from; empty if not."""
        before = self.recordings.get(name)
        if before is None or (now := digest_of(path)) == before:
            return ""
        return (
            f"{line(name, 200)} is not as it was when baseline {line(self.name, 60)} was saved from it "
            f"(SHA-256 {before[:12]}, now {now[:12] or 'unknown'}); if that is meant, save the baseline again"
        )


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
    scales, metrics = _metrics(sweeps, metric_names(sweep.groups, criteria=criteria_of(run)))
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
        scenarios={
            id_: replace(row, family=None, shared=False, metrics=metrics.get(id_, {}))
            for id_, row in sorted(sweeps.rows_after.items())
        },
        metrics=scales,
    )


def recordings_of(run: Run, root: Path) -> dict[str, str]:
    """Return the SHA-256 of the recording that answered in `run`, by its file under `root`."""
    kind, _, argument = _actor_setting(run).partition(":")
    name = named(argument.strip(), root)[0] if kind.strip() == "replay" else ""
    digest = digest_of(root / name) if name else ""
    return {name: digest} if digest else {}


def _metrics(sweeps: Sweeps, names: Iterable[str]) -> tuple[dict[str, MetricScale], _Sums]:
    """Return the scales of the metrics that have a score, and their sums by scenario."""
    scales, sums = {}, _Sums()
    for name in names:
        rows = {id_: row for id_, row in sweeps.rows_of(name).items() if row.n}
        if name not in NOT_COMPARED and rows:
            scales[name] = sweeps.scale_of(name)
            for id_, row in rows.items():
                sums.setdefault(id_, {})[name] = (float(row.n), row.sum, row.sum_sq)
    return scales, sums


def of_metric(baseline: Baseline, metric: str) -> Baseline | None:
    """Return a baseline whose tallies are those of `metric`; None where it knows nothing of it."""
    if metric not in baseline.metrics:
        return None
    rows = {
        id_: replace(row, n=int(of[0]), sum=of[1], sum_sq=of[2], metrics={})
        for id_, row in baseline.scenarios.items()
        if (of := row.metrics.get(metric)) is not None
    }
    return replace(baseline, scenarios=rows, metrics={}, sweeps={})


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
    return str(run.identities.get("actor", {}).get("name") or _actor_setting(run))


def _actor_setting(run: Run) -> str:
    return str(ACTOR.of(run.settings))


UNFAIR_ADVICE = "save the baseline again, or run under the same conditions"


def why_unfair(baseline: Baseline, *, temperature: float, stamps: Mapping[str, str]) -> str:
    """Return why a sweep and a baseline cannot be compared; empty if they can."""
    if baseline.temperature != temperature:
        return f"the baseline was made at temperature {baseline.temperature:g}, the sweep at {temperature:g}"
    if len({stamps.get("judge"), baseline.stamps.get("judge")} - {None}) == 2:
        return "the baseline was scored by another judge"
    return ""


def what_differs(
    baseline: Baseline, *, actor: str, stamps: Mapping[str, str], tallies: Mapping[str, Tally]
) -> list[str]:
    """Return other differences between a baseline and a sweep, which do not prevent a comparison."""
    notes = ["not signed (its file has no hash, so an edit by hand would not be found)"] * bool(
        baseline.unsigned
    )
    if actor != baseline.actor:
        notes.append(f"made with another actor ({line(baseline.actor, 60)})")
    elif _other("actor", stamps, baseline):
        notes.append("made with another version or configuration of the actor")
    if _other("packs", stamps, baseline):
        notes.append("made with other prompt packs")
    common = sum(id_ in tallies and tallies[id_].stamp == t.stamp for id_, t in baseline.scenarios.items())
    if common < max(len(tallies), len(baseline.scenarios)):
        notes.append(f"made with other scenarios ({common} in common)")
    return notes


def _other(key: str, stamps: Mapping[str, str], baseline: Baseline) -> bool:
    return key in baseline.stamps and stamps.get(key) != baseline.stamps[key]


def locate(name: str, root: Path) -> Path:
    """Return the file of a baseline: ``baselines/<name>.json`` under `root`, or `name` if it ends in .json.

    Raises BaselineError on a name that is no file name.
    """
    if name.endswith(".json"):
        return root / name
    if not is_task_id(name):
        raise BaselineError(
            f"{name!r} does not name a baseline; use letters, digits, '.', '_', '-', or a .json file, or a "
            "folder with prompt packs"
        )
    return root / FOLDER / f"{name}.json"


def load(path: Path) -> Baseline:
    """Return the baseline in a file; raises BaselineError naming the file and the key."""
    try:
        text = read_plain(path).decode()
        data = json.loads(text, parse_constant=finite, parse_float=finite, object_pairs_hook=unique)
    except FileNotFoundError:
        hint = nearest(path.stem, (one.stem for one in path.parent.glob("*.json")))
        raise BaselineError(
            f"{path}: there is no such baseline; create it with `tfgrpo baseline save {path.stem}`{hint}"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise BaselineError(f"{path}: cannot read the baseline: {error}") from error
    for place, message in _problems(data):
        raise BaselineError(f"{path}: {place or '/'}: {message}; save the baseline again")
    written = data.pop("hash", None)
    baseline = from_wire(Baseline, data)
    if written is None:
        return replace(baseline, unsigned=True)
    if written != baseline.hash:
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
    width = max((len(line(id_)) for id_ in baseline.scenarios), default=0)
    return [
        f"baseline {line(baseline.name)}: mean {_mean(means)} over {plural(len(means), 'scenario')}, "
        f"{plural(errors, 'error')}{', not signed' if baseline.unsigned else ''}",
        f"  run {line(baseline.run_id)} of task {line(baseline.task_id)}, {line(baseline.created_at)}",
        f"  actor {line(baseline.actor)} at temperature {baseline.temperature:g}, "
        f"library {line(baseline.library)[:12] or 'none'}",
        *(f"  recording {line(name, 200)}, SHA-256 {hash_}" for name, hash_ in baseline.recordings.items()),
        *([f"  metrics {few(list(baseline.metrics), 20)}"] if baseline.metrics else []),
        *(_scenario_line(line(id_).ljust(width), row) for id_, row in baseline.scenarios.items()),
    ]


def _scenario_line(id_: str, row: Tally) -> str:
    mean = row.mean()
    errors = f", {plural(row.errors, 'error')}" if row.errors else ""
    return f"  {id_}  {_mean([] if mean is None else [mean])}  {plural(row.n, 'rollout')}{errors}"


def _mean(values: list[float]) -> str:
    return f"{fsum(values) / len(values):.3f}" if values else "-"


def _problems(data: Any) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the value of a file, as JSON pointer and message."""
    broken = violations("baseline", data)
    yield from ((violation.pointer, violation.message) for violation in broken)
    if broken:
        return
    for id_, row in data["scenarios"].items():
        place = pointer(("scenarios", id_))
        for key in ("n", "errors"):
            if not isinstance(row[key], int):  # to a JSON Schema 4.0 is an integer
                yield f"{place}/{key}", f"{row[key]!r} is not an integer"
        for name, (n, total, squares) in row.get("metrics", {}).items():
            if name not in data.get("metrics", {}):
                yield f"{place}/metrics", f"{name!r} has no scale under metrics"
            counts = n == int(n) and 0 < n <= row["n"] + row["errors"]
            shares = total <= n + ROUNDING and squares <= total + ROUNDING
            if not (counts and shares and total**2 <= n * squares + ROUNDING):
                yield f"{place}/metrics", f"{name!r} has n, sum and sum of squares that cannot be"
        for key, most, what in (("sum", row["n"], "n"), ("sum_sq", row["sum"], "sum")):
            if row[key] > most + ROUNDING:  # scores lie in [0, 1]
                yield f"{place}/{key}", f"{row[key]!r} is more than {what} = {most!r}"
        if row["sum"] ** 2 > row["n"] * row["sum_sq"] + ROUNDING:  # Cauchy-Schwarz
            yield f"{place}/sum_sq", f"{row['sum_sq']!r} is too small for a sum of {row['sum']!r}"


def _to_file(baseline: Baseline) -> dict[str, Any]:
    return {"schema": SCHEMA, "hash": baseline.hash, **to_wire(replace(baseline, unsigned=None))}


def _pretty(data: dict[str, Any]) -> str:
    """Return JSON with one line per scenario, so that a diff shows which ones changed."""
    rest = {key: value for key, value in data.items() if key != "scenarios"}
    head = json.dumps({**rest, "scenarios": {}}, indent=2, ensure_ascii=False)
    rows = ",\n".join(
        f"    {json.dumps(id_, ensure_ascii=False)}: {json.dumps(row)}"
        for id_, row in data["scenarios"].items()
    )
    return head.removesuffix("{}\n}") + ("{\n" + rows + "\n  }\n}\n" if rows else "{}\n}\n")
