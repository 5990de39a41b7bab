"""Find the run to go on with, and refuse one that it cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ResumeError
from pytest_tfgrpo.core.files import JOURNAL, MANIFEST, RUNS
from pytest_tfgrpo.core.settings.learning import EVAL_ROLLOUTS
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.runs.journal.journal import is_open
from pytest_tfgrpo.runs.journal.journal_contents import JournalContents, list_runs, read_to_resume


def find_resumable(
    out: Path,
    task_id: str,
    wanted: str,
    stamps: Mapping[str, str],
    *,
    rollouts: int,
    unset: str,
    again: bool = False,
) -> JournalContents:
    """Return the log of the run to resume: `wanted`, or with ``latest`` the newest that is not concluded.

    A complete run is concluded once its reports are written. Raises ResumeError when there is none, when
    another process writes it, or when its stamps differ from `stamps`, naming what differs.

    Its sweeps must have `rollouts` of each scenario. Whether ``eval_rollouts`` says so need not matter then:
    `unset` is the stamp of the settings without it. With `again` the run `wanted` may be concluded.
    """
    if wanted != "latest":
        known = {folder.name: folder for folder in list_runs(out, task_id)}
        if wanted not in known:
            latest = ", ".join(sorted(known)[-5:]) or "none"
            raise ResumeError(f"no run {wanted!r} under {out / task_id / RUNS} (latest: {latest})")
        log = read_to_resume(known[wanted])
        _require_same(known[wanted], log, stamps, rollouts, unset, again=again)
        return log
    for folder in reversed(list_runs(out, task_id)):
        log = read_to_resume(folder)
        if not is_concluded(folder, log):
            _require_same(folder, log, stamps, rollouts, unset)
            return log
    raise ResumeError(
        f"no incomplete run under {out / task_id / RUNS}; leave --tfgrpo-resume out to start a new one "
        "(`tfgrpo report` shows the latest)"
    )


def is_concluded(folder: Path, log: JournalContents) -> bool:
    """Return whether a run is complete, and its manifest, which is written last, belongs to that end."""
    if not log.complete or log.finish is None:
        return False
    try:
        manifest = load_json((folder / MANIFEST).read_bytes())
        return bool(manifest["finished_at"] == log.finish["finished_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _require_same(
    folder: Path,
    log: JournalContents,
    stamps: Mapping[str, str],
    rollouts: int,
    unset: str,
    *,
    again: bool = False,
) -> None:
    if log.header["run_id"] != folder.name:
        raise ResumeError(
            f"{folder / JOURNAL} is the journal of run {log.header['run_id']!r}; rename its folder to that"
        )
    if is_open(folder / JOURNAL):
        raise ResumeError(
            f"run {folder.name} cannot be resumed: another process is running it; wait until it ends"
        )
    if not again and is_concluded(folder, log):
        raise ResumeError(f"run {folder.name} is complete; leave --tfgrpo-resume out to start a new one")
    then = EVAL_ROLLOUTS.of(log.header["settings"])
    if isinstance(then, int) and then != rollouts:
        raise ResumeError(
            f"run {folder.name} cannot be resumed: its sweeps have {plural(then, 'rollout')} of each "
            f"scenario, not {rollouts}; set eval_rollouts = {then}, or leave --tfgrpo-resume out"
        )
    before = log.header["stamps"]
    keys = (before.keys() | stamps.keys()) - {"eval"}  # a part of `scenarios`
    keys -= {"settings"} if before.get("settings") == unset else set()
    differing = sorted(key for key in keys if before.get(key) != stamps.get(key))
    if differing:
        raise ResumeError(
            f"run {folder.name} cannot be resumed: {', '.join(differing)} changed since; "
            "restore them or leave --tfgrpo-resume out"
        )
