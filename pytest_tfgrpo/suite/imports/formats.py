"""The formats of an import, and the scenario file that it writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.file_writing import write_pieces, write_text
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.schema import pointer
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.imports.deepeval import read_goldens
from pytest_tfgrpo.suite.imports.harbor.tasks import read_tasks
from pytest_tfgrpo.suite.imports.hugging_face import read_dataset
from pytest_tfgrpo.suite.imports.imported import Imported
from pytest_tfgrpo.suite.imports.inspect_samples import read_samples
from pytest_tfgrpo.suite.imports.promptfoo import read_config
from pytest_tfgrpo.suite.imports.tables import TableColumns, read_table
from pytest_tfgrpo.suite.imports.trial import CheckTrial
from pytest_tfgrpo.suite.scenario import Invalid, Loader

SUFFIX = ".scenarios.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportFormat:
    """One format that an import reads."""

    read: Callable[[Imported, Path, TableColumns, str], None]
    """Adds the scenarios of a file; raises ScenarioError."""
    expect: str = ""
    """What an expected answer becomes, unless you say otherwise; empty where the file itself says it."""
    has_columns: bool = True
    """Whether you may say which columns are what."""


FORMATS = {
    "promptfoo": ImportFormat(read=lambda found, path, *_: read_config(found, path), has_columns=False),
    "deepeval": ImportFormat(
        read=lambda found, path, _, expect: read_goldens(found, path, expect=expect),
        expect="rubric",
        has_columns=False,
    ),
    "inspect": ImportFormat(read=read_samples, expect="contains"),
    "csv": ImportFormat(read=read_table, expect="exact"),
    "jsonl": ImportFormat(read=read_table, expect="exact"),
    "hf": ImportFormat(read=read_dataset, expect="exact"),
    "harbor": ImportFormat(read=lambda found, path, *_: read_tasks(found, path), has_columns=False),
}


def read_files(form: str, paths: Iterable[Path], *, columns: TableColumns, expect: str | None) -> Imported:
    """Return what the files of a format become.

    Raises ScenarioError for a file that is not of the format, and for options that it has no use for.
    """
    found, chosen = Imported(), FORMATS[form]
    if expect is not None and not chosen.expect:
        raise ScenarioError(f"a file of {form} already says what it expects; leave out --expect")
    if columns != TableColumns() and not chosen.has_columns:
        raise ScenarioError(f"the keys of a file of {form} have fixed names; leave out the names of columns")
    for path in paths:
        found.source = ""
        chosen.read(found, path, columns, expect or chosen.expect)
    return found


def write_scenarios(
    found: Imported, folder: Path, stem: str, *, force: bool, trial: CheckTrial | None = None
) -> tuple[Path, int]:
    """Write the valid scenarios to a file in `folder`, and the files that they name beside it.

    Return the file and how many scenarios it has; `trial` tries the checks of each. What is not valid is
    noted in `found`. Raises ScenarioError where there is nothing to write, or a file is there and `force` is
    not, and JournalError where one cannot be written.
    """
    target = folder / f"{stem}{SUFFIX}"
    for place in (target, *(folder / name for name in found.files)):
        if place.exists() and not force:
            raise ScenarioError(
                f"{place} exists; name another folder with --into, or replace it with --force"
            )
    if not found.scenarios:
        raise ScenarioError("\n".join(["nothing could be imported", *found.report()]))
    folder.mkdir(parents=True, exist_ok=True)
    _write_files(found.files, folder)
    loader, kept = Loader(folder, KINDS), list[Json]()
    for scenario in found.scenarios:
        try:
            built = loader.build(scenario, source=str(target))
        except Invalid as error:
            path, message = error.violations[0]
            found.leave_out(f"scenarios that are not valid: {pointer(path)}: {message}", scenario["id"])
        else:
            kept.append(scenario)
            if trial is not None:
                trial.add(built, found.origins[scenario["id"]])
    if not kept:
        raise ScenarioError("\n".join(["nothing could be imported", *found.report()]))
    write_text(target, "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in kept))
    return target, len(kept)


def _write_files(files: Mapping[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ScenarioError(f"cannot make the folder {path.parent}: {error.strerror}") from None
        write_pieces(path, [data])
