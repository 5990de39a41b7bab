"""The arguments of ``tfgrpo patterns``, apart from its work."""

from __future__ import annotations

from pytest_tfgrpo.cli.parsers import Parser, Subparsers, add_command, person, positive, words

DECISIONS = (
    ("promote", "Give a candidate to agents; it says all that keeps it from that."),
    ("reject", "Put a candidate away that no agent shall read."),
    ("deprecate", "Take a pattern from agents that is obsolete or harmful."),
    ("restore", "Give a deprecated pattern back to agents, as promote does."),
)


def patterns(parser: Parser) -> None:
    """Add the commands of the group."""
    group = parser.add_group()
    _add_reading(group)
    for name, about in DECISIONS:
        command = add_command(group, name, f"patterns.decisions:{name}", about)
        command.set_defaults(untested=False)
        command.add_argument("name", metavar="NAME")
        add_person(command, "reason", "why, for the log")
        if name in ("promote", "restore"):
            command.add_argument("--untested", action="store_true", help="although no trial measured it")
        add_suite(command)
        add_repository(command)
        command.add_task()
    about = "Measure a pattern: your agent with it beside your agent without it, on dev scenarios."
    command = add_command(group, "trial", "patterns.trial:trial", about)
    command.add_argument("name", metavar="NAME")
    command.add_argument("--suite", default=".", metavar="PATH", help="scenarios to try on (default: here)")
    about = "as a lesson in prompts (default), or as a skill in workspaces"
    command.add_argument("--delivery", choices=("prompt", "skill"), default="prompt", help=about)
    about = "of each scenario and agent (default: 4)"
    command.add_argument("--rollouts", type=positive, default=4, metavar="N", help=about)
    add_repository(command)
    command.add_task()
    about = "Write the active patterns as skills for agents, and remove the skills of those that are not."
    command = add_command(group, "sync", "patterns.sync:sync", about)
    command.add_argument(
        "--check", action="store_true", help="write nothing; print what would change, and exit 1"
    )
    command.add_argument("--docs", action="store_true", help="begin docs/patterns/index.md with links")
    command.add_argument("--force", action="store_true", help="also write over skills that somebody edited")
    add_repository(command)
    about = "Print how jobs, reviews and patterns fare: what failed, was rejected, escaped, and is in use."
    command = add_command(group, "stats", "patterns.stats:stats", about)
    command.add_argument("--json", action="store_true", help="print them as one JSON object")
    command.add_argument("--html", metavar="FILE", help="also write a page: the figures, and all patterns")
    add_repository(command)
    command.add_task()
    about = "Note a regression that a pattern's change let through; without NAME look for reverts."
    command = add_command(group, "escaped", "patterns.stats:escaped", about)
    command.add_argument("name", metavar="NAME", nargs="?")
    command.add_argument("--commit", metavar="COMMIT", help="what shows or mends the regression")
    command.add_argument("--by", type=person, required=True, metavar="ID", help="who you are, for the log")
    command.add_argument("--reason", type=words, metavar="TEXT", help="what broke")
    add_repository(command)
    about = "Say something about a pattern, as a person or an agent, for who decides."
    command = add_command(group, "comment", "patterns.decisions:comment", about)
    command.add_argument("name", metavar="NAME")
    add_person(command, "text", "what to say")
    add_repository(command)


def _add_reading(group: Subparsers) -> None:
    about = "List the patterns of the repository by status: name, what a trial found, lesson."
    command = add_command(group, "list", "patterns.listing:list_", about)
    command.add_argument("--json", action="store_true", help="print whole patterns, a line each")
    add_repository(command)
    about = "Print a pattern: its file, and what was decided and said about it."
    command = add_command(group, "show", "patterns.listing:show", about)
    command.add_argument("name", metavar="NAME")
    add_repository(command)
    about = "Print how a pattern differs from another, else from its last commit, else from its parents."
    command = add_command(group, "diff", "patterns.listing:diff", about)
    command.add_argument("name", metavar="NAME")
    command.add_argument("other", metavar="OTHER", nargs="?")
    add_repository(command)
    about = "List the patterns whose name, title, lesson, description and tags have all of some words."
    command = add_command(group, "search", "patterns.listing:search", about)
    command.add_argument("words", metavar="WORD", nargs="+")
    add_repository(command)
    about = "Check and screen all patterns, and check their log; exit 1 if something is wrong."
    command = add_command(group, "lint", "patterns.lint:lint_command", about)
    command.add_argument(
        "--fix", action="store_true", help="finish what was cut short, stamp what was edited"
    )
    command.add_argument("--by", type=person, metavar="ID", help="who reviewed what was edited")
    add_suite(command)
    add_repository(command)
    command.add_task()


def add_person(command: Parser, what: str, about: str) -> None:
    """Add who decides, and why."""
    command.add_argument("--by", type=person, required=True, metavar="ID", help="who you are, for the log")
    command.add_argument(f"--{what}", type=words, required=True, metavar="TEXT", help=about)


def add_suite(command: Parser) -> None:
    """Add the suite whose answers no pattern may hold."""
    command.add_argument(
        "--suite", metavar="DIR", help="scenarios whose answers, but those of eval, no pattern may hold"
    )


def add_repository(command: Parser) -> None:
    """Add what names the repository."""
    command.add_argument(
        "--repo", metavar="DIR", help="repository with the patterns (default: the one that you are in)"
    )
