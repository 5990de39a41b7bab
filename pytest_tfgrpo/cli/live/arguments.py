"""The arguments of the commands of live RL, apart from their work."""

from __future__ import annotations

from pytest_tfgrpo.cli.parsers import CommandRow, Parser, whole

TASKS = 600
"""Tasks of the demo."""
COMMANDS = (
    CommandRow("init", "Write a first live.toml, and an example service that uses it.", "live.init"),
    CommandRow(
        "demo", "Watch a selector learn offline; then its store fails and is killed.", "live.live_demo"
    ),
    CommandRow("status", "Print gate, runs, probabilities and the last update.", "live.status"),
    CommandRow(
        "report",
        "Print what the selector gains over its control, by category, and the last updates.",
        "live.report",
    ),
    CommandRow("evaluate", "Estimate from past runs what another policy would have earned.", "live.evaluate"),
    CommandRow("drafts", "Write the most unusual runs as drafts of scenarios.", "live.drafts"),
    CommandRow("export", "Print each choice as a line of JSON.", "live.export"),
    CommandRow("ingest", "Store runs from files of OpenTelemetry spans.", "live.ingest"),
    CommandRow("reset", "Let a gate that holds pass again, without its memory of failures.", "live.reset"),
)


def add_last(command: Parser) -> None:
    """Add how many runs are looked at."""
    command.add_argument(
        "--last", type=whole, default=10_000, metavar="N", help="newest runs to look at (default: 10000)"
    )


def add_config(command: Parser) -> None:
    """Add what names the configuration."""
    command.add_argument(
        "--config", metavar="FILE", help="configuration (default: TFGRPO_LIVE_RL_CONFIG, else live.toml)"
    )


def drafts(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("live.drafts:drafts")
    command.add_argument("--into", required=True, metavar="DIR", help="folder of the drafts")
    command.add_argument("--most", type=whole, default=10, metavar="N", help="at most (default: 10)")
    add_last(command)
    add_config(command)


def evaluate(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("live.evaluate:evaluate")
    command.add_argument("--policy", required=True, metavar="P", help="arm:NAME, selector:N or uniform")
    command.add_argument("--point", metavar="NAME", help="where it chooses (default: the only point)")
    command.add_argument(
        "--quantity", choices=("reward", "score"), default="reward", help="what it earns (default: reward)"
    )
    add_last(command)
    add_config(command)


def export(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("live.export:export")
    add_config(command)


def ingest(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("live.ingest:ingest")
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="OTLP JSON lines; several are taken together"
    )
    add_config(command)


def init(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("live.init:init")
    command.add_argument("folder", nargs="?", default=".", metavar="DIR", help="folder (default: here)")
    command.add_argument("--force", action="store_true", help="overwrite files that exist")


def live(parser: Parser) -> None:
    """Add the commands of the group."""
    parser.add_commands(COMMANDS)


def live_demo(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("live.live_demo:demo_command")
    command.add_argument("--tasks", type=whole, default=TASKS, metavar="N", help="tasks (default: 600)")
    command.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of tasks (default: 0)")
    command.add_argument(
        "--shuffle-rewards",
        action="store_true",
        help="report the score of some other task, so that there is nothing to learn",
    )
    command.add_argument("--into", metavar="DIR", help="empty folder to keep its files in (default: none)")


def report(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("live.report:report")
    add_last(command)
    add_config(command)


def reset(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("live.reset:reset")
    command.add_argument("--actor", required=True, metavar="A", help="who resets it, for the journal")
    command.add_argument("--reason", required=True, metavar="R", help="why, for the journal")
    add_config(command)


def status(command: Parser) -> None:
    """Add the arguments of the command."""
    command.calls("live.status:status")
    command.add_argument("--json", action="store_true", help="print JSON")
    add_config(command)
