"""The command ``tfgrpo replicate``: the learning run with several seeds, and what they say of the method."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.cli.lookup import COMMITTED, find_library, read_report
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import JournalError, SettingError
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import REPLICATIONS
from pytest_tfgrpo.core.keys.agent_list import listed_agents
from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.settings.agents import ACTOR
from pytest_tfgrpo.core.settings.runs import BUDGET_S, BUDGET_TOKENS, BUDGET_USD, SEED
from pytest_tfgrpo.core.texts.text import block
from pytest_tfgrpo.launch.launch import stored_baseline
from pytest_tfgrpo.metrics.looks import merged
from pytest_tfgrpo.report.replication import replication, replication_lines, seed_result, what_differs
from pytest_tfgrpo.runs.earlier_runs import looks_on_disk
from pytest_tfgrpo.runs.journal.journal_contents import list_runs, load_run, new_run_id
from pytest_tfgrpo.runs.output_folder import make_output

if TYPE_CHECKING:
    from pytest_tfgrpo.cli.project import Project
    from pytest_tfgrpo.report.replication import SeedResult

LOG = "pytest.log"
RESULT = "replication.json"
_SECTION = re.compile(r"^=+ tfgrpo =+$(.*?)^=+ .*=+$", re.MULTILINE | re.DOTALL)
_LAST = 2000
"""Characters of pytest's output that an error shows."""


def replicate(arguments: Arguments) -> Iterator[str]:
    """Repeat the learning run with N seeds, to test the method."""
    project = project_of(arguments)
    _require_one_agent(project, arguments.pytest_args)
    folder = _folder(project, new=arguments.new)
    first = SEED.of(project.settings)
    outs = {seed: folder / f"seed-{seed}" for seed in range(first, first + arguments.seeds)}
    done = {seed: run for seed, out in outs.items() if (run := _complete(project, out)) is not None}
    missing = [seed for seed in outs if seed not in done]
    if missing:
        yield f"{len(done)} of {arguments.seeds} seeds are complete in {folder}"
        yield from _estimate(project, arguments.pytest_args, len(missing))
    if arguments.dry_run:
        return
    results = {seed: _result(run) for seed, run in done.items()}
    for seed in missing:
        yield f"seed {seed} runs; see {outs[seed] / LOG}"
        run = _carry_out(project, seed, outs, arguments.pytest_args)
        results[seed] = _result(run)
        _require_same(results, seed)
    yield from _conclude(project, folder, [results[seed] for seed in outs])


def _require_one_agent(project: Project, args: Sequence[str]) -> None:
    agents = listed_agents(ACTOR.of(project.settings))
    if agents and not any(word.startswith("--tfgrpo-actor=") for word in args):
        raise SettingError(
            f"one agent is repeated, and tfgrpo_actor lists {len(agents)}; name one, for example "
            f"tfgrpo replicate N -- --tfgrpo-actor={agents[0].spec}"
        )


def _folder(project: Project, *, new: bool) -> Path:
    """Return the folder of the replication to go on with, or of a new one."""
    home = project.out / project.task_id / REPLICATIONS
    known = sorted(path for path in home.glob("*") if path.is_dir())
    return known[-1] if known and not new else home / new_run_id()


def _runs(project: Project, out: Path) -> list[Path]:
    return list_runs(out, project.task_id)


def _report(run: Path) -> Mapping[str, Any]:
    return read_report(run) or {}


def _complete(project: Project, out: Path) -> Path | None:
    """Return the folder of the run of a seed, if it is complete."""
    runs = _runs(project, out)
    return runs[-1] if runs and _report(runs[-1]).get("status") == "complete" else None


def _estimate(project: Project, args: Sequence[str], runs: int) -> Iterator[str]:
    """Yield what a run takes, by a dry run; raises SettingError with pytest's words if none is possible."""
    command = _command(project, args, "--tfgrpo-dry-run")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    section = _SECTION.search(done.stdout)
    if done.returncode or section is None:
        raise SettingError(f"no learning run is possible: {_end(done.stdout + done.stderr)}")
    yield f"{'the run' if runs == 1 else f'each of {runs} runs'} takes:"
    yield from (f"  {line}" for line in section[1].strip().splitlines())
    limits = [f"{row.name} {most:g}" for row in _BUDGETS if (most := row.of(project.settings)) is not None]
    if limits:
        yield f"all seeds together stay within {', '.join(limits)}"


_BUDGETS: tuple[Setting[float | None], ...] = (BUDGET_USD, BUDGET_TOKENS, BUDGET_S)


def _carry_out(project: Project, seed: int, outs: Mapping[int, Path], args: Sequence[str]) -> Path:
    """Run one seed to its end, or go on with it; raises JournalError where it does not come to one."""
    make_output(project.out)
    out, runs = outs[seed], _runs(project, outs[seed])
    out.mkdir(parents=True, exist_ok=True)
    others = [path for path in outs.values() if path != out]
    flags = [f"--tfgrpo-seed={seed}", f"--tfgrpo-out={out}", *_left(project, others)]
    if runs and not _is_whole(runs[-1]):
        flags.append(f"--tfgrpo-resume={runs[-1].name}")
    with (out / LOG).open("ab") as log:
        code = _wait(subprocess.Popen(_command(project, args, *flags), stdout=log, stderr=subprocess.STDOUT))
    if code == 2 or code < 0:
        raise KeyboardInterrupt
    run = _complete(project, out)
    if run is None:
        runs = _runs(project, out)
        why = _report(runs[-1]).get("reason") if runs and code < 2 else ""  # else it is of an earlier try
        said = why or _end((out / LOG).read_text(errors="replace"))
        raise JournalError(f"the run of seed {seed} is not complete: {said}; fix that and repeat the command")
    return run


def _is_whole(run: Path) -> bool:
    return _report(run).get("status") == "complete"


def _command(project: Project, args: Sequence[str], *flags: str) -> list[str]:
    named = [f"--tfgrpo-task-id={project.task_id}"]
    return [sys.executable, "-m", "pytest", "--tfgrpo", "-p", "no:cacheprovider", *named, *flags, *args]


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Return the exit code of pytest, which ends the run and writes it down when one of us is interrupted."""

    def end(_signal: int, _frame: object) -> None:
        process.terminate()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        return process.wait()
    finally:
        process.wait()
        signal.signal(signal.SIGTERM, before)


def _left(project: Project, others: Sequence[Path]) -> list[str]:
    """Return the flags for what other seeds have left of the budgets, which hold for all of them together.

    Raises SettingError when nothing is left.
    """
    flags = []
    for row in _BUDGETS:
        name, limit = row.name, row.of(project.settings)
        if limit is None:
            continue
        left = limit - sum(_used(run, name) for out in others for run in _runs(project, out))
        if left <= 0:
            raise SettingError(
                f"{name} of {limit:g} is used up by the seeds so far; raise it and repeat the command"
            )
        shown = int(left) if name == "budget_tokens" else left
        flags.append(f"--tfgrpo-{name.replace('_', '-')}={shown}")
    return flags


def _used(run: Path, budget: str) -> float:
    report = _report(run)
    if budget == "budget_s":
        from datetime import datetime

        times = [report.get(key) for key in ("started_at", "finished_at")]
        started, finished = (datetime.fromisoformat(time) if time else None for time in times)
        return (finished - started).total_seconds() if started and finished else 0.0
    return float((report.get("cost") or {}).get(budget.removeprefix("budget_")) or 0.0)


def _result(run: Path) -> SeedResult:
    """Return what the run in a folder shows; raises SettingError where it measured no gain."""
    found = seed_result(load_run(run))
    if found is None or not found.known.ids:
        raise SettingError(
            f"run {run.name} has no gain to replicate: it needs train and eval scenarios and a baseline sweep"
        )
    return found


def _require_same(results: Mapping[int, SeedResult], seed: int) -> None:
    """Raise SettingError when the run of `seed` differs from the others in more than that."""
    for other, result in results.items():
        if changed := what_differs(result, results[seed]):
            raise SettingError(
                f"seeds {other} and {seed} do not replicate one method, as these differ: {changed}; restore "
                "them, or start over with --new"
            )


def _conclude(project: Project, folder: Path, results: Sequence[SeedResult]) -> Iterator[str]:
    looks = merged(looks_on_disk(project.out, project.task_id), *_committed(project))
    value = replication(results, looks)
    write_json(folder / RESULT, value)
    yield from replication_lines(value)
    yield f"files  {folder}"


def _committed(project: Project) -> Iterator[Mapping[str, tuple[str, ...]]]:
    """Yield the looks that the committed library and the baseline remember."""
    yield find_library(project, COMMITTED)[0].looks
    baseline = stored_baseline(project.settings, project.root)
    if baseline is not None:
        yield baseline.looks


def _end(text: str) -> str:
    """Return the end of pytest's output."""
    return block(text.strip()[-_LAST:])
