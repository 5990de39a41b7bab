"""Prepare a job: open everything and report every usage error before the first rollout."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo import features
from pytest_tfgrpo.actors.reference import NothingActor, ReferenceActor
from pytest_tfgrpo.core.errors import ActorError, SettingError
from pytest_tfgrpo.core.files import BATCHES, JOURNAL, LIBRARY, run_folder
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Reference
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.settings import Settings, runs, sets_gate, shaping
from pytest_tfgrpo.core.settings.agents import JUDGE, JUDGE_WEIGHT, RECORD, TEACHER
from pytest_tfgrpo.core.settings.gate import BASELINE
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.stamp import combined_stamp, stamp
from pytest_tfgrpo.core.wire.wire import Json, from_wire
from pytest_tfgrpo.engine.environments import find_environments
from pytest_tfgrpo.engine.executors.registry import require_executor, unplaced
from pytest_tfgrpo.engine.preparation.components import Components, open_components, reached_first
from pytest_tfgrpo.engine.preparation.reference import open_reference
from pytest_tfgrpo.engine.preparation.registry import require_recordable
from pytest_tfgrpo.engine.request import RunRequest
from pytest_tfgrpo.features import RunPlan
from pytest_tfgrpo.learning.library.learned_effects import with_effects_of
from pytest_tfgrpo.learning.library.library import empty, load_library
from pytest_tfgrpo.llm.limits.budget import Budget, require_affordable
from pytest_tfgrpo.metrics.looks import merged
from pytest_tfgrpo.privacy.redact import let_pass
from pytest_tfgrpo.protocols import Actor, Foresighted, Mocking, as_conversational, as_metered
from pytest_tfgrpo.runs.commit import commit_of
from pytest_tfgrpo.runs.earlier_runs import earlier_evaluations, eval_stamp
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.journal.journal_contents import (
    JournalContents,
    has_begun,
    list_runs,
    new_run_id,
    read_to_resume,
)
from pytest_tfgrpo.runs.resumable import find_resumable
from pytest_tfgrpo.runs.splits import shortage
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.sandbox.programs.sandbox_settings import require_apart, require_sandbox
from pytest_tfgrpo.sandbox.run_workspaces import temporary_folder
from pytest_tfgrpo.scoring.checks.hidden.check_sandbox import require_checks, warn_of_checks
from pytest_tfgrpo.scoring.rewarders.additional import require_rewarders
from pytest_tfgrpo.scoring.rewarders.judge import JudgeRewarder
from pytest_tfgrpo.suite.families import ungrouped
from pytest_tfgrpo.suite.packs import load_packs, pack_for

if TYPE_CHECKING:
    from pytest_tfgrpo.protocols import GivenAttempts, Rewarder
    from pytest_tfgrpo.recording.replay import Replay
    from pytest_tfgrpo.runs.evidence_epoch import GivenEpoch


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job, and where its files go."""

    job: Job
    folder: Path | None
    """Folder of the run; None writes nothing."""
    replay: Replay | None = None
    """The recording that answers, if one does."""


def prepare(request: RunRequest) -> Prepared:
    """Return the job; raises TfgrpoError on any misuse. No call is made, and nothing is written."""
    people = open_components(request, request.shared.budget or Budget(request.settings.values))
    if people.replay is not None:
        request = replace(request, scenarios=people.replay.as_recorded(request.scenarios))
    _require_fit(request, people)
    opened, notes = _joined(request, people, _opened(request, people))
    stamps = _stamps(request, people, opened)
    request, given = _with_given(request, people, opened, stamps)
    if given is not None:
        stamps |= _stamps(request, people, opened) | {"evidence": given.stamp}
    log = _log_to_continue(request, stamps)
    if log is not None:
        opened = replace(opened, library=from_wire(Library, log.header["library"]))
        _go_on(log, people.replay)
    run_id = log.header["run_id"] if log is not None else request.run_id or new_run_id()
    let_pass(str(request.root), str(request.out or ""), request.task_id, run_id)
    folder = run_folder(request.out, request.task_id, run_id) if request.out else None
    if folder is not None:
        people.keep_batches(folder / BATCHES)
    before = log.header.get("preflight") if log is not None else None
    before = before or _preflight(request, people, opened, stamps, run_id, given)
    job = _job(
        request,
        people,
        opened,
        log or JournalContents(),
        run_id=run_id,
        preflight={**before, "partial": request.partial} if request.partial else before,
        stamps=stamps,
        versions=_versions(_commit(request.root, folder, log, request.environ)),
        given=None if given is None else given.attempts,
    )
    notes = [*notes, *require_executor(job), *filter(None, [unplaced(job)])]
    if notes:
        job = replace(job, warnings=(*job.warnings, *notes))
    return Prepared(job, folder, people.replay)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Opened:
    """What rollouts are made of."""

    packs: Mapping[str, PromptPack]
    library: Library
    reference: Reference | None
    environments: Mapping[str, BuiltEnvironment]
    rewarders: tuple[Rewarder, ...]


def _opened(request: RunRequest, people: Components) -> _Opened:
    """Open environments, packs, library and the reference to compare with; raises TfgrpoError."""
    root, settings = request.root, request.settings
    rewarders = (*_judging(people, settings), *request.supplied.rewarders)
    require_rewarders(rewarders)
    environments = find_environments(root, request.scenarios)
    packs, library = _load_packs(root, settings), _load_library(root, settings)
    reference = _open_reference(root, settings, request.scenarios, packs, library)
    if settings.learning and request.out is not None:
        library = with_effects_of(library, request.out / request.task_id / LIBRARY)
    return _Opened(
        packs=packs, library=library, reference=reference, environments=environments, rewarders=rewarders
    )


def _joined(request: RunRequest, people: Components, opened: _Opened) -> tuple[_Opened, list[str]]:
    """Return what is opened with the lessons that features add, and what to say of them."""
    notes: list[str] = []
    for join in features.JOIN:
        library, said = join(_plan(request, people, opened, {}))
        opened, notes = replace(opened, library=library), [*notes, *said]
    return opened, notes


def _with_given(
    request: RunRequest, people: Components, opened: _Opened, stamps: Mapping[str, str]
) -> tuple[RunRequest, GivenEpoch | None]:
    """Return the request with the tasks of a phase that runs no agent, if it has one; raises TfgrpoError."""
    phase = next((phase for phase in request.phases if not phase.asks), None)
    if phase is None:
        return request, None
    given = features.GIVE[phase.mode](_plan(request, people, opened, stamps))
    sizes = given.sizes
    whole = replace(phase, scenarios=tuple(sizes), sizes=sizes, rollouts=max(sizes.values()))
    phases = [whole if one is phase else one for one in request.phases]
    return replace(request, scenarios=(*request.scenarios, *given.scenarios), phases=phases), given


def _preflight(
    request: RunRequest,
    people: Components,
    opened: _Opened,
    stamps: Mapping[str, str],
    run_id: str,
    given: GivenEpoch | None,
) -> dict[str, Json]:
    """Return what is known before a new run; raises TfgrpoError where a feature refuses it."""
    found = {} if given is None else dict(given.found)
    if request.settings.learning:
        run = _plan(request, people, opened, stamps)
        for add in features.BEFORE_RUN:
            found |= add(run)
    looks = merged(request.looks, opened.library.looks)
    found["evaluations"] = earlier_evaluations(request.out, request.task_id, run_id, stamps["eval"], looks)
    return found


def _plan(request: RunRequest, people: Components, opened: _Opened, stamps: Mapping[str, str]) -> RunPlan:
    scenarios = request.scenarios
    return RunPlan(
        scenarios=scenarios,
        packs=opened.packs,
        library=opened.library,
        kinds=request.supplied.kinds,
        settings=request.settings.values,
        root=request.root,
        out=request.out,
        task_id=request.task_id,
        stamps=stamps,
        identities=people.identities,
        begun=_begun(request),
    )


def _begun(request: RunRequest) -> list[Path]:
    """Return the folders of the runs that one may go on with, the newest first."""
    out, task_id, wanted = request.out, request.task_id, request.resume
    if out is None or not (wanted or request.run_id):
        return []
    named = [
        run for run in list_runs(out, task_id) if wanted == "latest" or run.name in (wanted, request.run_id)
    ]
    return named[::-1]


def _job(
    request: RunRequest,
    people: Components,
    opened: _Opened,
    log: JournalContents,
    *,
    run_id: str,
    preflight: Mapping[str, Json],
    stamps: Mapping[str, str],
    versions: Mapping[str, str],
    given: GivenAttempts | None,
) -> Job:
    scenarios, supplied = request.scenarios, request.supplied
    temporary = temporary_folder(request.root, request.out)
    return Job(
        run_id=run_id,
        task_id=request.task_id,
        started_at=log.header["started_at"] if log.header else utc_now(),
        settings=request.values,
        scenarios=tuple(scenarios),
        phases=tuple(request.phases),
        packs=opened.packs,
        actor=people.actor,
        optimizer=people.optimizer,
        kinds=supplied.kinds,
        rewarders=opened.rewarders,
        judge=people.judge,
        user=None if people.user is None else people.user.completer,
        budget=people.budget,
        models=people.models,
        reach=reached_first(people, scenarios, request.phases, log.complete_phases),
        tracing=supplied.tracing,
        supplied_actor=supplied.actor is not None,
        replayed=people.replay is not None,
        closing=people.closing,
        identities=people.identities,
        preflight=preflight,
        library=opened.library,
        reference=opened.reference,
        stamps=stamps,
        versions=versions,
        environments=opened.environments,
        root=request.root,
        temporary=temporary,
        partial_selection=bool(request.partial),
        warnings=tuple(_warnings(request, people, opened.library, temporary)),
        given=given,
        resumed=log,
    )


def _go_on(log: JournalContents, replay: Replay | None) -> None:
    """Get ready to go on with an interrupted run."""
    if replay is None:
        log.reopen()
    else:
        replay.resume(log.all_rollouts(), log.calls.values())


def _stamps(request: RunRequest, people: Components, opened: _Opened) -> dict[str, str]:
    """Return the stamps that two runs must share to be one run resumed."""
    scenarios = request.scenarios
    stamps = {
        "settings": _settings_stamp(request.settings.values),
        "packs": combined_stamp({pack_for(opened.packs, s.domain).stamp for s in scenarios}),
        "scenarios": stamp(sorted([s.id, s.split, s.stamp] for s in scenarios)),
        "eval": eval_stamp(scenarios),
        "actor": stamp(people.identities["actor"]),
        "library": opened.library.hash,
    }
    if people.judge is not None or people.user is not None or people.optimizer.identity:
        stamps["models"] = stamp({role: of for role, of in people.identities.items() if role != "actor"})
    if opened.reference is not None:
        stamps["reference"] = opened.reference.stamp
    return stamps


def _settings_stamp(values: Mapping[str, Json]) -> str:
    return stamp({name: values[name] for name in shaping("prompts", "answers")})


def _judging(people: Components, settings: Settings) -> tuple[Rewarder, ...]:
    if people.judge is None:
        return ()
    return (JudgeRewarder(JUDGE_WEIGHT.of(settings)),)


def _require_fit(request: RunRequest, people: Components) -> None:
    """Raise SettingError or RecordingError where it is known beforehand that the run cannot be made."""
    scenarios, values = request.scenarios, request.values
    require_sandbox(values)
    require_checks(values, scenarios)
    _require_able(people.actor, scenarios)
    if people.replay is None:
        _require_mocks(people.actor, scenarios)
    _require_conversational(people, scenarios)
    _require_judge(people, scenarios, JUDGE.of(values))
    require_affordable(people.models.values(), values)
    _require_free(people.actor, values)
    if people.replay is not None:
        people.replay.begin(scenarios, values, request.supplied.kinds)
    if file := RECORD.of(values):
        require_recordable(request.root / file, people.identities)


def _require_free(actor: Actor, values: Mapping[str, object]) -> None:
    """Raise SettingError where nothing may cost money, and the actor does, or nobody knows how much."""
    unpriced = actor.paid and as_metered(actor) is None and actor.bound(1).get("usd") != 0
    if unpriced and runs.BUDGET_USD.of(values) == 0:
        raise SettingError(
            f"budget_usd is 0, but actor {actor.name!r} costs money; raise it to what the run may spend"
        )


def _require_able(actor: Actor, scenarios: Sequence[Scenario]) -> None:
    """Raise SettingError if the actor knows beforehand that it cannot do one of the scenarios."""
    try:
        if isinstance(actor, Foresighted):
            actor.require([(s.task(), s.attachments) for s in scenarios])
        if isinstance(actor, ReferenceActor):
            actor.require_references(scenarios)
    except ActorError as error:
        raise SettingError(f"actor: {error}") from error


def _require_mocks(actor: Actor, scenarios: Sequence[Scenario]) -> None:
    """Raise SettingError if a scenario mocks tools that the actor has not, or would call all the same."""
    if isinstance(actor, ReferenceActor | NothingActor):
        return  # they call none
    for scenario in (scenario for scenario in scenarios if scenario.mocks):
        where = f"scenario {scenario.id!r} ({scenario.source})"
        if not isinstance(actor, Mocking) or (scenario.fixtures and scenario.fixtures[0]):
            raise SettingError(
                f"actor: {actor.name!r} calls its own tools, and {where} mocks some; use openai:<model>, or "
                "leave mocks out"
            )
        try:
            actor.require_mocks(scenario.task(), scenario.mocks)
        except ActorError as error:
            raise SettingError(f"actor: {where}: {error}") from error


def _require_conversational(people: Components, scenarios: Sequence[Scenario]) -> None:
    """Raise SettingError if a scenario is a conversation, and the actor cannot hold one."""
    if people.replay is not None or as_conversational(people.actor) is not None:
        return
    found = next((s for s in scenarios if s.turns and not (s.fixtures and s.fixtures[0])), None)
    if found is not None:
        raise SettingError(
            f"actor: {people.actor.name!r} answers one question, and scenario {found.id!r} ({found.source}) "
            "is a conversation; use an actor that holds one: offline, openai, python, or command with "
            "command_output=frames"
        )


def _require_judge(people: Components, scenarios: Sequence[Scenario], spec: str | None) -> None:
    """Raise SettingError if a scenario needs a judge and there is none."""
    wanting = next((s for s in scenarios if s.truth == "judge"), None)
    if wanting is not None and people.judge is None:
        what = f"scenario {wanting.id!r} ({wanting.source}) needs a judge"
        if spec is None:
            raise SettingError(
                f"{what}, but none is configured; set tfgrpo_judge, for example openai:<model>"
            )
        raise SettingError(
            f"{what}, and {spec!r} costs money; set tfgrpo_allow_paid = true to allow it without --tfgrpo"
        )


def _log_to_continue(request: RunRequest, stamps: Mapping[str, str]) -> JournalContents | None:
    """Return the log of the run to go on with: the requested one, or that of a dead xdist worker."""
    out, task_id, run_id, settings = request.out, request.task_id, request.run_id, request.settings
    if request.resume is not None:
        if out is None:
            raise SettingError("--tfgrpo-resume needs an output folder: add --tfgrpo, or set --tfgrpo-out")
        unset = _settings_stamp({**settings.values, "eval_rollouts": None})
        return find_resumable(
            out,
            task_id,
            request.resume,
            stamps,
            rollouts=settings.eval_rollouts,
            unset=unset,
            again=request.again,
        )
    if run_id and out and has_begun(run_folder(out, task_id, run_id) / JOURNAL):
        return read_to_resume(run_folder(out, task_id, run_id))
    return None


def _load_packs(root: Path, settings: Settings) -> dict[str, PromptPack]:
    folder = root / runs.PROMPT_PACKS.of(settings)
    if not folder.is_dir():
        if "prompt_packs" in settings.origins:
            source = settings.origins["prompt_packs"]
            raise SettingError(f"prompt_packs: there is no folder {str(folder)!r} ({source})")
        return {}
    return load_packs(folder)


def _load_library(root: Path, settings: Settings) -> Library:
    path = runs.LIBRARY.of(settings)
    if path == "none":
        return empty()
    file = root / path
    if not file.is_file():
        raise SettingError(
            f"library: there is no file {str(file)!r} ({settings.origins['library']}); learn one with "
            "--tfgrpo-library=none, then write it with `tfgrpo library promote RUN`"
        )
    return load_library(file)


def _open_reference(
    root: Path,
    settings: Settings,
    scenarios: Sequence[Scenario],
    packs: Mapping[str, PromptPack],
    library: Library,
) -> Reference | None:
    if BASELINE.of(settings) is None:
        return None

    return open_reference(root, settings, scenarios, packs=packs, library=library)


def _commit(
    root: Path, folder: Path | None, log: JournalContents | None, environ: Mapping[str, str]
) -> str | None:
    """Return the commit that a run began at; none is looked for where nothing is written."""
    if log is not None:
        then: str | None = log.header["versions"].get("commit")
        return then
    return None if folder is None else commit_of(root, environ)


def _versions(commit: str | None) -> dict[str, str]:
    names = ("pytest-tfgrpo", "pytest", "numpy")
    found = {"python": platform.python_version()} | {name: version(name) for name in names}
    return found if commit is None else found | {"commit": commit}


def _warnings(request: RunRequest, people: Components, library: Library, temporary: Path) -> Iterator[str]:
    """Yield what may not be meant so; raises SettingError where agents could reach what they must not."""
    yield from _lacks(request, library, people.actor)
    yield from _advice(request, people)
    yield from require_apart(request.values, request.root, request.scenarios, temporary)
    yield from warn_of_checks(request.values, request.scenarios)


def _lacks(request: RunRequest, library: Library, actor: Actor) -> list[str]:
    warnings = []
    others = sorted({e.actor for e in library.experiences} - {actor.name, ""})
    if others:
        warnings.append(f"the library contains lessons learned with another actor: {', '.join(others)}")
    modes = {phase.mode for phase in request.phases}
    trains = any(phase.trains for phase in request.phases)
    if request.settings.learning and not trains:
        warnings.append("no train scenario is selected: nothing can be learned")
    if trains and "eval" not in modes:
        warnings.append("no eval scenario is selected: the run cannot show whether learning helped")
    return warnings


def _advice(request: RunRequest, people: Components) -> Iterator[str]:
    """Yield a warning for each configured component that is not used, and what the suite lacks."""
    scenarios, settings = request.scenarios, request.settings
    if TEACHER.of(settings) and settings.learning and "model" not in people.optimizer.identity:
        yield f"the optimizer {people.optimizer.name} does not use the teacher; set tfgrpo_optimizer = llm"
    if people.judge is not None and not any(s.rubric for s in scenarios):
        yield "the judge is not used: no scenario has a rubric"
    played = sum(s.user is not None for s in scenarios)
    if people.user is None and played and people.replay is None:
        yield f"{plural(played, 'user')} of scenarios say their turns as written; set tfgrpo_user to a model"
    if people.user is not None and not played:
        yield "the model that plays users is not used: no scenario has a user"
    if any(phase.trains for phase in request.phases):
        yield from filter(None, [shortage(scenarios, settings.values)])
    if settings.learning or sets_gate(settings.values):
        yield from filter(None, [ungrouped(scenarios)])
