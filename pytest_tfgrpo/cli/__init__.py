"""The ``tfgrpo`` command: one file per subcommand; each yields the lines that it prints.

Exit codes: 0, 1 for an expected error, 2 for wrong usage, 3 for a bug, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from pytest_tfgrpo import __version__
from pytest_tfgrpo.core.errors import TfgrpoError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: that of the process) and return the exit code."""
    arguments, unknown = parser().parse_known_args(argv)
    if unknown:
        arguments.parser.refuse(unknown)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for line in arguments.command(arguments):
            print(line, flush=True)
    except BrokenPipeError:  # the reader has left; keep the interpreter from flushing into the void
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (TfgrpoError, OSError) as error:
        from pytest_tfgrpo.core.texts.text import block

        print(f"tfgrpo: {block(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception:  # noqa: BLE001 - the one place where a bug ends
        import traceback

        traceback.print_exc()
        print("tfgrpo: this is a bug in pytest-tfgrpo; please report it", file=sys.stderr)
        return 3
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    from pytest_tfgrpo.cli.harvest import harvest
    from pytest_tfgrpo.cli.live import live
    from pytest_tfgrpo.cli.loop import loop
    from pytest_tfgrpo.cli.parsers import Parser
    from pytest_tfgrpo.cli.runs import (
        baseline,
        export,
        history,
        labels,
        lessons,
        library,
        record,
        replicate,
        report,
        review,
        runs,
        show,
        view,
    )
    from pytest_tfgrpo.cli.suite import import_suite, init, stamp

    parser = Parser(prog="tfgrpo", description="Inspect and manage what pytest --tfgrpo learned.")
    parser.add_argument("--version", action="version", version=f"pytest-tfgrpo {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    first = (init, import_suite, stamp, runs, history, view, report, show, review, replicate)
    for command in (*first, baseline, library, record, lessons, labels, export, harvest, live, loop):
        command.declare(commands)
    return parser
