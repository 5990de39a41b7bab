"""References: an old library, or old prompt packs, that the gate compares with in one and the same run.

The baseline sweep uses it, pair by pair with the final sweep, so that what drifts meets both sides alike.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.keys.setting_parsers import is_task_id
from pytest_tfgrpo.core.lessons import Experience, Library
from pytest_tfgrpo.core.records import Reference
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.settings import Settings
from pytest_tfgrpo.core.settings.gate import BASELINE
from pytest_tfgrpo.core.settings.learning import BASELINE_SWEEP, PLACEBO_SWEEP
from pytest_tfgrpo.core.settings.runs import SEED
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.core.wire.stamp import combined_stamp
from pytest_tfgrpo.gate.baseline import locate
from pytest_tfgrpo.learning.library.library import empty, load_library, of
from pytest_tfgrpo.learning.placebo import PLACEBO, as_placebo
from pytest_tfgrpo.suite.packs import (
    MANIFEST,
    load_pack,
    load_packs,
    pack_folders,
    pack_for,
    packs_in_use,
)

NO_LESSONS = "no-lessons"
"""Stands for a library without lessons, unless a stored baseline is called so; `PLACEBO` for its own ones."""
_LIBRARY = "tfgrpo.library/"
_STORED = b'"schema": "tfgrpo.baseline/'
_HEAD = 200
"""Bytes at the start of a stored baseline that hold its schema."""


def names_reference(name: str | None, root: Path) -> bool:
    """Return whether what the setting `baseline` names is a library file or holds prompt packs.

    A file that cannot be read is taken for a stored baseline: who opens it says what is wrong.
    """
    if not name:
        return False
    if name in (NO_LESSONS, PLACEBO):
        return not locate(name, root).is_file()
    place = root / name
    if place.is_dir():
        stored = is_task_id(name) and locate(name, root).is_file()
        return not stored and any((folder / MANIFEST).is_file() for folder in (place, *pack_folders(place)))
    if not name.endswith(".json"):
        return False
    try:
        data = read_plain(place)
        value = None if _STORED in data[:_HEAD] else json.loads(data)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and str(value.get("schema", "")).startswith(_LIBRARY)


def open_reference(
    root: Path,
    settings: Settings,
    scenarios: Sequence[Scenario],
    *,
    packs: Mapping[str, PromptPack],
    library: Library,
) -> Reference | None:
    """Return what the setting `baseline` has the baseline sweep use; None where it names nothing like that.

    `packs` and `library` are those of the run. Raises SettingError where the two could not be compared, and
    StoreError or PackError where it cannot be read.
    """
    name = BASELINE.of(settings)
    if name is None or not names_reference(name, root):
        return None
    _require_sweep(settings)
    domains = sorted({s.domain for s in scenarios if s.split == "eval"})
    if name == PLACEBO:
        return _placebo(settings, packs_in_use(packs, domains), library)
    if (root / name).is_dir():
        reference = _old_packs(root / name, settings, domains, packs, library)
    else:
        reference = _old_library(root / name, settings, domains, packs)
    if settings.learning and (reference.kind == "packs" or reference.library.hash != library.hash):
        raise _error(
            settings,
            "is not what a learning run starts from, and its control asks that; compare the two in a run "
            "without --tfgrpo, and learn with --tfgrpo-baseline=none",
        )
    return reference


def _placebo(settings: Settings, packs: tuple[PromptPack, ...], library: Library) -> Reference:
    """Return the run's own lessons in the wrong places."""
    if settings.learning:
        raise _error(settings, "is for a run without --tfgrpo; set placebo_sweep = true where you learn")
    if PLACEBO_SWEEP.of(settings):
        raise _error(settings, "runs the placebo already; set placebo_sweep to false")
    if not library.experiences:
        raise _error(settings, "needs lessons, and the run has none; name their file by the setting library")
    placebo = as_placebo(library, SEED.of(settings))
    return Reference(name=PLACEBO, kind=PLACEBO, stamp=placebo.hash, library=placebo, packs=packs)


def _require_sweep(settings: Settings) -> None:
    choice = BASELINE_SWEEP.of(settings)
    if choice == "off":
        raise _error(settings, "is asked in the baseline sweep, and baseline_sweep is 'off'")
    if choice == "both" and settings.eval_rollouts < 4:
        raise _error(
            settings,
            f"is asked a quarter of the {settings.eval_rollouts} rollouts early, as baseline_sweep = 'both'; "
            "set eval_rollouts to at least 4, or baseline_sweep to concurrent",
        )


def _old_library(
    file: Path, settings: Settings, domains: Sequence[str], packs: Mapping[str, PromptPack]
) -> Reference:
    library = empty() if BASELINE.of(settings) == NO_LESSONS else load_library(file)
    used = packs_in_use(packs, domains)
    if used and not any(pack.experience_slots for pack in used):
        named = ", ".join(repr(pack.id) for pack in used)
        raise _error(
            settings, f"is a library, and no prompt can carry a lesson: {named} has experience_slots 0"
        )
    foreign = Counter(
        e.domain
        for e in library.experiences
        if e.domain in domains and e.stamp_signature != pack_for(packs, e.domain).stamp
    )
    if foreign:
        domain, pack = next(iter(foreign)), pack_for(packs, next(iter(foreign)))
        raise _error(
            settings,
            f"is a library of another prompt pack: {plural(foreign[domain], 'lesson')} of the domain "
            f"{line(domain, 40)!r} would be left out, as the stamp is not that of {pack.id!r}; name the "
            "packs that it was learned with instead, or rebase it with `tfgrpo library rebase`",
        )
    return Reference(
        name=str(BASELINE.of(settings)), kind="library", stamp=library.hash, library=library, packs=used
    )


def _old_packs(
    folder: Path,
    settings: Settings,
    domains: Sequence[str],
    packs: Mapping[str, PromptPack],
    library: Library,
) -> Reference:
    """Return the run as it was with old packs: one folder of a pack replaces that pack alone."""
    one = load_pack(folder) if (folder / MANIFEST).is_file() else None
    old = load_packs(folder) if one is None else {**packs, one.domain: one}
    used = {domain: pack_for(old, domain) for domain in domains}
    if one is not None and domains and one not in used.values():
        raise _error(
            settings,
            f"is a prompt pack of the domain {line(one.domain, 40)!r}, and no eval scenario would use it",
        )
    kept = [_carried(e, used[e.domain], packs) for e in library.experiences if e.domain in used]
    return Reference(
        name=str(BASELINE.of(settings)),
        kind="packs",
        stamp=combined_stamp(pack.stamp for pack in used.values()),
        library=of(kept, library.lineage),
        packs=packs_in_use(old, domains),
    )


def _carried(lesson: Experience, old: PromptPack, packs: Mapping[str, PromptPack]) -> Experience:
    """Return a lesson as it was with an old pack, if the present one carries it: it was rebased since."""
    if lesson.stamp_signature != pack_for(packs, lesson.domain).stamp:
        return lesson
    return replace(lesson, prompt_pack_id=old.id, stamp_signature=old.stamp)


def _error(settings: Settings, why: str) -> SettingError:
    return SettingError(f"baseline = {BASELINE.of(settings)!r} ({settings.origins['baseline']}) {why}")
