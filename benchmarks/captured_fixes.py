"""Capture each change of real histories as approved work, prove the jobs, and compare with a harvest.

    python benchmarks/captured_fixes.py FOLDER [--set releases|debian] [--only NAME] [--limit N]

It makes a git repository of each package in FOLDER as `real_fixes.py` does, captures its changes as merges,
works the queue and harvests the same range. It prints jobs by status and cause, the seconds of a job, and
what only one of both proves: a capture asks more of tests, as whoever wrote the change may have written
them. What was made stays in FOLDER; what is captured, worked or harvested there is not repeated.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from real_fixes import harvest, rows
from real_sets import SETS, Downloads, git, make_repository

from pytest_tfgrpo import capture_work

PROGRAM = Path(sys.executable).with_name("tfgrpo")


@dataclass(slots=True)
class Captured:
    """What became of the jobs of one package, or of all."""

    name: str
    ends: Counter[str] = field(default_factory=Counter)
    """Jobs by status and root cause."""
    seconds: list[float] = field(default_factory=list)
    harvested: int = 0
    both: int = 0
    """Changes that the harvest proves and the capture too."""
    further: int = 0
    """Changes that only the capture proves."""

    def add(self, other: Captured) -> None:
        self.ends += other.ends
        self.seconds += other.seconds
        self.harvested += other.harvested
        self.both += other.both
        self.further += other.further


def manifests(repository: Path) -> dict[str, dict[str, Any]]:
    """Return the manifests of a repository's jobs by the tree that each captured."""
    argv = [str(PROGRAM), "learn", "status", "--json"]
    ran = subprocess.run(argv, cwd=repository, capture_output=True, text=True, check=True)
    return {job["snapshot"]["tree"]: job for job in json.loads(ran.stdout)["jobs"] if job.get("snapshot")}


def capture(repository: Path, span: str) -> dict[str, dict[str, Any]]:
    """Capture the changes of a range as merges and work them; return the manifest of each commit's job.

    A change that got no snapshot, as one with a secret, is said and left out.
    """
    listed = git(repository, "log", "--reverse", "--format=%H %T", span)
    trees = dict(line.split() for line in listed.splitlines())
    known = manifests(repository)
    for commit, tree in trees.items():
        if tree not in known:
            message = git(repository, "log", "-1", "--format=%B", commit)
            capture_work("ann", repository, trigger="merge", merge=commit, prompt=message)
    subprocess.run([PROGRAM, "learn", "work"], cwd=repository, check=True)
    found = manifests(repository)
    for commit in (commit for commit, tree in trees.items() if tree not in found):
        print(f"  {commit[:12]} got no snapshot")
    return {commit: found[tree] for commit, tree in trees.items() if tree in found}


def compare(repository: Path, suite: Path, span: str) -> Captured:
    """Capture and harvest a range of a repository; prints what only one of both proves."""
    found = Captured(name=repository.name)
    jobs = capture(repository, span)
    harvest(repository, suite, 1, span)
    harvested = rows(suite)
    for commit, job in jobs.items():
        row, cause = harvested[commit], job.get("root_cause")
        proven, captured = row["status"] == "validated", job["status"] == "validated"
        found.ends[f"{job['status']} ({cause})" if cause else job["status"]] += 1
        found.seconds += [seconds(attempt) for attempt in job["attempts"][-1:]]
        found.harvested += proven
        found.both += proven and captured
        found.further += captured and not proven
        if proven != captured:
            print(f"  {row['id']}: {row['status']} {row.get('reason', '')!r}, job {job['reason']!r}")
    return found


def seconds(attempt: dict[str, str]) -> float:
    began, ended = (datetime.fromisoformat(attempt[name]) for name in ("started_at", "ended_at"))
    return (ended - began).total_seconds()


def show(found: Captured) -> None:
    ends = ", ".join(f"{count} {end}" for end, count in sorted(found.ends.items()))
    middle = statistics.median(found.seconds) if found.seconds else 0.0
    ninth = (
        statistics.quantiles(found.seconds, n=10, method="inclusive")[-1]
        if len(found.seconds) > 1
        else middle
    )
    print(
        f"{found.name:<22} {found.ends.total()} jobs ({ends}); one takes {middle:.1f} s, "
        f"nine of ten up to {ninth:.1f} s; of {found.harvested} that the harvest proves {found.both} are "
        f"proven, and {found.further} further ones",
        flush=True,
    )


def main() -> None:
    """Capture the changes of the chosen packages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", choices=sorted(SETS), default="debian", dest="kind")
    parser.add_argument("--only", action="append", metavar="NAME", help="packages; repeatable")
    parser.add_argument("--limit", type=int, metavar="N", help="the newest N changes of each")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    total = Captured(name="all")
    for source in SETS[arguments.kind]:
        if arguments.only is None or source.name in arguments.only:
            name = f"{source.name}-{arguments.kind}"
            repository = folder / "repositories" / name
            if not (repository / ".git").exists():
                for line in make_repository(source, Downloads(folder / "downloads"), repository):
                    print(f"  left out: {line}")
            changes = int(git(repository, "rev-list", "--count", "first..main"))
            first = f"main~{min(arguments.limit or changes, changes)}"
            found = compare(repository, folder / "suites" / name, f"{first}..main")
            show(found)
            total.add(found)
    show(total)


if __name__ == "__main__":
    main()
