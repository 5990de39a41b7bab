"""The conclusion of a run: gate, report, and the files for readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo import features
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import MANIFEST, REPORT_JSON
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.settings.learning import GROUP_SIZE
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.suite.families import sweeps_of

if TYPE_CHECKING:
    from pytest_tfgrpo.core.lessons import LeakedAnswer
    from pytest_tfgrpo.core.records import Run
    from pytest_tfgrpo.core.report_blocks import Report
    from pytest_tfgrpo.gate.baseline import Baseline
    from pytest_tfgrpo.gate.named_gates import OpenGate
    from pytest_tfgrpo.gate.verdict import GateRule, Verdict
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The result of a run."""

    run: Run
    """The run, with all its warnings."""
    verdict: Verdict | None
    """None without a gate: in plain mode without a rule."""
    report: Report
    """The report value, as in ``report.json``."""


def conclude(
    run: Run,
    *,
    gated: bool,
    kinds: Mapping[str, CheckKind],
    baseline: Baseline | None,
    rules: Sequence[GateRule] = (),
    gates: Sequence[OpenGate] = (),
    sections: Sequence[str] = (),
    files: str = "",
) -> Conclusion:
    """Return the report of a run, with a gate if it is `gated`; `files` is the place of its files."""
    if not gated:
        return Conclusion(run, None, build(run, None, sections=sections, files=files))
    sweeps = sweeps_of(run)
    verdict = _verdict(run, sweeps, kinds, baseline, rules, gates)
    return Conclusion(run, verdict, build(run, verdict, sections=sections, files=files, sweeps=sweeps))


def _verdict(
    run: Run,
    sweeps: Sweeps,
    kinds: Mapping[str, CheckKind],
    baseline: Baseline | None,
    rules: Sequence[GateRule],
    gates: Sequence[OpenGate],
) -> Verdict:
    from pytest_tfgrpo.gate.named_gates import judge_named
    from pytest_tfgrpo.gate.verdict import judge

    leaks: Sequence[LeakedAnswer] = ()
    if run.library.experiences:
        from pytest_tfgrpo.learning.library.screen import leaked_answers

        leaks = leaked_answers(run, kinds)
    verdict = judge(
        run, baseline=baseline, settings=run.settings, rules=rules, contamination=leaks, sweeps=sweeps
    )
    return replace(verdict, gates=tuple(judge_named(run, gate, run.settings) for gate in gates))


def write(folder: Path, conclusion: Conclusion, origins: Mapping[str, str]) -> None:
    """Write reports and, at last, the manifest into the folder of the run; raises JournalError."""
    from pytest_tfgrpo.report.page.html import write_page

    run = conclusion.run
    for keep in features.AFTER_RUN:
        keep(folder, run)
    write_json(folder / REPORT_JSON, conclusion.report)
    write_page(folder, conclusion.report, run)
    write_json(folder / MANIFEST, manifest(conclusion, origins))


def manifest(conclusion: Conclusion, origins: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest: what ran, with what, and the result of the gate."""
    run = conclusion.run
    return {
        "schema": "tfgrpo.manifest/1",
        "run_id": run.run_id,
        "task_id": run.task_id,
        "status": run.status,
        "reason": run.reason,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "settings": dict(run.settings),
        "origins": dict(origins),
        "stamps": dict(run.stamps),
        "versions": dict(run.versions),
        "seed": SEED.of(run.settings),
        "draws": {
            result.phase.label: {"n": len(result.phase.scenarios), "scenarios": list(result.phase.scenarios)}
            for result in run.phases
        },
        "warnings": list(run.warnings),
        "tfgrpo": {
            "group_size": GROUP_SIZE.of(run.settings),
            "epochs": conclusion.report["epochs"],
            "experiences": [to_wire(e) for e in run.library.experiences],
            "refused": [
                {"epoch": r.revision.epoch, "code": f.code, "reason": f.reason}
                for r in run.phases
                if r.revision is not None
                for f in r.revision.refused
            ],
        },
        "gate": conclusion.report["gate"],
    }
