"""The commands ``tfgrpo live ...``: start with live RL, look at what it learned, and reset its guard."""

from __future__ import annotations

from pytest_tfgrpo.cli.parsers import CommandRow, Parser

COMMANDS = (
    CommandRow("init", "Write a first live.toml, and an example service that uses it.", "live.init"),
    CommandRow(
        "demo",
        "Watch a selector learn offline; then its store fails and is killed.",
        "live.live_demo",
    ),
    CommandRow("status", "Print gate, runs, probabilities and the last update.", "live.status"),
    CommandRow(
        "report",
        "Print what the selector gains over its control, by category, and the last updates.",
        "live.report",
    ),
    CommandRow(
        "evaluate",
        "Estimate from past runs what another policy would have earned.",
        "live.evaluate",
    ),
    CommandRow(
        "drafts",
        "Write the most unusual runs as drafts of scenarios.",
        "live.drafts",
    ),
    CommandRow(
        "export",
        "Print each choice as a line of JSON.",
        "live.export",
    ),
    CommandRow(
        "ingest",
        "Store runs from files of OpenTelemetry spans.",
        "live.ingest",
    ),
    CommandRow(
        "reset",
        "Let a gate that holds pass again, without its memory of failures.",
        "live.reset",
    ),
)


def declare(parser: Parser) -> None:
    """Add the commands of the group."""
    parser.add_commands(COMMANDS)
