"""Harvest real histories, and compare what is proven with git, venv and pytest on a shell.

    python benchmarks/real_fixes.py FOLDER [--set releases|debian] [--only NAME] [--jobs N]

It makes a git repository of each package in FOLDER from what package indexes hold, harvests it, and has a
plain shell script prove each candidate too. A validation is false if the shell proves nothing of that change.
For changes that are proven it also prints their time over that of their test runs. It ends with 1 if
a validation is false, or if the harvest proves less than 95 % of what the shell does. What was
downloaded and made stays in FOLDER; what is proven there is not proven again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from real_sets import SETS, Downloads, SourceSet, git, make_repository
from shell_oracle import ShellOracle

SHARE = 0.95


@dataclass(slots=True)
class Comparison:
    """What both proved of one package, or of all."""

    name: str
    changes: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    proven: int = 0
    shell: int = 0
    agreed: int = 0
    false: int = 0
    other_tests: int = 0
    """Tests that the harvest counts as fixed, and the shell does not, in changes that both prove."""
    proven_s: float = 0.0
    """Of the changes that are proven, with their environments where they were made."""
    runs_s: float = 0.0
    """Of the test runs of these changes."""
    harvest_s: float = 0.0
    shell_s: float = 0.0

    @property
    def share(self) -> float:
        """Return the part of what the shell proves that the harvest proves; 1 if the shell proves nothing."""
        return self.agreed / self.shell if self.shell else 1.0

    def add(self, other: Comparison) -> None:
        counts = ("changes", "proven", "shell", "agreed", "false", "other_tests")
        for name in (*counts, "proven_s", "runs_s", "harvest_s", "shell_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.statuses += other.statuses


def harvest(repository: Path, suite: Path, jobs: int, span: str = "first..main") -> float:
    """Harvest a range of a repository, showing its progress; return the seconds."""
    began = time.monotonic()
    program = Path(sys.executable).with_name("tfgrpo")
    words = [f"--repo={repository}", f"--from-git={span}", f"--into={suite}", f"--jobs={jobs}"]
    subprocess.run([program, "harvest", *words], check=True)
    return time.monotonic() - began


def rows(suite: Path) -> dict[str, dict[str, str]]:
    """Return the last row of each commit."""
    lines = (suite / "harvest.jsonl").read_text(encoding="utf-8").splitlines()
    found = (json.loads(line) for line in lines)
    return {row["commit"]: row for row in found if "commit" in row}


def fail_to_pass(suite: Path, scenario: str) -> set[str]:
    """Return the tests that a scenario's check wants passed."""
    document = yaml.safe_load((suite / f"{scenario}.scenario.yaml").read_text(encoding="utf-8"))
    checks = document.get("checks") or document.get("expect", {}).get("checks") or []
    return {test for check in checks for test in check.get("fail_to_pass", ())}


def compare(source: SourceSet, folder: Path, downloads: Downloads, jobs: int) -> Comparison:
    """Make, harvest and check the history of one package."""
    name = f"{source.name}-{(source.debian and 'debian') or 'releases'}"
    repository, suite = folder / "repositories" / name, folder / "suites" / name
    if not (repository / ".git").exists():
        for line in make_repository(source, downloads, repository):
            print(f"  left out: {line}")
    found = Comparison(name=name, changes=int(git(repository, "rev-list", "--count", "first..main")))
    found.harvest_s = harvest(repository, suite, jobs)
    oracle = ShellOracle(source, repository, folder / "oracle" / name)
    for commit, row in rows(suite).items():
        found.statuses[row["status"]] += 1
        if row["status"] != "skipped":
            _judge(found, commit, row, suite, oracle)
    return found


def _judge(found: Comparison, commit: str, row: dict[str, str], suite: Path, oracle: ShellOracle) -> None:
    """Count what both say of one candidate, and print where they differ."""
    began = time.monotonic()
    shell = oracle.fail_to_pass(commit)
    found.shell_s += time.monotonic() - began
    validated = row["status"] == "validated"
    found.proven += validated
    found.shell += bool(shell)
    found.agreed += validated and bool(shell)
    if validated:
        provenance = json.loads((suite / "provenance" / f"{row['id']}.json").read_text(encoding="utf-8"))
        found.proven_s += float(row["elapsed_s"])
        found.runs_s += sum(run["elapsed_s"] for run in provenance["validation"]["runs"])
        further = fail_to_pass(suite, row["id"]) - shell
        found.false += not shell
        found.other_tests += len(further) if shell else 0
        if further:
            print(f"  {row['id']}: only the harvest proves {sorted(further)[:3]}")
    elif shell:
        why = row.get("reason", "")
        print(f"  {row['id']}: only the shell proves {sorted(shell)[:3]}; {row['status']}: {why}")


def show(found: Comparison) -> None:
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(found.statuses.items()))
    print(
        f"{found.name:<22} {found.changes} changes ({statuses}): {found.proven} proven, "
        f"{found.shell} by the shell, {found.agreed} agreed ({found.share:.0%}), {found.false} false, "
        f"{found.other_tests} other tests; {found.harvest_s:.0f} s, the shell {found.shell_s:.0f} s; "
        f"what is proven takes {found.proven_s / max(found.runs_s, 1e-9):.2f} times its test runs",
        flush=True,
    )


def main() -> int:
    """Compare the chosen packages; return 1 if the harvest falls short."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", choices=sorted(SETS), action="append", dest="sets")
    parser.add_argument("--only", action="append", metavar="NAME", help="packages; repeatable")
    parser.add_argument("--downloads", type=Path, metavar="FOLDER", help="keep what was downloaded here")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    downloads = Downloads(arguments.downloads or folder / "downloads")
    total = Comparison(name="all")
    for kind in arguments.sets or SETS:
        for source in SETS[kind]:
            if arguments.only is None or source.name in arguments.only:
                found = compare(source, folder, downloads, arguments.jobs)
                show(found)
                total.add(found)
    show(total)
    return int(total.false > 0 or total.share < SHARE)


if __name__ == "__main__":
    sys.exit(main())
