"""How far the loop is: what is stored, who does which job, and how much waits for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.production.assembly.state import AssemblyState
from pytest_tfgrpo.production.assembly.trace_events import ASSEMBLER
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.evaluation.evaluator import evaluator_lag
from pytest_tfgrpo.production.report.figure_lines import alive, counted, labelled, streams_text
from pytest_tfgrpo.production.span_events import SPANS
from pytest_tfgrpo.production.view import queries
from pytest_tfgrpo.production.view.view import LoopView
from pytest_tfgrpo.storage.event_store import STATE
from pytest_tfgrpo.storage.lease import lease_holder, lease_state


@dataclass(frozen=True, kw_only=True, slots=True)
class JobStatus:
    """A job that one process does."""

    behind: int
    """Events that it has not taken into account yet."""
    holder: str
    """Machine and process that took it last; empty where the last one let go of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopStatus:
    """How far the loop is."""

    bus: str
    """Without user and password."""
    published: Mapping[str, int]
    """Events by stream, each once; of spans as many as ever came."""
    jobs: Mapping[str, JobStatus]
    """By name: assembler, evaluator."""
    late: int
    """Spans that came too late for the trajectory of their trace."""
    waiting: int
    """Feedback and rewards of others whose trajectory is not here yet."""
    dead: Mapping[str, int]
    """Dead letters by code."""


def status_of(bus: Bus, view: LoopView, name: str) -> LoopStatus:
    """Return how far the loop is on a bus that is called `name`; the view has all that is on it."""
    table = bus.table(STATE)
    state = AssemblyState.of(lease_state(table, ASSEMBLER))
    spans = bus.last(SPANS)
    orphans = (f"SELECT count(*) FROM {table} WHERE orphan AND NOT dead" for table in ("feedback", "rewards"))
    return LoopStatus(
        bus=name,
        published={SPANS: spans, **queries.stored(view)},
        jobs={
            "assembler": JobStatus(
                behind=max(0, spans - state.cursor), holder=lease_holder(table, ASSEMBLER)
            ),
            "evaluator": JobStatus(behind=evaluator_lag(bus, view), holder=lease_holder(table, "evaluator")),
        },
        late=state.late,
        waiting=sum(int(view.rows(query)[0][0]) for query in orphans),
        dead=queries.dead(view),
    )


def status_lines(status: LoopStatus) -> Iterator[str]:
    """Yield what a status says, in lines of 80 columns."""
    yield from labelled("bus", line(status.bus))
    yield from labelled("published", streams_text(alive(status.published)))
    for name, job in status.jobs.items():
        behind = "up to date" if not job.behind else f"{job.behind:,} events behind"
        holder = f"lease of {line(job.holder, 120)}" if job.holder else "nobody holds its lease"
        yield from labelled(name, f"{behind}; {holder}")
    if status.late:
        yield from labelled("late", f"{status.late:,} spans came after the trajectory of their trace")
    if status.waiting:
        yield from labelled("waiting", f"{status.waiting:,} for a trajectory that is not here yet")
    yield from labelled("dead", counted(status.dead))
