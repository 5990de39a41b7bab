"""A launch: a job with its gates, from what a caller selected to verdict, report and files.

The pytest plugin and the Python API call the same functions, each in its own order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from pytest_tfgrpo import features
from pytest_tfgrpo.core.errors import BaselineError, RecordingError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.settings import Settings, is_gated
from pytest_tfgrpo.core.settings.agents import RECORD
from pytest_tfgrpo.core.settings.gate import BASELINE, GATE_MIN_MEAN, GATES
from pytest_tfgrpo.core.settings.learning import TEMPERATURE_EVAL
from pytest_tfgrpo.gate.baseline import compared_stamps, load, locate, why_unfair
from pytest_tfgrpo.launch.choice import is_reference
from pytest_tfgrpo.metrics.looks import merged
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.runs.journal.journal_contents import read_log
from pytest_tfgrpo.runs.splits import split_lines

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Rollout, Run
    from pytest_tfgrpo.core.scenarios import Scenario
    from pytest_tfgrpo.engine.preparation.prepare import Prepared
    from pytest_tfgrpo.engine.request import RunRequest
    from pytest_tfgrpo.engine.supplied import Supplied
    from pytest_tfgrpo.gate.baseline import Baseline
    from pytest_tfgrpo.gate.config import NamedGate
    from pytest_tfgrpo.gate.named_gates import OpenGate
    from pytest_tfgrpo.launch.conclusion import Conclusion
    from pytest_tfgrpo.protocols import OpenWatch
    from pytest_tfgrpo.recording.replay import Replay
    from pytest_tfgrpo.runs.job import Job


def read_gates(
    settings: Settings, root: Path, scenarios: Iterable[Scenario], *, partial: bool
) -> list[NamedGate]:
    """Return the named gates that there is something to judge for; raises SettingError.

    What they select is looked for among `scenarios`, all that were collected, unless these are `partial`.
    """
    if (file := GATES.of(settings)) is None:
        return []
    from pytest_tfgrpo.gate.config import load_gates, require_selections
    from pytest_tfgrpo.gate.named_gates import has_rules

    gates = load_gates(root / file)
    for gate in gates:
        if not has_rules(gate, settings.values, learning=True):
            raise gate.error("has nothing to check; set a baseline, min_mean, max_errors or gain: true")
    if not partial:
        require_selections(gates, scenarios)
    return [gate for gate in gates if has_rules(gate, settings.values, learning=settings.learning)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """A job that is ready to start, and what judges it at its end."""

    root: Path
    settings: Settings
    supplied: Supplied
    prepared: Prepared
    baseline: Baseline | None
    gates: tuple[OpenGate, ...]

    @staticmethod
    def load_conclusion() -> None:
        """Load what `conclude` needs, ahead of the end of a run, when somebody waits for it."""
        from pytest_tfgrpo.launch import conclusion  # noqa: F401
        from pytest_tfgrpo.report import terminal  # noqa: F401

        features.load_ending()

    @property
    def watch(self) -> OpenWatch | None:
        """Opens the watch over a final sweep that may end early; None where none may."""
        job, foreign = self.prepared.job, bool(self.supplied.rules)
        watches = (watch(job, self.baseline, foreign) for watch in features.WATCH_SWEEP)
        return next(filter(None, watches), None)

    @property
    def looks(self) -> tuple[int, ...]:
        """Rollouts of each scenario at the looks that the gate may take at the final sweep, in order."""
        if not is_gated(self.settings):
            return ()
        from pytest_tfgrpo.gate.verdict import planned_looks

        return planned_looks(self.prepared.job, self.baseline, self.gates)

    def more_rollouts(self, run: Run) -> int:
        """Return how many rollouts of each scenario the final sweep of `run` is extended to; 0: no more."""
        if not is_gated(self.settings):
            return 0
        from pytest_tfgrpo.gate.verdict import more_rollouts

        return more_rollouts(run, self.baseline, self.gates)

    @property
    def missed(self) -> list[str]:
        """What a replay could not answer; a run with it fails, whatever its gate says."""
        return self.prepared.replay.warnings if self.prepared.replay is not None else []

    @property
    def excused(self) -> frozenset[str]:
        """Ids of the scenarios of a plain run that a gate judges by means, so that their items need not.

        A part of the suite, a baseline that cannot be compared with and a gate that only warns judge nothing.
        """
        job = self.prepared.job
        if self.settings.learning or job.partial_selection or not is_gated(self.settings):
            return frozenset()

        stamps, temperature = compared_stamps(job), TEMPERATURE_EVAL.of(self.settings)
        live = job.reference is not None

        def judges(minimum: float | None, baseline: Baseline | None) -> bool:
            fair = baseline and not why_unfair(baseline, temperature=temperature, stamps=stamps)
            return minimum is not None or bool(fair)

        by_default = live or judges(GATE_MIN_MEAN.of(self.settings), self.baseline)
        gates = [
            o.gate
            for o in self.gates
            if o.gate.severity == "fail"
            and o.gate.metric is None
            and (o.live or judges(o.gate.min_mean, o.baseline))
        ]
        return frozenset(
            s.id
            for s in job.scenarios
            if s.min_score is None and (by_default or any(gate.selects(s) for gate in gates))
        )

    def conclude(
        self, run: Run, *, warnings: Iterable[str] = (), sections: Sequence[str] = (), files: str = ""
    ) -> Conclusion:
        """Return verdict and report of `run`, with `warnings` and `sections` added; `files` is its folder."""
        from pytest_tfgrpo.launch.conclusion import conclude

        splits = split_lines(run.scenarios) if self.settings.learning else []
        tracing = self.supplied.tracing
        replay = self.prepared.replay
        notes = [*replay.notes, *self._other_recordings(replay)] if replay is not None else []
        lost = [text] if tracing is not None and (text := tracing.close()) else []
        return conclude(
            replace(run, warnings=(*run.warnings, *map(redact, (*warnings, *lost, *notes, *self.missed)))),
            gated=is_gated(self.settings),
            kinds=self.supplied.kinds,
            baseline=self.baseline,
            rules=self.supplied.rules,
            gates=self.gates,
            sections=[*splits, *map(redact, sections)],
            files=files,
        )

    def _other_recordings(self, replay: Replay) -> list[str]:
        """Return how the replayed file differs from those that the baselines were made from."""
        baselines = [self.baseline, *(one.baseline for one in self.gates)]
        path = replay.recording.path
        found = (one.other_recording(replay.name, path) for one in baselines if one is not None)
        return list(dict.fromkeys(filter(None, found)))

    def write(self, conclusion: Conclusion) -> None:
        """Write manifest and reports where the run has a folder; raises JournalError."""
        if self.prepared.folder is not None:
            from pytest_tfgrpo.launch.conclusion import write

            write(self.prepared.folder, conclusion, self.settings.origins)

    def record(self, run: Run, judged: Iterable[Rollout] = ()) -> list[str]:
        """Record `run` where the setting says so; returns what to say of it. Raises RecordingError.

        `judged` are rollouts of marked test functions, also those whose scenario was skipped.
        """
        file, folder = RECORD.of(self.settings), self.prepared.folder
        if not file:
            return []
        from pytest_tfgrpo.recording.writing import describe, record

        rest = [*judged]
        if folder is not None and run.status != "complete":
            rest += read_log(folder).rollouts.values()
        try:
            return describe(file, record(self.root / file, run, rest))
        except RecordingError as error:
            advice = f"; to record the finished run, use: tfgrpo record add {quote(str(file))}"
            later = advice if folder else ""
            raise RecordingError(f"{error}{later}") from error


def open_launch(request: RunRequest) -> Launch:
    """Return a launch, its baselines opened; raises TfgrpoError on any misuse, before a call is made."""
    from pytest_tfgrpo.engine.preparation.prepare import prepare

    root, settings, partial = request.root, request.settings, request.partial
    baseline = stored_baseline(settings, root)
    opened = tuple(_open_gate(gate, settings, root) for gate in request.gates)
    stored = [one for one in (baseline, *(gate.baseline for gate in opened)) if one is not None]
    if request.elsewhere is not None and not partial:
        missing = dict.fromkeys(id_ for one in stored for id_ in one.scenarios)
        for scenario in request.scenarios:
            missing.pop(scenario.id, None)
        partial = request.elsewhere(list(missing)) if missing else ""
    looks = merged(*(one.looks for one in stored))
    prepared = prepare(replace(request, partial=partial, looks=looks))
    return Launch(
        root=root,
        settings=settings,
        supplied=request.supplied,
        prepared=prepared,
        baseline=baseline,
        gates=_with_whole_names(opened, prepared.job),
    )


def _with_whole_names(opened: tuple[OpenGate, ...], job: Job) -> tuple[OpenGate, ...]:
    """Return named gates with the whole names of their metrics; raises where one is unknown or ambiguous."""
    if not any(one.gate.metric for one in opened):
        return opened
    from pytest_tfgrpo.gate.config import resolve_metrics

    names = [one.name for one in job.rewarders]
    known = resolve_metrics((one.gate for one in opened), names, job.scenarios, judged=job.judge is not None)
    return tuple(replace(one, gate=gate) for one, gate in zip(opened, known, strict=True))


def stored_baseline(settings: Settings, root: Path) -> Baseline | None:
    """Return the stored baseline that the setting names, None without one; raises BaselineError."""
    return _baseline(BASELINE.of(settings), root)


def _baseline(name: str | None, root: Path) -> Baseline | None:
    if not name or is_reference(name, root):
        return None

    return load(locate(name, root))


def _open_gate(gate: NamedGate, settings: Settings, root: Path) -> OpenGate:
    """Return a named gate with its baseline; raises SettingError naming the gate and the file."""
    from pytest_tfgrpo.gate.named_gates import OpenGate, baseline_name

    name = baseline_name(gate, settings.values)
    live = is_reference(name, root)
    if live and name != BASELINE.of(settings):
        raise gate.error(
            f"{name!r} is a library or holds prompt packs, which are asked once for all gates: name it in "
            "tfgrpo_baseline, and leave it out here",
            "baseline",
        )
    try:
        return OpenGate(gate, _baseline(name, root), live)
    except BaselineError as error:
        raise gate.error(str(error), "baseline") from error
