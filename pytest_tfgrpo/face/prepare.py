"""Prepare a job: open everything and find every misuse before the first rollout is paid for."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.clock import utc_now
from pytest_tfgrpo.core.errors import SettingError, TfgrpoError
from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.records import Library, Phase, PromptPack, Run, Scenario
from pytest_tfgrpo.core.settings import Settings, default_task_id
from pytest_tfgrpo.core.stamp import combined_stamp, stamp
from pytest_tfgrpo.core.wire import from_wire
from pytest_tfgrpo.harness.actors import open_actor
from pytest_tfgrpo.harness.actors.protocol import Actor
from pytest_tfgrpo.harness.checks import KINDS, CheckKind
from pytest_tfgrpo.harness.gate import GateRule
from pytest_tfgrpo.harness.job import Job, Recorded
from pytest_tfgrpo.harness.library import empty, load_library
from pytest_tfgrpo.harness.loading import load_packs, pack_for
from pytest_tfgrpo.harness.optimizer import open_optimizer
from pytest_tfgrpo.harness.optimizer.protocol import Optimizer
from pytest_tfgrpo.harness.rewarders.protocol import Rewarder
from pytest_tfgrpo.harness.runs import find_resumable, new_run_id, read_log, recorded, run_folder

RESULT_SETTINGS = (
    "optimizer", "group_size", "eval_rollouts", "epochs", "sample_size", "temperature_train",
    "temperature_eval", "experience_max_words", "library_cap", "eval_mode", "baseline_sweep", "timeout_s",
    "answer_max_bytes", "sandbox", "seed",
)  # fmt: skip
"""Settings that a run's results depend on: two runs that differ in one are different runs."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job, and where its files go."""

    job: Job
    folder: Path | None
    """Folder of the run; None writes nothing."""


def out_folder(config: pytest.Config, settings: Settings) -> Path | None:
    """Return the output folder, or None where nothing is to be written (plain mode, `out` unset)."""
    out = settings["out"] or ("out" if settings.learning else None)
    return config.rootpath / out if out else None


def _supply(config: pytest.Config, name: str, **given: object) -> Any:
    """Call a hook that supplies something; raises pytest.UsageError naming the hook when it breaks."""
    try:
        return getattr(config.hook, name)(config=config, **given)
    except pytest.UsageError:
        raise
    except Exception as error:
        raise pytest.UsageError(f"hook {name} broke: {type(error).__name__}: {error}") from error


def check_kinds(config: pytest.Config) -> dict[str, CheckKind]:
    """Return all check kinds, built-in and supplied; raises pytest.UsageError when a name is taken."""
    kinds = dict(KINDS)
    for extra in _supply(config, "pytest_tfgrpo_checks"):
        for name, kind in (extra or {}).items():
            if name in kinds:
                raise pytest.UsageError(f"hook pytest_tfgrpo_checks: the check kind {name!r} is taken")
            kinds[name] = kind
    return kinds


def gate_rules(config: pytest.Config) -> list[GateRule]:
    """Return the gate rules that plugins supply."""
    return [rule for extra in _supply(config, "pytest_tfgrpo_gate_rules") for rule in extra or ()]


def report_sections(config: pytest.Config, run: Run) -> tuple[list[str], list[str]]:
    """Return the lines that plugins add to the report, and complaints about those that broke."""
    try:
        supplied = config.hook.pytest_tfgrpo_report_section(config=config, run=run)
        return [str(line) for lines in supplied for line in lines or ()], []
    except Exception as error:  # noqa: BLE001 - an observer cannot break the pipe
        return [], [f"hook pytest_tfgrpo_report_section broke: {type(error).__name__}: {error}"]


def revise_scenarios(config: pytest.Config, scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return the scenarios as plugins would have them, each plugin given the answer of the one before."""
    name, known = "pytest_tfgrpo_scenarios", list(scenarios)
    for implementation in config.hook.pytest_tfgrpo_scenarios.get_hookimpls():
        given = {"config": config, "scenarios": tuple(known)}
        try:
            answer: Any = implementation.function(*(given[key] for key in implementation.argnames))
        except Exception as error:
            raise pytest.UsageError(f"hook {name} broke: {type(error).__name__}: {error}") from error
        if answer is not None:
            known = list(answer)
    if len({s.id for s in known}) != len(known):
        raise pytest.UsageError("hook pytest_tfgrpo_scenarios: scenario ids must be unique")
    return known


def prepare(
    config: pytest.Config,
    settings: Settings,
    *,
    scenarios: Sequence[Scenario],
    phases: Sequence[Phase],
    kinds: Mapping[str, CheckKind],
    run_id: str | None,
    partial_selection: bool,
) -> Prepared:
    """Return the job; raises pytest.UsageError on any misuse. `run_id` is given by an xdist controller."""
    try:
        return _prepare(config, settings, scenarios, phases, kinds, run_id, partial_selection)
    except TfgrpoError as error:
        raise pytest.UsageError(str(error)) from error


def _prepare(
    config: pytest.Config,
    settings: Settings,
    scenarios: Sequence[Scenario],
    phases: Sequence[Phase],
    kinds: Mapping[str, CheckKind],
    run_id: str | None,
    partial_selection: bool,
) -> Prepared:
    actor = _open_actor(config, settings)
    packs = _load_packs(config, settings)
    library = _load_library(config, settings)
    task_id, out = settings["task_id"] or default_task_id(config.rootpath.name), out_folder(config, settings)
    stamps = {
        "settings": stamp({name: settings[name] for name in RESULT_SETTINGS}),
        "packs": combined_stamp({pack_for(packs, s.domain).stamp for s in scenarios}),
        "scenarios": stamp(sorted([s.id, s.split, s.stamp] for s in scenarios)),
        "actor": stamp({"name": actor.name, "identity": dict(actor.identity)}),
        "library": library.hash,
    }
    on_file, started_at = Recorded(), utc_now()
    wanted = config.getoption("tfgrpo_resume")
    if wanted is not None:
        if out is None:
            raise SettingError("--tfgrpo-resume needs an output folder: add --tfgrpo, or set --tfgrpo-out")
        folder, log = find_resumable(out, task_id, wanted, stamps)
        run_id, on_file, started_at = folder.name, recorded(log), log.header["started_at"]
        library = from_wire(Library, log.header["library"])
    elif run_id and out and (run_folder(out, task_id, run_id) / JOURNAL).is_file():
        log = read_log(run_folder(out, task_id, run_id))  # an xdist worker died; this one takes over
        on_file, started_at = recorded(log), log.header["started_at"]
    run_id = run_id or new_run_id()
    folder_ = run_folder(out, task_id, run_id) if out else None
    job = Job(
        run_id=run_id,
        task_id=task_id,
        started_at=started_at,
        settings=dict(settings.values) | {"eval_rollouts": settings.eval_rollouts},
        scenarios=tuple(scenarios),
        phases=tuple(phases),
        packs=packs,
        actor=actor,
        optimizer=_open_optimizer(config, settings),
        kinds=kinds,
        rewarders=_rewarders(config),
        library=library,
        stamps=stamps,
        versions=_versions(),
        work=folder_ / "work" if folder_ else Path(tempfile.mkdtemp(prefix="tfgrpo-")),
        partial_selection=partial_selection,
        warnings=tuple(_warnings(library, actor, phases)),
        recorded=on_file,
    )
    return Prepared(job, folder_)


def _open_actor(config: pytest.Config, settings: Settings) -> Actor:
    spec = settings["actor"]
    if spec is None:
        raise SettingError(
            "no actor is set: who shall solve the scenarios? Set tfgrpo_actor in the ini file or pass "
            "--tfgrpo-actor, for instance --tfgrpo-actor offline or --tfgrpo-actor 'command:./agent'"
        )
    actor: Actor | None = _supply(config, "pytest_tfgrpo_actor", spec=spec)
    if actor is None:
        actor = open_actor(spec, root=config.rootpath, settings=settings.values)
    if actor.paid and not settings.learning and not settings["plain"]:
        raise SettingError(
            f"actor {spec!r} costs money; set tfgrpo_plain = true to let it run without --tfgrpo"
        )
    return actor


def _open_optimizer(config: pytest.Config, settings: Settings) -> Optimizer:
    spec = settings["optimizer"]
    supplied: Optimizer | None = _supply(config, "pytest_tfgrpo_optimizer", spec=spec)
    return supplied or open_optimizer(spec)


def _load_packs(config: pytest.Config, settings: Settings) -> dict[str, PromptPack]:
    folder = config.rootpath / settings["prompt_packs"]
    if not folder.is_dir():
        if "prompt_packs" in settings.origins:
            source = settings.origins["prompt_packs"]
            raise SettingError(f"prompt_packs: there is no folder {str(folder)!r} ({source})")
        return {}
    return load_packs(folder)


def _load_library(config: pytest.Config, settings: Settings) -> Library:
    path = settings["library"]
    if path == "none":
        return empty()
    file = config.rootpath / path
    if not file.is_file():
        raise SettingError(
            f"library: there is no file {str(file)!r} ({settings.origins['library']}); learn one with "
            "--tfgrpo-library none, then write it with `tfgrpo library promote RUN`"
        )
    return load_library(file)


def _rewarders(config: pytest.Config) -> tuple[Rewarder, ...]:
    supplied = _supply(config, "pytest_tfgrpo_rewarders")
    return tuple(rewarder for extra in supplied for rewarder in extra or ())


def _versions() -> dict[str, str]:
    names = ("pytest-tfgrpo", "pytest", "numpy")
    return {"python": platform.python_version()} | {name: version(name) for name in names}


def _warnings(library: Library, actor: Actor, phases: Sequence[Phase]) -> list[str]:
    warnings = []
    others = sorted({e.actor for e in library.experiences} - {actor.name})
    if others:
        warnings.append(f"the library holds lessons learned with another actor: {', '.join(others)}")
    modes = {phase.mode for phase in phases}
    if "train" not in modes and "baseline" in modes:
        warnings.append("no train scenario is selected: nothing can be learned")
    if "train" in modes and "eval" not in modes:
        warnings.append("no eval scenario is selected: nothing shows whether learning helped")
    return warnings
