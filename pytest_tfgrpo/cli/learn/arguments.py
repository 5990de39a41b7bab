"""The arguments of the commands of learning from finished work, apart from their work."""

from __future__ import annotations

from pytest_tfgrpo.cli.parsers import CommandRow, Parser, person

COMMANDS = (
    CommandRow(
        "capture",
        "Capture finished work as a job: the change, what was asked for, and the commands that ran.",
        "learn.capture",
    ),
)


def learn(parser: Parser) -> None:
    """Add the commands of the group."""
    parser.add_commands(COMMANDS)


def capture(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("learn.capture:capture")
    command.add_argument(
        "--approver",
        type=person,
        required=True,
        metavar="ID",
        help="who approved the work; of self the agent",
    )
    command.add_argument(
        "--trigger",
        choices=("approval", "merge", "self"),
        default="approval",
        help="what ended the work (default: approval); self, the agent's own idea, waits for a person",
    )
    command.add_argument(
        "--tests-by",
        choices=("agent", "person", "unknown"),
        default="unknown",
        help="who wrote the tests (default: unknown)",
    )
    command.add_argument("--merge", metavar="REV", help="capture this commit or merge, not the working tree")
    command.add_argument("--prompt", metavar="FILE", help="what was asked for")
    command.add_argument("--criteria", metavar="FILE", help="when it is done: acceptance criteria")
    command.add_argument(
        "--history",
        metavar="FILE",
        help="JSON lines with command and exit_code, or a transcript of Claude Code or Codex",
    )
    command.add_task()
