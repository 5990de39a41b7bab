"""Earlier runs: which used an eval split, and how; which dev split one that goes on took."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_tfgrpo.core.files import (
    ARENA_PLAN,
    ARENA_RESULT,
    ARENAS,
    JOURNAL,
    MANIFEST,
    PER_EPOCH,
    REPLICATIONS,
    RUNS,
    open_plain,
    run_folder,
)
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.metrics.looks import Looks, merged, split_stamp
from pytest_tfgrpo.runs.journal.journal import decode

LISTED = 20
"""Latest earlier runs that are named."""
_HEAD = 65_536
"""Bytes at the start of a journal that contain its stamps, except with very long settings."""
_REPLAY = re.compile(rb'"settings":\{"actor":"replay:')
_STAMPS = re.compile(rb'"stamps":(\{[^{}]*\})')


def eval_stamp(scenarios: Iterable[Scenario]) -> str:
    """Return the stamp of an eval split: of the set of its task stamps, whatever the scenarios are called."""
    return split_stamp(s.stamp for s in scenarios if s.split == "eval")


def earlier_evaluations(
    out: Path | None, task_id: str, run_id: str, stamp: str, committed: Looks = MappingProxyType({})
) -> Json:
    """Return how many runs and arenas before `run_id` swept the eval split with `stamp`, and the latest.

    `variants` are the builds that they evaluated, with those that `committed` files remember. Run ids sort by
    time, so that a resumed run counts what it counted before. A run that cannot be read counts for nothing,
    and neither does a replay: it repeats answers that were counted before.
    """
    found = sorted(row for row in _evaluated_runs(out, task_id) if row[0] < run_id and row[1] == stamp)
    variants = {variant for _, _, own in found for variant in own}.union(committed.get(stamp, ()))
    runs = [run for run, _, _ in found]
    return {"earlier": len(found), "runs": runs[-LISTED:], "variants": sorted(variants)}


def looks_on_disk(out: Path | None, task_id: str) -> Looks:
    """Return the variants that the runs of a task have evaluated, by eval split."""
    return merged(*({split: variants} for _, split, variants in _evaluated_runs(out, task_id)))


def _evaluated_runs(out: Path | None, task_id: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the id of each run or arena that ended an eval sweep, the stamp of the split, the variants."""
    runs = run_folder(out, task_id, "-").parent if out is not None else None
    if runs is None:
        return
    seeds = (runs.parent / REPLICATIONS).glob(f"*/*/{glob.escape(task_id)}/{runs.name}/*/{JOURNAL}")
    for path in (*runs.glob(f"*/{JOURNAL}"), *seeds):
        split = _stamp_in(path)
        variant = None if split is None else _variant_in(path.with_name(PER_EPOCH))
        if split is not None and variant is not None:
            yield path.parent.name, split, (variant,)
    yield from _arenas(runs.parent)


def dev_before(out: Path, task_id: str, wanted: str) -> frozenset[str] | None:
    """Return the ids of the dev scenarios of the run to resume, the newest open one for ``latest``.

    None where there is none, or none that can be read: who resumes it says so.
    """
    runs = out / task_id / RUNS
    for folder in sorted(runs.iterdir(), reverse=True) if runs.is_dir() else ():
        if wanted not in ("latest", folder.name):
            continue
        try:
            if wanted == "latest" and _is_complete(folder / MANIFEST):
                continue
            with open_plain(folder / JOURNAL) as file:
                event = decode(file.readline()[:-1])
            if event is not None:
                return frozenset(s["id"] for s in event.data["scenarios"] if s["split"] == "dev")
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _is_complete(manifest: Path) -> bool:
    try:
        return bool(load_json(manifest.read_bytes())["status"] == "complete")
    except FileNotFoundError:
        return False


def _arenas(task: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield each arena that ended, and was no replay, as a run that evaluated a variant for each side."""
    for path in task.glob(f"{ARENAS}/*/{ARENA_RESULT}"):
        try:
            value = load_json(path.read_bytes())
            variants = tuple(str(side["variant"]) for side in value["sides"] if side["variant"])
            begun = load_json(path.with_name(ARENA_PLAN).read_bytes())["arguments"]
            if variants and not begun.get("replay"):
                yield path.parent.name, str(value["suite_hash"]), variants
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue


def _stamp_in(path: Path) -> str | None:
    """Return the stamp of the eval split in the header of a journal; None without one, and of a replay."""
    try:
        with open_plain(path) as file:
            head = file.read(_HEAD)
            if _REPLAY.search(head):
                return None
            found = _STAMPS.search(head)
            stamps = load_json(found[1]) if found is not None else {}
            if "eval" in stamps:
                return str(stamps["eval"])
            file.seek(0)
            event = decode(file.readline()[:-1])
        return None if event is None else _stamp_of(event.data)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _stamp_of(header: Mapping[str, Any]) -> str:
    """Return the stamp of the eval split of a run that did not write it down."""
    return split_stamp(s["stamp"] for s in header["scenarios"] if s["split"] == "eval")


def _variant_in(path: Path) -> str | None:
    """Return the variant that a run ended a sweep of, at least in part; None if it ended none.

    Of a run that did not write it down nobody knows whether it repeats another: it counts for itself.
    """
    try:
        value = load_json(path.read_bytes())
        evaluated = any(row["mode"] == "eval" and row["rollouts"] > 0 for row in value["epochs"])
        return str(value.get("variant", f"run {path.parent.name}")) if evaluated else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
