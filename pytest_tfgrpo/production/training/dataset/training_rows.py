"""Evidence as rows for a trainer of weights, beside its file, by the writers of ``tfgrpo export``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pytest_tfgrpo.core.errors import ExportError
from pytest_tfgrpo.core.files import make_private
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.export.attempts import AdvantageKind
from pytest_tfgrpo.export.evidence import EvidenceSource
from pytest_tfgrpo.export.export import Export, write_rows
from pytest_tfgrpo.export.harbor.written_scenarios import WrittenScenario, written_scenarios
from pytest_tfgrpo.export.parquet import INSTALL, can_write_parquet, write_parquet
from pytest_tfgrpo.export.rows import ExportFormat
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.production.training.dataset.said_rows import said_of_rows, say_rows
from pytest_tfgrpo.production.view.wording import wording_of
from pytest_tfgrpo.runs.evidence_epoch import task_of
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.contamination.inspection import named_in_findings
from pytest_tfgrpo.suite.evidence_file import EvidenceFile, GroupOnFile

HOLDOUT = "-holdout"
_FORMATS: Mapping[str, Sequence[ExportFormat]] = {"dpo": ("preference",)}
_ONLINE: Sequence[ExportFormat] = ("rollouts", "prompt")
"""For an algorithm that learns from rewards: attempts that there are, and prompts to sample again."""
_ADVANTAGES: Mapping[str, AdvantageKind] = {"rloo": "rloo"}


def write_training_rows(evidence: Path, request: Mapping[str, Json], project: Path | None) -> None:
    """Write the rows that the algorithm of a request needs, unless they are there.

    They go into the folder of the evidence: JSON lines, and Parquet where the extra ``datasets`` is
    installed; tasks of the holdout have files of their own. Tasks that overlap the dev or eval split of
    `project` are in none. Raises EvidenceError, and ExportError where there is no row to train on.
    """
    folder = evidence.parent
    file = EvidenceFile(evidence)
    if said_of_rows(folder) or not file.groups:
        return
    said = [line.replace(f"{folder}/", "") for line in _written(file, folder, request, project)]
    say_rows(folder, said)


def _written(
    file: EvidenceFile, folder: Path, request: Mapping[str, Json], project: Path | None
) -> Iterator[str]:
    algorithm = request["training_config"]["algorithm"]
    barred, compared = _overlapping(file, project)
    yield compared
    tasks = {_task(one) for one in file.groups.values()} - barred
    held = held_out(tasks, request.get("evaluation", {}).get("holdout_size", 0.0))
    for format_ in _FORMATS.get(algorithm, _ONLINE):
        wanted = Export(
            format=format_,
            advantage=_ADVANTAGES.get(algorithm, "grpo"),
            min_reward=file.header.filter.get("min_reward"),
        )
        for part, apart in (("", False), (HOLDOUT, True))[: 1 + bool(held)]:
            keep = partial(_is_in, held if apart else tasks - held)
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


def _is_in(tasks: Collection[str], group: GroupOnFile) -> bool:
    return _task(group) in tasks


def _overlapping(file: EvidenceFile, project: Path | None) -> tuple[frozenset[str], str]:
    """Return tasks that overlap dev and eval scenarios in files of a project, and what is said of them."""
    if project is None:
        return frozenset(), "compared with no suite, as [training] project names none"
    found = list(written_scenarios(project))
    suite = [one.scenario for one in found if isinstance(one, WrittenScenario)]
    rest = {one.id: one for one in (task_of(group, group.domain, "") for group in file.groups.values())}
    prompts: set[str] = set()
    while named := named_in_findings(list(rest.values()), suite, kinds=KINDS, packs={}, library=empty()):
        prompts |= {rest[id_].prompt for id_ in named}
        rest = {id_: one for id_, one in rest.items() if one.prompt not in prompts}
    barred = frozenset(_task(one) for one in file.groups.values() if one.prompt in prompts)
    unread = len(found) - len(suite)
    return barred, (
        f"compared with {plural(len(suite), 'scenario')} of the project"
        + f" ({plural(unread, 'other')} cannot be read here)" * bool(unread)
        + f": {plural(len(barred), 'task')} overlapping the dev or eval split left out"
    )


def _task(group: GroupOnFile) -> str:
    """Return what groups of one task have in common, whatever agent, model or version made them."""
    return json.dumps([group.domain, group.task_key or wording_of(group.prompt)])
