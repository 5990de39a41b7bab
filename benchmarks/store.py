"""Append, open and query 100,000 experiences, against SQLite (WAL, synchronous=FULL) doing the same work.

    python benchmarks/store.py [--quick] [--records N]

Both take batches of 1,000, each durable when the call returns and idempotent by id; both answer with the
eight best experiences of one of ten domains, read back whole and chosen with anti-dominance.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from pytest_tfgrpo.core.lessons import Experience, Reward, Support, ToolStat
from pytest_tfgrpo.core.wire.stamp import identify
from pytest_tfgrpo.learning.library.experience_lines import encode, load
from pytest_tfgrpo.learning.library.experience_store import ExperienceStore
from pytest_tfgrpo.learning.library.retrieval import pick, raw_score

BATCH, PER_GROUP, DOMAINS, LIMIT, WEIGHTS = 1000, 5, 10, 8, (0.7, 0.3)
STAMP = "a" * 64


def batches(count: int) -> Iterator[list[Experience]]:
    """Yield `count` seeded experiences in batches, as runs of 200 groups with five lessons each."""
    chance = random.Random(0)
    for start in range(0, count, BATCH):
        second = start // BATCH
        created = f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
        yield [experience(n, chance, created) for n in range(start, min(start + BATCH, count))]


def experience(n: int, chance: random.Random, created: str) -> Experience:
    """Return the lesson with number `n`."""
    run, group = f"run{n // BATCH}", n // PER_GROUP
    return Experience(
        id=identify(run, n),
        run_id=run,
        task_id="bench",
        domain=f"domain-{group % DOMAINS}",
        prompt_pack_id="bench",
        epoch=1,
        group_id=f"{run}.e1.s{group}",
        summary32=f"For tasks about topic{group % 997}: use split_words, then tool_{n % 53}, then add.",
        polarity="do",
        reward=Reward(
            gt_score=chance.choice((0.5, 1.0, 1.0)), relative_rank=chance.choice((0.625, 0.75, 0.875))
        ),
        support=Support(groups=1, rollouts=3),
        tool_stats=(ToolStat(tool="split_words", tokens=12, latency_ms=0.25, cost_usd=0.0),),
        stamp_signature=STAMP,
        actor="offline",
        created_at=created,
        manifest_path=f"runs/{run}/manifest.json",
    )


class Store(Protocol):
    """What is measured."""

    def append(self, records: Sequence[Experience], /) -> object: ...

    def fetch_top(self, domain: str, /) -> Sequence[Experience]: ...


class Ours:
    """The experience store."""

    def __init__(self, path: Path) -> None:
        self.store = ExperienceStore.open(path)
        self.append = self.store.append

    def fetch_top(self, domain: str) -> Sequence[Experience]:
        return self.store.fetch_top(domain=domain, limit=LIMIT, stamp=STAMP, weights=WEIGHTS)


class Sqlite:
    """The peer: one table, an index in order of preference."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS"
            " e(id TEXT PRIMARY KEY, domain TEXT, stamp TEXT, raw REAL, created TEXT, line BLOB)"
        )
        self.db.execute("CREATE INDEX IF NOT EXISTS best ON e(domain, stamp, raw DESC, created DESC)")
        self.db.execute("SELECT count(*) FROM e").fetchone()

    def append(self, records: Sequence[Experience]) -> None:
        rows = [
            (r.id, r.domain, r.stamp_signature, raw_score(r, WEIGHTS), r.created_at, encode(r))
            for r in records
        ]
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany("INSERT OR IGNORE INTO e VALUES(?, ?, ?, ?, ?, ?)", rows)
        self.db.execute("COMMIT")

    def fetch_top(self, domain: str) -> Sequence[Experience]:
        rows = self.db.execute(
            "SELECT line FROM e WHERE domain = ? AND stamp = ? ORDER BY raw DESC, created DESC LIMIT ?",
            (domain, STAMP, LIMIT * PER_GROUP),
        )
        loaded = [load(line) for (line,) in rows]
        return pick([(raw_score(e, WEIGHTS), e) for e in loaded], LIMIT)


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(name: str, kind: Callable[[Path], Store], path: Path, count: int) -> dict[str, float]:
    """Return the figures of one store, in seconds, records per second and bytes."""
    store = kind(path)
    appends = [timed(partial(store.append, batch)) for batch in batches(count)]
    tenth = max(1, len(appends) // 10)
    opened = json.loads(
        subprocess.run(
            [sys.executable, __file__, "--open", name, str(path)], check=True, capture_output=True, text=True
        ).stdout
    )
    size = sum(file.stat().st_size for file in path.parent.iterdir())
    return {
        "append, records/s": count / sum(appends),
        "append, first tenth, ms a batch": 1e3 * statistics.median(appends[:tenth]),
        "append, last tenth, ms a batch": 1e3 * statistics.median(appends[-tenth:]),
        "bytes a record on disk": size / count,
        **opened,
    }


def measure_open(name: str, path: Path) -> None:
    """Print what opening and asking takes in a fresh process, as JSON."""
    before = resident_mb()
    start = time.perf_counter()
    store = KINDS[name](path)
    open_s = time.perf_counter() - start
    queries = [timed(partial(store.fetch_top, f"domain-{n}")) for n in range(3)]
    figures = {
        "open, s": open_s,
        "memory after opening, MB": resident_mb() - before,
        "fetch_top, median, ms": 1e3 * statistics.median(queries),
    }
    print(json.dumps(figures))


def resident_mb() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


KINDS: dict[str, Callable[[Path], Store]] = {"ours": Ours, "sqlite": Sqlite}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="10,000 records")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--open", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.open:
        measure_open(options.open[0], Path(options.open[1]))
        return
    count = 10_000 if options.quick else options.records
    figures = {}
    for name, kind in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            figures[name] = measure(name, kind, Path(folder) / "store", count)
    print(f"{count:,} records{'':<21} {'ours':>12} {'SQLite':>12} {'ours/SQLite':>12}")
    for row, ours in figures["ours"].items():
        peer = figures["sqlite"][row]
        print(f"{row:<34} {ours:>12,.3f} {peer:>12,.3f} {ours / peer if peer else 0:>12.2f}")


if __name__ == "__main__":
    main()
