"""Evidence as rows for a trainer of weights, beside its file, by the writers of ``tfgrpo export``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pytest_tfgrpo.core.errors import ExportError
from pytest_tfgrpo.core.files import make_private, write_json
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.export.attempts import AdvantageKind
from pytest_tfgrpo.export.evidence import EvidenceSource
from pytest_tfgrpo.export.export import Export, write_rows
from pytest_tfgrpo.export.parquet import INSTALL, can_write_parquet, write_parquet
from pytest_tfgrpo.export.rows import ExportFormat
from pytest_tfgrpo.production.view.wording import wording_of
from pytest_tfgrpo.suite.evidence_file import EvidenceFile, GroupOnFile

SAID = "rows.json"
"""What was written, and what was left out of it; it is written last."""
HOLDOUT = "-holdout"
_FORMATS: Mapping[str, Sequence[ExportFormat]] = {"dpo": ("preference",)}
_ONLINE: Sequence[ExportFormat] = ("rollouts", "prompt")
"""For an algorithm that learns from rewards: attempts that there are, and prompts to sample again."""
_ADVANTAGES: Mapping[str, AdvantageKind] = {"rloo": "rloo"}


def write_training_rows(evidence: Path, request: Mapping[str, Json]) -> None:
    """Write the rows that the algorithm of a request needs, unless they are there.

    They go into the folder of the evidence: JSON lines, and Parquet where the extra ``datasets`` is
    installed; tasks of the holdout have files of their own. Raises EvidenceError, and ExportError where
    there is no row to train on.
    """
    folder = evidence.parent
    file = EvidenceFile(evidence)
    if (folder / SAID).exists() or not file.groups:
        return
    said = [line.replace(f"{folder}/", "") for line in _written(file, folder, request)]
    write_json(folder / SAID, {"said": said})


def said_of_rows(folder: Path) -> Sequence[str]:
    """Return what was said of the rows in a job's folder; empty before they are written."""
    try:
        found: Sequence[str] = load_json((folder / SAID).read_bytes())["said"]
    except (OSError, ValueError):
        return ()
    return found


def _written(file: EvidenceFile, folder: Path, request: Mapping[str, Json]) -> Iterator[str]:
    algorithm = request["training_config"]["algorithm"]
    held = held_out(
        {_task(one) for one in file.groups.values()}, request.get("evaluation", {}).get("holdout_size", 0.0)
    )
    for format_ in _FORMATS.get(algorithm, _ONLINE):
        wanted = Export(
            format=format_,
            advantage=_ADVANTAGES.get(algorithm, "grpo"),
            min_reward=file.header.filter.get("min_reward"),
        )
        for part, apart in (("", False), (HOLDOUT, True)) if held else (("", False),):
            keep = partial(_is_in, held, apart)
            source = EvidenceSource(file, request["training_job_id"], keep)
            target = folder / f"{format_}{part}.jsonl"
            make_private(target)
            try:
                yield from write_rows(source, target, wanted)
            except ExportError as error:
                target.unlink(missing_ok=True)
                if not apart:
                    raise
                yield str(error)
                continue
            if can_write_parquet():
                yield f"{write_parquet(target)}: the same rows"
    if not can_write_parquet():
        yield f"no Parquet without the extra datasets: {INSTALL}"


def held_out(tasks: Collection[str], size: float) -> frozenset[str]:
    """Return the tasks of the holdout: the share `size` of them, one at least, but never all."""
    if not size or len(tasks) < 2:
        return frozenset()
    count = min(len(tasks) - 1, max(1, round(size * len(tasks))))
    return frozenset(sorted(tasks, key=lambda task: hashlib.blake2b(task.encode()).digest())[:count])


def _is_in(held: Collection[str], apart: bool, group: GroupOnFile) -> bool:
    return (_task(group) in held) is apart


def _task(group: GroupOnFile) -> str:
    """Return what groups of one task have in common, whatever agent, model or version made them."""
    return json.dumps([group.domain, group.task_key or wording_of(group.prompt)])
