"""The command ``tfgrpo import``: scenarios out of the test files of other tools."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.suite.arguments import COLUMNS
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.suite.imports.formats import read_files, write_scenarios
from pytest_tfgrpo.suite.imports.imported import Imported
from pytest_tfgrpo.suite.imports.tables import SPLITS, TableColumns
from pytest_tfgrpo.suite.imports.trial import CheckTrial


def import_suite(arguments: Arguments) -> Iterator[str]:
    """Turn test files of other tools into scenarios, and say what was lost."""
    split = arguments.split if arguments.split in SPLITS else None
    named = {name: getattr(arguments, name) for name in COLUMNS}
    columns = TableColumns(**named | ({"split": None} if split else {}))
    found = read_files(arguments.format, arguments.files, columns=columns, expect=arguments.expect)
    for scenario in found.scenarios if split else ():
        scenario["split"] = split
    stem = arguments.files[0].name.partition(".")[0] or arguments.format
    trial = CheckTrial()
    target, n = write_scenarios(found, arguments.into, stem, force=arguments.force, trial=trial)
    yield f"{plural(n, 'scenario')} in {line(os.path.relpath(target))}"
    yield from trial.report()
    yield from found.report()
    yield from _next(arguments, found)


def _next(arguments: Arguments, found: Imported) -> Iterator[str]:
    """Yield which command runs what was imported, and how all of it is run without learning."""
    if "`split`" in found.left_out:
        yield "--split split --force takes the column `split` along"
    elif not any("split" in scenario for scenario in found.scenarios):
        yield "no split is named, so plain pytest runs about 3 in 10; --split eval --force makes it all"
    yield f"next: pytest {shlex.quote(os.path.relpath(arguments.into))}"
