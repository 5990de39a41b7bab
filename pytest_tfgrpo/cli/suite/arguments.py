"""The arguments of the commands of suites, apart from their work."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from pytest_tfgrpo.cli.parsers import Parser, whole

SUITES = ("refusal_behavior", "toxicity_test", "jailbreak_resistance", "bias", "injection", "secret_leak")
"""Those of `suite.safety`, which loads more than help needs."""
EXPECTED = ("exact", "contains", "number", "math", "regex", "similar", "rubric")
FORMATS = ("promptfoo", "deepeval", "inspect", "csv", "jsonl", "hf", "harbor")
COLUMNS = ("prompt", "answer", "id", "domain", "split")


def _format(text: str) -> str:
    """Return the name of a format; raises ArgumentTypeError with the whole command where it is a file."""
    if text not in FORMATS and (Path(text).suffix or Path(text).exists()):
        alike = [name for name in FORMATS if name in text.lower()]
        form = alike[0] if alike else "FORMAT"
        known = "" if alike else f"; FORMAT is one of {', '.join(FORMATS)}"
        raise argparse.ArgumentTypeError(
            f"is missing before the file: tfgrpo import {form} {shlex.quote(text)} --into FOLDER{known}"
        )
    return text


def import_suite(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("suite.import_suite:import_suite")
    command.add_argument(
        "format",
        metavar="FORMAT",
        choices=FORMATS,
        type=_format,
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
        text = "; or the split of all: train, dev, eval" * (name == "split")
        command.add_argument(
            f"--{name}", metavar="COLUMN", help=f"column of the {name} (csv, jsonl, hf, inspect){text}"
        )


def init(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("suite.init:init")
    command.epilog = "For CI, copy a workflow from docs/ci.md."
    command.add_argument(
        "folder", nargs="?", default=".", metavar="DIR", help="project folder (default: here)"
    )
    command.add_argument("--force", action="store_true", help="overwrite example files that exist")
    command.add_argument(
        "--example",
        metavar="NAME",
        help="start from a larger example: coding, for agents that change files;"
        " history, a repository whose fixes become scenarios",
    )


def safety(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("suite.safety:safety")
    command.add_argument("--to", metavar="DIR", required=True, help="folder for the scenario files")
    command.add_argument(
        "--suite",
        action="append",
        choices=SUITES,
        metavar="SUITE",
        help=f"one of {', '.join(SUITES)}; may be repeated (default: all)",
    )
    command.add_argument(
        "--domain",
        action="append",
        metavar="DOMAIN",
        help="domain whose prompts and lessons are tried; may be repeated (default: all with a prompt pack)",
    )
    command.add_argument("--seed", type=whole, default=0, metavar="N", help="another wording (default: 0)")
    command.add_argument(
        "--without-judge", action="store_true", help="leave out the scenarios that only a judge decides"
    )
    command.add_task()


def check(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("suite.check:check")
    command.add_argument(
        "--kind",
        action="append",
        default=[],
        metavar="NAME",
        help="pass over checks of this kind, which your conftest.py or a library that is not here supplies",
    )
    command.add_argument(
        "places",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="scenario file, or folder of them (default: the project)",
    )


def stamp(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("suite.stamp:stamp")
    command.add_argument(
        "--check", action="store_true", help="only verify; exit 1 and print each file that differs"
    )
    command.add_argument(
        "folders",
        nargs="*",
        metavar="FOLDER",
        help="prompt pack, or folder of prompt packs (default: the setting prompt_packs)",
    )
