"""The figures of the loop as lines of 80 columns; what comes from outside is made printable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_tfgrpo.core.texts.text import interval, line, number, plural, table, wrapped
from pytest_tfgrpo.production.bus.streams import DEAD
from pytest_tfgrpo.production.report.dead_codes import DEAD_CODES
from pytest_tfgrpo.production.report.figures import (
    BAD,
    GOOD,
    LoopReport,
    NewestTrajectories,
    TaskReward,
    VersionReward,
)
from pytest_tfgrpo.production.view.view import DEPLOYMENTS, TRAINING

RECORDS_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"
"""What has instrumentations by OpenTelemetry's conventions record questions, answers and arguments."""
TABLE = "docs/guides/trace-an-agent.md"
"""Where a user finds what other frameworks take."""
WIDTH = 80
_LABEL = 11
_STREAMS = {
    "RL_SPANS": "span event",
    "RL_TRAJECTORIES": "trajectory",
    "RL_FEEDBACK": "feedback",
    "RL_REWARDS": "reward",
    TRAINING: "training event",
    DEPLOYMENTS: "deployment",
    DEAD: "dead letter",
}
"""Streams whose events are counted in a text, in this order."""
_SELDOM = (TRAINING, DEPLOYMENTS)
"""Streams that are named where they have events."""
_PLURALS = {"trajectory": "trajectories", "feedback": "feedback"}
_MOST_MIXED = 20
"""Tasks that are listed."""


def labelled(label: str, text: str) -> list[str]:
    """Return a label and what it stands for, wrapped below itself."""
    return wrapped(text, WIDTH, f"{label:<{_LABEL}}", " " * _LABEL)


def counted(counts: Mapping[str, int], nothing: str = "none") -> str:
    """Return counts by name in one text."""
    return ", ".join(f"{line(name, 40)} {count:,}" for name, count in counts.items()) or nothing


def streams_text(counts: Mapping[str, int]) -> str:
    """Return how many events of each stream there are."""
    parts = []
    for stream, name in _STREAMS.items():
        count = counts.get(stream, 0)
        if stream not in counts or (stream in _SELDOM and not count):
            continue
        parts.append(f"{count:,} {name if count == 1 else _PLURALS.get(name, name + 's')}")
    return ", ".join(parts) or "nothing"


def alive(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts without that of dead letters, which have a line of their own by code."""
    return {stream: count for stream, count in counts.items() if stream != DEAD}


def report_lines(report: LoopReport) -> Iterator[str]:
    """Yield what a report says."""
    yield from labelled("published", streams_text(alive(report.published)))
    yield from labelled("redacted", counted(report.redacted))
    yield from labelled("left out", f"{report.opted_out:,} opted out, {report.forgotten:,} forgotten")
    yield from _dead(report.dead)
    yield from _missing(report)
    have = "trajectory has" if report.rewards == 1 else "trajectories have"
    rewarded = f"{report.rewards:,} {have} one, and {plural(report.revisions, 'revision')} came later"
    yield from labelled("rewards", f"{rewarded}; of {report.unrewarded:,} too little is known")
    newest = report.newest
    if not newest.versions:
        return
    yield ""
    yield from _versions(newest.versions)
    yield ""
    yield from _worst(newest)
    yield ""
    yield from _mixed(newest.mixed)


def _dead(dead: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each code, with what to do."""
    label = "dead"
    for code, count in dead.items():
        meaning = f": {DEAD_CODES[code]}" if code in DEAD_CODES else ""
        yield from labelled(label, f"{count:,} {line(code, 40)}{meaning}")
        label = ""
    if not dead:
        yield from labelled(label, "none")


def _missing(report: LoopReport) -> Iterator[str]:
    """Yield how many runs failed, what the spans lack, or brought too late, with what to do."""
    newest = report.newest
    if newest.failed:
        text = f"{newest.failed:,} of {newest.looked_at:,} runs failed"
        yield from labelled("failed", f"{text}; see one with: tfgrpo loop show {newest.one_failed}")
    if newest.without_texts:
        text = f"{_runs(newest.without_texts, newest)} no texts, neither question nor answer nor arguments: "
        text += f"switch on recording of content, for many frameworks with {RECORDS_CONTENT}"
        yield from labelled("texts", f"{text}; {TABLE} lists the others")
    if newest.without_session:
        text = f"{_runs(newest.without_session, newest)} no session of their own: set session.id on a span of"
        yield from labelled("sessions", f"{text} the run, since intervals count conversations")
    if report.late or report.trajectory_revisions:
        revisions = f"{report.trajectory_revisions:,} revisions of trajectories"
        text = f"{report.late:,} spans came after the trajectory of their trace, and {revisions} were made"
        yield from labelled("late", f"{text} for them; if these are many, raise [assembler] settle_s")


def _runs(count: int, newest: NewestTrajectories) -> str:
    return f"{count:,} of {newest.looked_at:,} runs have"


def _versions(versions: Sequence[VersionReward]) -> Iterator[str]:
    rows = [
        [
            line(one.domain, 14),
            "-" if one.policy_version is None else line(one.policy_version, 20),
            f"{one.runs:,}",
            f"{one.sessions:,}",
            number(one.mean),
            "-" if one.low is None or one.high is None else interval((one.low, one.high)),
        ]
        for one in versions
    ]
    yield from table(["domain", "version", "runs", "sessions", "reward", "95 % interval"], rows, left=2)
    if any(one.low is None for one in versions):
        yield "no interval: it takes runs of 8 sessions with like numbers of runs, or more"


def _worst(newest: NewestTrajectories) -> Iterator[str]:
    yield "worst kinds of task; see one with: tfgrpo loop show ID"
    if not newest.worst:
        yield "none: no trajectory has task_context.task_key and a reward"
        return
    rows = [
        [line(one.task_key, 26), line(one.domain, 14), f"{one.runs:,}", number(one.mean), *_ids(one)]
        for one in newest.worst
    ]
    yield from table(["task", "domain", "runs", "reward", "worst ids"], rows, left=2)
    if newest.without_task:
        yield f"trajectories without task_key, which are in none of them: {newest.without_task:,}"


def _ids(task: TaskReward) -> list[str]:
    return [" ".join(short_id(id_) for id_ in task.worst[:2])]


def short_id(id_: str) -> str:
    """Return the start of an id that finds it, unless two ids are alike."""
    return id_[:8]


def _mixed(tasks: Sequence[TaskReward]) -> Iterator[str]:
    yield (
        f"{plural(len(tasks), 'task')} with good (reward from {GOOD:g}) and bad (up to {BAD:g}) attempts"
        + (", such as" if len(tasks) > _MOST_MIXED else "")
    )
    if not tasks:
        return
    rows = [
        [
            line(one.task_key, 26),
            line(one.domain, 14),
            f"{one.good:,}",
            f"{one.bad:,}",
            short_id(one.best),
            short_id(one.worst[0]),
        ]
        for one in tasks[:_MOST_MIXED]
    ]
    yield from table(["task", "domain", "good", "bad", "best", "worst"], rows, left=2)
