"""The command ``tfgrpo import``: scenarios out of the test files of other tools."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Arguments, Parser
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.suite.imports.formats import read_files, write_scenarios
from pytest_tfgrpo.suite.imports.tables import TableColumns
from pytest_tfgrpo.suite.imports.trial import CheckTrial

FORMATS = ("promptfoo", "deepeval", "inspect", "csv", "jsonl", "hf", "harbor")
EXPECTED = ("exact", "contains", "number", "math", "regex", "similar", "rubric")
COLUMNS = ("prompt", "answer", "id", "domain", "split")


def declare(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls(import_suite)
    command.add_argument(
        "format",
        metavar="FORMAT",
        choices=FORMATS,
        help="promptfoo (a configuration), deepeval (goldens), inspect (samples), csv, jsonl, hf (a "
        "Parquet or Arrow file, or a folder of save_to_disk), or harbor (a task, or a folder of tasks)",
    )
    command.add_argument("files", metavar="FILE", nargs="+", type=Path, help="the files or folders to read")
    command.add_argument(
        "--into", metavar="FOLDER", type=Path, required=True, help="the folder of your suite to write into"
    )
    command.add_argument("--force", action="store_true", help="replace files that an earlier import wrote")
    command.add_argument(
        "--expect",
        metavar="KIND",
        choices=EXPECTED,
        help=f"what an expected answer becomes: {', '.join(EXPECTED)} (default: exact; inspect contains, "
        "deepeval rubric)",
    )
    for name in COLUMNS:
        command.add_argument(
            f"--{name}", metavar="COLUMN", help=f"column of the {name} (csv, jsonl, hf, inspect)"
        )


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
