"""What the safety suites say of a version: its agent tries them with its library, in the project's pytest."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.files import REPORT_HTML
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.runs.journal.journal_contents import list_runs
from pytest_tfgrpo.suite.safety.generation import SUITES, safety_scenarios

PACKAGED = "packaged"
"""Stands for all packaged suites."""
MOST_DEATHS = 3
"""Processes of a suite that a signal may end before it is left open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SafetyFinding:
    """What one suite came to."""

    suite: str
    scenarios: int
    failed: tuple[str, ...] = ()
    """Ids of scenarios that did not pass."""
    open: str = ""
    """Why it is not decided; empty where it is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SafetyPlaces:
    """Where suites are tried."""

    project: Path
    files: Path
    """Folder within the project for the packaged suites, so that its conftest holds for them."""
    out: Path
    """Gets the files of the runs."""
    library: Path
    """File of the version's library."""


def safe(findings: Sequence[SafetyFinding]) -> bool | None:
    """Return whether all suites passed; None where one is not decided and none failed, or there is none."""
    if any(one.failed for one in findings):
        return False
    return None if not findings or any(one.open for one in findings) else True


def try_suites(
    suites: Sequence[str],
    *,
    places: SafetyPlaces,
    domains: Sequence[str],
    seed: int,
    judge: bool,
    arguments: Sequence[str],
    call: Callable[[Sequence[str]], str | None],
) -> tuple[SafetyFinding, ...]:
    """Return what the suites came to; a run that is complete is not tried again, and one that is not goes on.

    `suites` are names of packaged ones, or folders of the project with scenario files. `call` runs a command
    in the project and returns the last lines of its output, None where a signal ended it. Without `judge` the
    scenarios that only a judge decides are tried for their answers, and stay open.
    """
    named = [name for one in suites for name in (SUITES if one == PACKAGED else (one,))]
    found = []
    for suite in dict.fromkeys(named):
        place, target = places.out / suite.replace("/", "-"), places.project / suite
        unjudged = frozenset[str]()
        if suite in SUITES:
            scenarios = safety_scenarios(suite, domains=domains, seed=seed)
            if not judge:
                unjudged = frozenset(str(one["id"]) for one in scenarios if one.get("truth") == "judge")
                scenarios = [_answered(one) if one["id"] in unjudged else one for one in scenarios]
            places.files.mkdir(parents=True, exist_ok=True)
            target = places.files / f"safety-{suite}.scenario.json"
            write_text(target, json.dumps(scenarios, indent=1) + "\n")
        said: str | None = None
        for _ in range(MOST_DEATHS):
            if _report(place) is not None or said is not None:
                break
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(target)]
            command += [f"--tfgrpo-library={places.library}", f"--tfgrpo-out={place}", *_resumed(place)]
            said = call([*command, *arguments])
        killed = "a signal ended it, again and again"
        found.append(_finding(suite, _report(place), killed if said is None else said, unjudged))
    return tuple(found)


def safety_pages(out: Path) -> dict[str, Path]:
    """Return the page of each suite that was tried, under the name that the findings say."""
    pages = {place.name: sorted(place.glob(f"*/runs/*/{REPORT_HTML}")) for place in out.glob("*")}
    return {_page(suite): found[-1] for suite, found in pages.items() if found}


def _resumed(place: Path) -> list[str]:
    """Return the flag that goes on with a run that was killed."""
    tasks = [path.name for path in place.glob("*") if path.is_dir()]
    runs = [run for task in tasks for run in list_runs(place, task)]
    return [f"--tfgrpo-resume={run.name}" for run in runs[-1:]]


def _answered(scenario: Mapping[str, Json]) -> dict[str, Json]:
    """Return a scenario that asks for an answer without deciding anything of it: a person will."""
    kept = {name: value for name, value in scenario.items() if name != "truth"}
    return {**kept, "checks": [{"kind": "regex", "pattern": r"\S"}]}


def safety_reasons(findings: Sequence[SafetyFinding]) -> tuple[str, ...]:
    """Return what failed and what is open, a text each."""
    failed = [
        f"safety suite {one.suite}: {len(one.failed)} of {one.scenarios} failed: {', '.join(one.failed[:3])}"
        for one in findings
        if one.failed
    ]
    return (*failed, *(f"safety suite {one.suite}: {one.open}" for one in findings if one.open))


def _report(out: Path) -> Mapping[str, Json] | None:
    """Return the report of the newest run below `out` if it is complete."""
    try:
        (file,) = sorted(out.glob("*/runs/*/report.json"))[-1:]
        report: Mapping[str, Json] = load_json(file.read_bytes())
    except (OSError, ValueError):
        return None
    return report if report["status"] == "complete" else None


def _finding(
    suite: str, report: Mapping[str, Json] | None, said: str, unjudged: Collection[str]
) -> SafetyFinding:
    if report is None:
        return SafetyFinding(suite=suite, scenarios=0, open=f"it did not run: {said}")
    scores = {str(one["id"]): _score(one) for one in report["scenarios"]}
    unknown = [id_ for id_, score in scores.items() if score is None]
    failed = [id_ for id_, score in scores.items() if id_ not in unjudged and score is not None and score < 1]
    open_ = [] if scores else ["it is empty"]
    if unknown:
        open_.append(f"{len(unknown)} of {len(scores)} gave no result: {unknown[0]}")
    if unjudged:
        open_.append(
            f"{len(unjudged)} of {len(scores)} need a judge, and the run had none; read {_page(suite)}, then "
            "tfgrpo loop versions verdict"
        )
    return SafetyFinding(suite=suite, scenarios=len(scores), failed=tuple(failed), open="; ".join(open_))


def _page(suite: str) -> str:
    return f"safety-{suite.replace('/', '-')}.html"


def _score(scenario: Mapping[str, Json]) -> float | None:
    found = [epoch["mean"] for epoch in scenario["epochs"] if epoch["mode"] == "eval"]
    return found[-1] if found and not scenario["epochs"][-1]["errors"] else None
