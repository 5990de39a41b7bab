"""The opening of an arena: from what was given, or what an interrupted one was begun with, to its plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_tfgrpo.arena.contestants.learned import Learned
from pytest_tfgrpo.arena.contestants.registry import CONTESTANTS
from pytest_tfgrpo.arena.plan import (
    ArenaPlan,
    arena_settings,
    choose_scenarios,
    require_rollouts,
    require_teacher,
)
from pytest_tfgrpo.arena.plan_file import read_plan
from pytest_tfgrpo.arena.protocol import Contestant
from pytest_tfgrpo.arena.result import has_ended
from pytest_tfgrpo.core.errors import ResumeError, SettingError
from pytest_tfgrpo.core.files import ARENA_PLAN, ARENA_SWEEP
from pytest_tfgrpo.core.keys.agent_list import NAME_LENGTH, is_agent_name
from pytest_tfgrpo.core.settings import Settings
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.learning.placebo import PLACEBO
from pytest_tfgrpo.protocols import Optimizer
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.collection import collect

HERE: Final = "."
"""The suite: that of the project."""

OpenHooked = Callable[[Sequence[str]], Mapping[str, Optimizer]]
"""Returns the optimizers by hook of these names."""


def begun_arena(home: Path, wanted: str, given: Mapping[str, Any]) -> tuple[Path, dict[str, Any]]:
    """Return the folder of the arena to go on with, and its arguments: by its id, or the latest open one.

    One in which our own code failed is open.
    What is `given` now must not differ, but for the budget in money. Raises ResumeError and SettingError.
    """
    known = sorted(path.parent for path in home.glob(f"*/{ARENA_PLAN}"))
    if wanted == "latest":
        found = [path for path in known if not has_ended(path)]
    else:
        found = [path for path in known if path.name == wanted]
    if not found:
        names = ", ".join(path.name for path in known[-5:]) or "none"
        what = "interrupted arena" if wanted == "latest" else f"arena {wanted!r}"
        raise ResumeError(f"no {what} in {home} (latest: {names}); leave --resume out to start a new one")
    before = read_plan(found[-1])["arguments"]
    for name, value in given.items():
        if value not in (None, HERE, before.get(name)) and name != "budget_usd":
            raise SettingError(f"--resume goes on as the arena began; leave --{name.replace('_', '-')} out")
    money = given["budget_usd"]
    return found[-1], {**given, **before, "budget_usd": before["budget_usd"] if money is None else money}


def open_plan(
    root: Path,
    settings: Settings,
    task_id: str,
    folder: Path,
    given: Mapping[str, Any],
    environ: Mapping[str, str],
    hooked: OpenHooked,
    *,
    dry: bool = False,
) -> ArenaPlan:
    """Return the plan of an arena whose files are in `folder`; raises TfgrpoError on any misuse."""
    for name, example in (("optimizers", "none,placebo,heuristic"), ("budget_rollouts", "200")):
        if not given[name]:
            flag = f"--{name.replace('_', '-')}"
            raise SettingError(f"{flag} is missing; for example {flag} {example}")
    settings = arena_settings(settings)
    names = [name.strip() for name in str(given["optimizers"]).split(",")]
    own = hooked([name for name in dict.fromkeys(names) if name not in (*CONTESTANTS, PLACEBO)])
    contestants = open_contestants(names, own)
    require_teacher(contestants, settings)
    calls = given["budget_teacher_calls"]
    suite = root if given["suite"] == HERE else Path(given["suite"]).resolve()
    plan = ArenaPlan(
        arena_id=folder.name,
        task_id=task_id,
        root=root,
        folder=folder,
        settings=settings,
        scenarios=choose_scenarios(collect(root, [suite], KINDS), settings, root),
        contestants=contestants,
        optimizers=own,
        budget_rollouts=given["budget_rollouts"],
        budget_teacher_calls=given["budget_rollouts"] if calls is None else calls,
        environ=environ,
        arguments=given,
        dry=dry,
    )
    require_rollouts(plan)
    return plan


def _require_folder(name: str) -> None:
    """Raise SettingError where the folder of a side cannot have its name."""
    if not is_agent_name(name):
        raise SettingError(
            f"--optimizers: {line(name, NAME_LENGTH)!r} cannot name a folder; use at most {NAME_LENGTH} "
            "letters, digits, '.', '_', '-'"
        )
    if name.casefold() == ARENA_SWEEP:
        raise SettingError(
            f"--optimizers: {name!r} is the folder of the final sweep; give the optimizer another name"
        )


def open_contestants(names: Sequence[str], hooked: Mapping[str, Optimizer]) -> dict[str, Contestant | None]:
    """Return the contestants by name; `hooked` are optimizers by hook.

    Raises SettingError for an unknown name, one given twice, and a placebo of nothing.
    """
    if twice := [name for name, count in Counter(map(str.casefold, names)).items() if count > 1]:
        raise SettingError(f"--optimizers names {line(twice[0], NAME_LENGTH)!r} twice; leave one out")
    found = dict[str, Contestant | None]()
    for name in names:
        if name == PLACEBO:
            found[name] = None
        elif name in CONTESTANTS:
            found[name] = CONTESTANTS[name]()
        elif name in hooked:
            found[name] = Learned(name)
        else:
            known = [*CONTESTANTS, PLACEBO]
            hint = nearest(name, known) or f"; there are {', '.join(known)}, and those of the hook"
            raise SettingError(f"--optimizers: unknown optimizer {line(name, NAME_LENGTH)!r}{hint}")
        _require_folder(name)
    if len(found) < 2:
        raise SettingError("--optimizers needs two names or more, for example none,heuristic")
    if PLACEBO in found and not any(isinstance(one, Learned) for one in found.values()):
        raise SettingError(
            "--optimizers: placebo puts the lessons of another side in the wrong places, and none of them "
            "learns lessons; add heuristic or llm"
        )
    return found
