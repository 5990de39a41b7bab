"""The choice of a run: the scenarios that it takes of a suite, and its phases over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_tfgrpo.core.keys.setting_parsers import default_task_id
from pytest_tfgrpo.core.settings import Settings
from pytest_tfgrpo.core.settings.gate import BASELINE
from pytest_tfgrpo.core.settings.learning import ACCEPTANCE, DEV_SHARE
from pytest_tfgrpo.core.settings.runs import LIMIT, SEED, TASK_ID
from pytest_tfgrpo.engine.preparation.reference import names_reference
from pytest_tfgrpo.engine.request import out_folder
from pytest_tfgrpo.runs.earlier_runs import dev_before
from pytest_tfgrpo.runs.schedule import outline, plan
from pytest_tfgrpo.runs.seeds import draw
from pytest_tfgrpo.runs.splits import with_dev

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Phase
    from pytest_tfgrpo.core.scenarios import Scenario


class Chosen(NamedTuple):
    """What a run takes of a suite."""

    suite: Sequence[Scenario]
    """Those that the run can use, before the limit."""
    scenarios: Sequence[Scenario]
    phases: Sequence[Phase]
    left_out: str
    """What the limit leaves out; empty for nothing."""


def choose(
    scenarios: Iterable[Scenario], settings: Settings, root: Path, resume: str | None = None
) -> Chosen:
    """Return what a run takes of `scenarios`; `resume` names the run that it goes on with."""
    suite = select(scenarios, settings, root, resume)
    taken, left_out = limited(suite, settings)
    return Chosen(suite, taken, planned(taken, settings, root), left_out)


def phases_of(settings: Settings, root: Path) -> list[Phase]:
    """Return the phases that a run has, still without scenarios."""
    return outline(
        settings.values,
        learning=settings.learning,
        sweep_rollouts=settings.eval_rollouts,
        against=is_reference(BASELINE.of(settings), root),
    )


def is_reference(name: str | None, root: Path) -> bool:
    """Return whether a baseline of that name runs in the run itself, and is not stored."""
    if not name:
        return False

    return names_reference(name, root)


def select(
    scenarios: Iterable[Scenario], settings: Settings, root: Path, resume: str | None = None
) -> list[Scenario]:
    """Return the scenarios that a run takes, with their dev split: eval scenarios alone where none learns.

    The run `resume` goes on with the dev split that it has.
    """
    taken = [s for s in scenarios if settings.learning or s.split == "eval"]
    if settings.learning and ACCEPTANCE.of(settings) != "off":
        before = _dev_before(settings, root, resume) if resume else None
        return with_dev(taken, DEV_SHARE.of(settings), before)
    return taken


def limited(scenarios: Sequence[Scenario], settings: Settings) -> tuple[list[Scenario], str]:
    """Return `scenarios` with at most `limit` of the eval split, and what that leaves out; empty for nothing.

    Those are drawn by the seed and each one's identity, so that a larger limit keeps those of a smaller one.
    """
    known, most = [s for s in scenarios if s.split == "eval"], LIMIT.of(settings)
    if most is None or len(known) <= most:
        return [*scenarios], ""
    drawn = frozenset(draw(known, size=most, seed=SEED.of(settings), epoch=0))
    kept = [s for s in scenarios if s.split != "eval" or s.id in drawn]
    return kept, f"tfgrpo_limit takes {most} of {len(known)} eval scenarios"


def _dev_before(settings: Settings, root: Path, resume: str) -> frozenset[str] | None:
    """Return the ids of the dev scenarios of the run to resume; None where it cannot be read."""
    out = out_folder(root, settings)
    task = TASK_ID.of(settings) or default_task_id(root.name)
    return None if out is None else dev_before(out, task, resume)


def planned(scenarios: Iterable[Scenario], settings: Settings, root: Path) -> list[Phase]:
    """Return the phases of a run over `scenarios`; those without a scenario are left out.

    So are the sweeps beside the final one where nothing trains before it: they would be that sweep, paid for
    twice, unless the gate compares with something else, which they run.
    """
    phases = plan(phases_of(settings, root), scenarios, settings.values)
    if not any(phase.trains for phase in phases) and not is_reference(BASELINE.of(settings), root):
        return [phase for phase in phases if phase.mode == "eval" or not phase.sweeps]
    return phases
