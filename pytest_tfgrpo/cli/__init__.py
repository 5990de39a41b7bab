"""The ``tfgrpo`` command: one file per command; each yields the lines that it prints.

Exit codes: 0, 1 for an expected error, 2 for wrong usage, 3 for a bug, 130 after Ctrl-C.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from pytest_tfgrpo import __version__
from pytest_tfgrpo.cli.commands import listed
from pytest_tfgrpo.cli.parsers import Parser, command_of
from pytest_tfgrpo.core.errors import TfgrpoError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: that of the process) and return the exit code."""
    try:
        arguments, unknown = parser().parse_known_args(argv)
        if unknown:
            arguments.parser.refuse(unknown)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        for line in command_of(arguments.work)(arguments):
            print(line, flush=True)
    except BrokenPipeError:  # the reader has left; keep the interpreter from flushing into the void
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (TfgrpoError, OSError) as error:
        from pytest_tfgrpo.core.texts.text import block  # help needs none of what takes secrets out

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


def parser() -> Parser:
    """Return the parser of the whole command line; that of a command gets its arguments when it is called."""
    parser = Parser(prog="tfgrpo", description="Inspect and manage what pytest --tfgrpo learned.")
    parser.add_argument("--version", action="version", version=f"pytest-tfgrpo {__version__}")
    parser.add_commands(listed())
    return parser
