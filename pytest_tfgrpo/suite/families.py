"""Families: the scenarios that gain or lose together, which intervals and splits count as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Scenario, given_families, task_key
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.metrics.values import GT
from pytest_tfgrpo.numerics.planning import MIN_INTERVAL
from pytest_tfgrpo.suite.contamination.overlap import alike

MIN_KIND, MIN_UNGROUPED = 3, 20
"""Scenarios of one text from which they are a kind, and those of all kinds from which these are many."""
MIN_WORDS = 3
"""Words that two tasks must share besides their data."""
_DATA = re.compile(
    r"\"[^\"]*\"|“[^”]*”|`[^`]*`|(?<!\w)'[^']*'(?!\w)"  # what is quoted
    r"|\S*[0-9]\S*"  # numbers, dates, codes
    r"|(?<=[\w,;:] )[A-Z]\w*(?: [A-Z]\w*)*"  # names within a sentence
)
_PLAIN_WORD = re.compile(r"[^\W\d_]{2,}")


def family_of(scenario: Scenario) -> str:
    """Return the family of a scenario, which is one of its domain; empty where none is given."""
    return f"{scenario.domain} {scenario.family}" if scenario.family else ""


def families_of(scenarios: Iterable[Scenario]) -> dict[str, str]:
    """Return the family of each scenario that shares one, by id.

    Where none is given, tasks that are alike are one: the same, or about the same data in other words. One
    with a family lends it to those like it that have none.
    """
    known = list(scenarios)
    found = given_families(known)
    if len(found) == len(known):
        return found
    task_of, alike = tasks_of(known), dict[tuple[str, str], list[Scenario]]()
    for scenario in known:
        alike.setdefault((scenario.domain, task_of[scenario.id]), []).append(scenario)
    for same in alike.values():
        if len(same) > 1:
            own = f"{same[0].domain} task of {min(s.id for s in same)}"
            lent = min((found[s.id] for s in same if s.family), default=own)
            found |= {s.id: lent for s in same if not s.family}
    return found


def sweeps_of(run: Run, metric: str = GT) -> Sweeps:
    """Return the sweeps that `run` is judged by, with the families of its eval scenarios."""
    swept = [s for s in run.scenarios if s.split == "eval"]
    families = given_families(swept) if len(swept) < MIN_INTERVAL else families_of(swept)
    return Sweeps(run, families, metric)


def ungrouped(scenarios: Iterable[Scenario]) -> str:
    """Return advice where many eval scenarios without a family differ in data only; empty where few do."""
    swept = [s for s in scenarios if s.split == "eval"]
    kinds: dict[tuple[str, str], list[Scenario]] = {}
    for scenario in swept:
        if not scenario.family and (text := _without_data(scenario)):
            kinds.setdefault((scenario.domain, text), []).append(scenario)
    many = [same for same in kinds.values() if len(same) >= MIN_KIND]
    total = sum(map(len, many))
    if total < max(MIN_UNGROUPED, len(swept) / 4):
        return ""
    named = ", ".join(f"{line(same[0].id, 60)} and {len(same) - 1} like it" for same in many[:3])
    more = f" and {len(many) - 3} more kinds" if len(many) > 3 else ""
    split = " and a split, as a hash puts a family on one side" if any(s.hashed for s in swept) else ""
    return (
        f"{total} of {len(swept)} eval scenarios differ from others in data only ({named}{more}): they gain "
        f"or lose together, but count as {total} independent ones; set one family for each kind{split}"
    )


def _without_data(scenario: Scenario) -> str:
    """Return the words of a prompt without its numbers, names and quotations; empty where few are left."""
    left = _DATA.sub(" # ", scenario.wording.replace("\n", " "))
    return left.casefold() if len(_PLAIN_WORD.findall(left)) >= MIN_WORDS else ""


def tasks_of(scenarios: Sequence[Scenario]) -> dict[str, str]:
    """Return the key of each scenario's task by id; of tasks that are alike, that of the first."""
    own = {s.id: task_key(s) for s in scenarios}
    first: dict[str, str] = {}

    def root(task: str) -> str:
        while (up := first.setdefault(task, task)) != task:
            first[task] = task = first[up]
        return task

    place = {task: n for n, task in enumerate(dict.fromkeys(own.values()))}
    for a, b in alike(scenarios):
        one, two = sorted((root(own[a.id]), root(own[b.id])), key=place.__getitem__)
        first[two] = one
    return {id_: root(task) for id_, task in own.items()}
