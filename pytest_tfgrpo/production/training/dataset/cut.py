"""Cuts a dataset: the attempts at tasks that a job learns from, as a file of evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError, StoreError
from pytest_tfgrpo.core.evidence import EvidenceGroup, EvidenceHeader, evidence_lines
from pytest_tfgrpo.core.file_writing import write_pieces
from pytest_tfgrpo.core.files import make_private
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.wire.fitting import fit
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.training.dataset.attempt_texts import (
    attempt_of,
    attempt_prompt,
    encoded_attempt,
    encoded_head,
)
from pytest_tfgrpo.production.training.dataset.bounds import bounds_of, count_rows
from pytest_tfgrpo.production.training.dataset.draw import DatasetDraw, draw
from pytest_tfgrpo.production.training.dataset.pool import AttemptPool, task_id
from pytest_tfgrpo.production.training.dataset.request import DatasetRequest
from pytest_tfgrpo.production.view.schema import VIEW
from pytest_tfgrpo.production.view.view import TRAJECTORIES, LoopView

_TRIES = 5


def cut(
    bus: Bus,
    view: LoopView,
    asked: DatasetRequest,
    path: Path,
    *,
    domains: Mapping[str, str],
    watermark: Mapping[str, int] | None = None,
) -> EvidenceHeader:
    """Write the attempts that fit to the file at `path`, which is replaced whole; return its header.

    `domains` are those of the suite, by agent or by domain of trajectories. The same bus, request and
    watermark give the same file but for `created_at`; without a watermark all that is there is read.
    Raises StoreError, JournalError and BusError.
    """
    for _ in range(_TRIES):
        view.catch_up(bus)
        bounds = bounds_of(view, watermark)
        before = count_rows(view, bounds)
        with VIEW.advised(view.path), closing(AttemptPool(view, asked)) as pool:
            seen, left_out = pool.fill(bounds, domains)
            drawn, gone = _copied(bus, pool, asked, domains)
            view.catch_up(bus)
            if count_rows(view, bounds) != before:
                continue  # somebody was forgotten, opted out, or the stream let go of the oldest
            left_out += drawn.left_out + gone
            header = EvidenceHeader(
                created_at=utc_now(),
                filter=asked.filter(),
                sample_size=asked.sample_size,
                seed=asked.seed,
                watermark=bounds.watermark,
                counts={
                    "trajectories": seen,
                    "attempts": drawn.attempts,
                    "groups": drawn.groups,
                    "without_session": drawn.without_session,
                    "left_out": dict(sorted(left_out.items())),
                },
            )
            _make_private(path)
            write_pieces(path, (piece.encode("utf-8") for piece in _pieces(header, pool)))
            return header
    raise StoreError("what is stored went on changing while the dataset was cut; try again")


def _make_private(path: Path) -> None:
    """Have a new file for its owner alone, as the bus is."""
    try:
        make_private(path)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error


def _copied(
    bus: Bus, pool: AttemptPool, asked: DatasetRequest, domains: Mapping[str, str]
) -> tuple[DatasetDraw, Counter[str]]:
    """DatasetDraw, and copy the texts of what was drawn, until all of it is on the bus."""
    gone: Counter[str] = Counter()
    while True:
        drawn = draw(pool, asked)
        lost = dict(_copy(bus, pool, domains))
        if not lost:
            return drawn, gone
        gone.update(lost.values())
        pool.lose(lost)


def _copy(bus: Bus, pool: AttemptPool, domains: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Copy texts from the stream, read once in its order; yield what cannot be had, and why."""
    pool.db.execute("DELETE FROM pool.attempts")
    wanted = pool.db.execute("SELECT seq, task, total FROM pool.drawn ORDER BY seq")
    row = wanted.fetchone()
    events = bus.replay(TRAJECTORIES, since_sequence=row[0]) if row else iter(())
    kept: list[tuple[bytes, int, str, str]] = []
    for event in events:
        while row and row[0] < event.sequence:
            yield row[0], "gone"
            row = wanted.fetchone()
        if not row:
            break
        if row[0] == event.sequence:
            try:
                kept.append(_texts(fit(load_json(event.data)), *row, domains=domains))
            except ValueError:  # an UnfitError too: the view has not looked at the turns
                yield row[0], "unreadable"
            row = wanted.fetchone()
        if len(kept) == 500:
            pool.db.executemany("INSERT INTO pool.attempts VALUES (?, ?, ?, ?)", kept)
            kept.clear()
    pool.db.executemany("INSERT INTO pool.attempts VALUES (?, ?, ?, ?)", kept)
    while row:
        yield row[0], "gone"
        row = wanted.fetchone()


def _texts(
    payload: Json, seq: int, task: str, total: float, *, domains: Mapping[str, str]
) -> tuple[bytes, int, str, str]:
    context, metadata, key = payload["task_context"], payload.get("metadata", {}), task_id(task)
    group = EvidenceGroup(
        domain=domains.get(payload["agent_id"]) or domains.get(context["domain"], context["domain"]),
        prompt=attempt_prompt(payload),
        attempts=(),
        id=key.hex(),
        task_key=context.get("task_key"),
        model=metadata.get("model"),
        policy_version=metadata.get("policy_version"),
    )
    return key, seq, encoded_head(group), encoded_attempt(attempt_of(payload, total))


def _pieces(header: EvidenceHeader, pool: AttemptPool) -> Iterator[str]:
    """Yield the file: groups by their ids, each with its first wording, attempts in the stream's order."""
    yield from evidence_lines(header, ())
    before, end = None, ""
    for task, head, body in pool.db.execute("SELECT task, head, body FROM pool.attempts ORDER BY task, seq"):
        yield "," if task == before else f'{end}{head[:-1]},"attempts":['
        yield body
        before, end = task, "]}\n"
    yield end
