"""Earlier runs: how many used an eval split, and which scenarios one that goes on took as its dev split.

If you run often and keep the best run, you select on the eval split, and its score is too high:
Dwork et al. 2015, "The reusable holdout". The runs on disk show how often that happened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.files import JOURNAL, MANIFEST, PER_EPOCH, RUNS, run_folder
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.stamp import combined_stamp
from pytest_tfgrpo.core.wire import Json
from pytest_tfgrpo.harness.run.journal import decode

LISTED = 20
"""Latest earlier runs that are named."""
_HEAD = 65_536
"""Bytes at the start of a journal that contain its stamps, except with very long settings."""
_REPLAY = re.compile(rb'"settings":\{"actor":"replay:')
_STAMPS = re.compile(rb'"stamps":(\{[^{}]*\})')


def eval_stamp(scenarios: Iterable[Scenario]) -> str:
    """Return the stamp of an eval split: of the set of its task stamps, whatever the scenarios are called."""
    return combined_stamp({s.stamp for s in scenarios if s.split == "eval"})


def earlier_evaluations(out: Path | None, task_id: str, run_id: str, stamp: str) -> Json:
    """Return how many runs of the task before `run_id` swept the eval split with `stamp`, and the latest.

    Run ids sort by time, so that a resumed run counts what it counted before. A run that cannot be read
    counts for nothing, and neither does a replay: it repeats answers that were counted when they were given.
    """
    folders = sorted(run_folder(out, task_id, run_id).parent.glob(f"*/{JOURNAL}")) if out is not None else []
    found = [
        path.parent.name
        for path in folders
        if path.parent.name < run_id and _stamp_in(path) == stamp and _evaluated(path.with_name(PER_EPOCH))
    ]
    return {"earlier": len(found), "runs": found[-LISTED:]}


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
            with (folder / JOURNAL).open("rb") as file:
                event = decode(file.readline()[:-1])
            if event is not None:
                return frozenset(s["id"] for s in event.data["scenarios"] if s["split"] == "dev")
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _is_complete(manifest: Path) -> bool:
    try:
        return bool(json.loads(manifest.read_bytes())["status"] == "complete")
    except FileNotFoundError:
        return False


def _stamp_in(path: Path) -> str | None:
    """Return the stamp of the eval split in the header of a journal; None without one, and of a replay."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            if _REPLAY.search(head):
                return None
            found = _STAMPS.search(head)
            stamps = json.loads(found[1]) if found is not None else {}
            if "eval" in stamps:
                return str(stamps["eval"])
            file.seek(0)
            event = decode(file.readline()[:-1])
        return None if event is None else _stamp_of(event.data)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _stamp_of(header: Mapping[str, Any]) -> str:
    """Return the stamp of the eval split of a run that did not write it down."""
    return combined_stamp({s["stamp"] for s in header["scenarios"] if s["split"] == "eval"})


def _evaluated(path: Path) -> bool:
    """Return whether a run ended a sweep of the eval split with what it had learned, at least in part."""
    try:
        rows = json.loads(path.read_bytes())["epochs"]
        return any(row["mode"] == "eval" and row["rollouts"] > 0 for row in rows)
    except (OSError, ValueError, KeyError, TypeError):
        return False
