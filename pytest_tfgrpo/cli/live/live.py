"""The commands ``tfgrpo live ...``: start with live RL, look at what it learned, and reset its guard."""

from __future__ import annotations

from pytest_tfgrpo.cli.parsers import CommandRow, Parser

COMMANDS = (
    CommandRow("init", "Write a first live.toml, and an example service that uses it.", "live.init"),
    CommandRow(
        "demo",
        "Watch a selector learn which of three arms is best, offline; then its store fails and is killed.",
        "live.live_demo",
    ),
    CommandRow(
        "status", "Print gate, runs, what updates left out, probabilities and the last update.", "live.status"
    ),
    CommandRow(
        "report",
        "Print what the selector brings over its control, how each category fares, and the last updates.",
        "live.report",
    ),
    CommandRow(
        "evaluate",
        "Estimate from the runs there were what another policy would have earned.",
        "live.evaluate",
    ),
    CommandRow(
        "drafts",
        "Write the runs that went most unlike others of their category as drafts of scenarios.",
        "live.drafts",
    ),
    CommandRow(
        "export",
        "Print each choice as a line of JSON: context, arms, arm, propensity, reward.",
        "live.export",
    ),
    CommandRow(
        "ingest",
        "Store the runs of agents of other frameworks, from files of their OpenTelemetry spans.",
        "live.ingest",
    ),
    CommandRow(
        "reset",
        "Let a gate that holds pass again; its memory of failures and of control starts anew.",
        "live.reset",
    ),
)


def declare(parser: Parser) -> None:
    """Add the commands of the group."""
    parser.add_commands(COMMANDS)
