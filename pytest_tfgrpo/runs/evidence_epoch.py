"""The evidence epoch: which groups of an evidence file a run learns from, as tasks of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import fsum
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.core.errors import EvidenceError, SettingError
from pytest_tfgrpo.core.evidence import EvidenceStep
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import CheckResult, Frame, Phase, Rollout
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario, stamped
from pytest_tfgrpo.core.settings.learning import EVIDENCE, SAMPLE_SIZE
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.texts.text import pathless
from pytest_tfgrpo.core.wire.wire import Json, from_wire
from pytest_tfgrpo.protocols import GivenAttempts
from pytest_tfgrpo.runs.journal.journal import scan
from pytest_tfgrpo.runs.journal.journal_contents import header_of
from pytest_tfgrpo.runs.seeds import draw
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.suite.contamination.inspection import named_in_findings
from pytest_tfgrpo.suite.evidence_file import EvidenceFile, GroupOnFile
from pytest_tfgrpo.suite.packs import ANY_DOMAIN

PREFIX = "evidence-"
"""Of the ids of scenarios that are groups of an evidence file."""


class GivenEpoch(NamedTuple):
    """An epoch whose attempts exist already."""

    scenarios: Sequence[Scenario]
    """Its tasks, which the suite lacks."""
    sizes: Mapping[str, int]
    """Attempts at each, by id."""
    attempts: GivenAttempts
    stamp: str
    found: Mapping[str, Json]
    """What the header of a new run holds of it."""


class FiledAttempts:
    """The attempts of an evidence file, by the scenarios that its groups are."""

    def __init__(self, file: EvidenceFile) -> None:
        self._file = file

    def filled(self, blank: Rollout) -> Rollout:
        """Return a rollout with the attempt that it stands for, which cost the run nothing.

        Raises EvidenceError.
        """
        attempt = self._file.attempts(blank.scenario_id.removeprefix(PREFIX))[blank.index]
        named = {"trajectory_id": attempt.trajectory_id, "lessons": list(attempt.lessons)}
        return replace(
            blank,
            answer=attempt.answer,
            frames=tuple(map(_frame, attempt.steps)),
            checks=(CheckResult(kind="total_reward", weight=1.0, credit=attempt.total_reward),),
            cost_usd=0.0,
            latency_ms=fsum(step.latency_ms for step in attempt.steps),
            extra={key: value for key, value in named.items() if value},
        )


class GoneAttempts:
    """Attempts that are in the journal alone."""

    def filled(self, blank: Rollout) -> Rollout:
        """Raise EvidenceError: nobody has to ask for one."""
        raise EvidenceError(
            f"evidence: {blank.rollout_id} is not in the journal, and the file is gone; restore it"
        )


def _frame(step: EvidenceStep) -> Frame:
    return Frame(
        kind=step.kind,
        name=step.name,
        input=step.input,
        output=step.output,
        error=step.error,
        cost_usd=0.0 if step.kind == "model" else None,
        latency_ms=step.latency_ms,
    )


def evidence_epoch(
    scenarios: Sequence[Scenario],
    *,
    root: Path,
    settings: Mapping[str, object],
    kinds: Mapping[str, CheckKind],
    packs: Mapping[str, PromptPack],
    library: Library,
    begun: Sequence[Path] = (),
) -> GivenEpoch:
    """Return the epoch that the file of the setting gives; raises SettingError and EvidenceError.

    Where the file is gone, it is that of the first run of `begun` which read it to the end.

    Groups whose rewards are equal, whose domain has no prompt pack, or whose task overlaps the dev or eval
    split are left out. Of the others at most `sample_size` are drawn by the seed.
    """
    name = str(EVIDENCE.of(settings))
    path = root / name
    if not path.is_file():
        ended = next(filter(None, (_ended(run, name) for run in begun)), None)
        if ended is not None:
            return ended
        raise SettingError(
            f"evidence: there is no file {str(path)!r}; restore it (a run that is resumed needs it until its "
            "first epoch has ended), or set tfgrpo_evidence = none for a run without it"
        )
    file = EvidenceFile(path)
    left_out = Counter[str]()
    known = _tasks(file, name, scenarios, packs, left_out)
    drawn = _drawn(known, scenarios, settings, left_out, kinds=kinds, packs=packs, library=library)
    if not drawn:
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items())) or "it has none"
        raise SettingError(f"evidence: no group of {str(path)!r} can be used: {why}")
    sizes = {s.id: file.groups[s.id.removeprefix(PREFIX)].attempts for s in drawn}
    found: Json = {
        "file": name,
        "stamp": file.stamp,
        "created_at": file.header.created_at,
        "groups": len(drawn),
        "attempts": sum(sizes.values()),
        "left_out": dict(sorted(left_out.items())),
    }
    return GivenEpoch(drawn, sizes, FiledAttempts(file), file.stamp, {"evidence": found})


def _ended(run: Path, name: str) -> GivenEpoch | None:
    """Return the epoch of a run whose attempts are all in its journal; raises JournalError."""
    path = run / JOURNAL
    events = (event for event, _ in scan(path))
    header = header_of(path, next(events, None))
    found = header.get("preflight", {}).get("evidence")
    modes = (
        (event.data["phase"]["mode"], event.data["status"]) for event in events if event.event == "phase"
    )
    if found is None or found["file"] != name or ("evidence", "complete") not in modes:
        return None
    phases = from_wire(tuple[Phase, ...], header["phases"])
    sizes = next(phase.sizes for phase in phases if phase.mode == "evidence")
    scenarios = from_wire(tuple[Scenario, ...], [one for one in header["scenarios"] if one["id"] in sizes])
    return GivenEpoch(scenarios, sizes, GoneAttempts(), header["stamps"]["evidence"], {"evidence": found})


def _tasks(
    file: EvidenceFile,
    name: str,
    scenarios: Sequence[Scenario],
    packs: Mapping[str, PromptPack],
    left_out: Counter[str],
) -> list[Scenario]:
    """Return the groups that a run can learn from, as scenarios; counts the others in `left_out`."""
    taken = {scenario.id for scenario in scenarios}
    domains = {scenario.domain for scenario in scenarios}
    only = next(iter(domains)) if len(domains) == 1 else None
    shown = pathless(name)
    found = []
    for group in file.groups.values():
        domain = group.domain if group.domain in domains | packs.keys() or ANY_DOMAIN in packs else only
        if domain is None:
            left_out["no_pack"] += 1
        elif not group.has_spread:
            left_out["no_spread"] += 1
        else:
            found.append(task_of(group, domain, f"{shown}:{group.line}"))
            if found[-1].id in taken:
                raise SettingError(
                    f"evidence: {file.path}:{group.line}: the suite has a scenario {found[-1].id!r} too; "
                    "rename one"
                )
    return found


def task_of(group: GroupOnFile, domain: str, source: str) -> Scenario:
    """Return a group as a task of its own; `source` is the place of its line."""
    return stamped(
        Scenario(id=f"{PREFIX}{group.key}", domain=domain, split="train", prompt=group.prompt, source=source)
    )


def _drawn(
    known: Iterable[Scenario],
    suite: Sequence[Scenario],
    settings: Mapping[str, object],
    left_out: Counter[str],
    *,
    kinds: Mapping[str, CheckKind],
    packs: Mapping[str, PromptPack],
    library: Library,
) -> list[Scenario]:
    """Return the tasks that the seed draws of those that overlap no dev or eval scenario."""
    rest = {scenario.id: scenario for scenario in known}
    while True:
        ids = draw(rest.values(), size=SAMPLE_SIZE.of(settings), seed=SEED.of(settings), epoch=1)
        drawn = [rest[id_] for id_ in ids]
        overlapping = named_in_findings(drawn, suite, kinds=kinds, packs=packs, library=library)
        if not overlapping:
            if more := len(rest) - len(drawn):
                left_out["sample_size"] = more
            return drawn
        wordings = {rest[id_].prompt for id_ in overlapping}
        for id_ in [id_ for id_, scenario in rest.items() if scenario.prompt in wordings]:
            del rest[id_]
            left_out["overlap"] += 1
