"""The commands ``tfgrpo loop versions ...``: what was learned, what it rests on, and who approved it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pytest_tfgrpo.cli.loop.loop_arguments import add_config
from pytest_tfgrpo.cli.loop.open_loop import existing_bus
from pytest_tfgrpo.cli.parsers import Arguments, Parser, add_command
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.texts.text import line, table
from pytest_tfgrpo.production.training.versions.artifacts import open_artifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.rows import VersionRow
from pytest_tfgrpo.production.training.versions.trace import trace_lines


def declare(parser: Parser) -> None:
    """Add the commands of the group."""
    group = parser.add_group()
    add_config(add_command(group, "list", list_versions))
    command = add_command(group, "trace", trace)
    command.add_argument(
        "id", metavar="ID", help="a version, or the id of a lesson or trajectory, or its start"
    )
    add_config(command)
    for name, change in (("pin", pin), ("unpin", unpin)):
        command = add_command(group, name, change)
        command.add_argument("version", metavar="VERSION", help="such as v2")
        add_config(command)
    for name, run in (("approve", approve), ("reject", reject)):
        command = add_command(group, name, run)
        command.add_argument("version", metavar="VERSION", help="such as v2")
        command.add_argument("--by", metavar="NAME", required=True, help="who decides; the audit keeps it")
        command.add_argument(
            "--because", metavar="TEXT", default="", help="why; needed where it was rejected"
        )
        add_config(command)
    command = add_command(group, "verdict", verdict)
    command.add_argument("version", metavar="VERSION", help="such as v2")
    command.add_argument(
        "--safety",
        choices=("passed", "failed"),
        metavar="RESULT",
        help="passed or failed: what its safety suites left open",
    )
    command.add_argument("--human-eval-score", type=float, metavar="SCORE", help="from 0 to 1")
    command.add_argument("--by", metavar="NAME", required=True, help="who says so; the audit keeps it")
    command.add_argument("--because", metavar="TEXT", required=True, help="why")
    add_config(command)


def list_versions(arguments: Arguments) -> Iterator[str]:
    """Print all versions: where they stand, their score on the eval split, and who decided."""
    with _policies(arguments) as policies:
        whole = {row.name for row in policies.whole()}
        rows = [_row(policies, row, row.name in whole) for row in policies.listed()]
    head = ["version", "state", "lessons", "score", "against deployed", "decided by"]
    yield from table(head, rows, left=2) if rows else ["no job has made a version yet"]


def trace(arguments: Arguments) -> Iterator[str]:
    """Print what a version, lesson or trajectory is connected with: evidence, lessons, versions."""
    with _policies(arguments) as policies:
        yield from list(trace_lines(policies, arguments.id))


def approve(arguments: Arguments) -> Iterator[str]:
    """Approve a version, so that the next job starts from it; the audit keeps by whom."""
    yield from _decide(arguments, "approved")


def reject(arguments: Arguments) -> Iterator[str]:
    """Reject a version; the audit keeps by whom."""
    yield from _decide(arguments, "rejected")


def verdict(arguments: Arguments) -> Iterator[str]:
    """Keep what a person says of a version: safe where nobody could judge that, or a score."""
    with _policies(arguments) as policies:
        row = policies.judge(
            arguments.version,
            safe=None if arguments.safety is None else arguments.safety == "passed",
            score=arguments.human_eval_score,
            by=arguments.by,
            reason=arguments.because,
            at=utc_now(),
        )
        found = policies.read(row.name).judged
    yield f"{row.name}: {line(row.verdict.said[-1]) if row.verdict else ''}"
    yield f"{row.name} {row.state.replace('_', ' ')}"
    yield from (f"  {line(reason)}" for reason in (found.reasons if found else ()))


def pin(arguments: Arguments) -> Iterator[str]:
    """Keep the files of a version however old it is."""
    yield from _pin(arguments, True)


def unpin(arguments: Arguments) -> Iterator[str]:
    """Let the files of a version go once it is old and unused."""
    yield from _pin(arguments, False)


def _pin(arguments: Arguments, pinned: bool) -> Iterator[str]:
    with _policies(arguments) as policies:
        row = policies.pin(arguments.version, pinned)
    yield f"{row.name} {'pinned' if row.pinned else 'no longer pinned'}"


def _decide(arguments: Arguments, state: str) -> Iterator[str]:
    with _policies(arguments) as policies:
        row = policies.decide(
            arguments.version,
            "approved" if state == "approved" else "rejected",
            by=arguments.by,
            reason=arguments.because,
            at=utc_now(),
        )
        yield f"{row.name} {row.state} by {line(row.by)}; deployed: {policies.deployed()}"


def _row(policies: Policies, row: VersionRow, whole: bool) -> list[str]:
    if not whole:
        return [row.name, "removed" if row.state == "removed" else "not whole yet", *[""] * 4]
    version = policies.read(row.name)
    found = version.judged
    score, gain = (found.holdout_reward, found.improvement_over_baseline) if found else (None, None)
    return [
        row.name,
        row.state.replace("_", " "),
        str(version.lessons),
        "" if score is None else f"{score:.3f}",
        "" if gain is None else f"{gain:+.3f}",
        line(row.by),
    ]


@contextmanager
def _policies(arguments: Arguments) -> Iterator[Policies]:
    with existing_bus(arguments.config) as (config, bus):
        yield Policies(bus, open_artifacts(config.store))
