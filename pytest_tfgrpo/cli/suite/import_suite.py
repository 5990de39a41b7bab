"""The command ``tfgrpo import``: scenarios out of the test files of other tools."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.suite.arguments import COLUMNS
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.suite.imports.formats import read_files, write_scenarios
from pytest_tfgrpo.suite.imports.tables import TableColumns
from pytest_tfgrpo.suite.imports.trial import CheckTrial


def import_suite(arguments: Arguments) -> Iterator[str]:
    """Turn test files of other tools into scenarios, and say what was lost."""
    columns = TableColumns(**{name: getattr(arguments, name) for name in COLUMNS})
    found = read_files(arguments.format, arguments.files, columns=columns, expect=arguments.expect)
    stem = arguments.files[0].name.partition(".")[0] or arguments.format
    trial = CheckTrial()
    target, n = write_scenarios(found, arguments.into, stem, force=arguments.force, trial=trial)
    yield f"{plural(n, 'scenario')} in {line(os.path.relpath(target))}"
    yield from trial.report()
    yield from found.report()
