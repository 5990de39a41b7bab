"""The commands ``tfgrpo library ...``: show, compare, commit, edit and re-stamp libraries of lessons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.lookup import (
    COMMITTED,
    committed_file,
    find_library,
    find_run,
    read_report,
    require_promotable,
)
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.cli.suite.check import kinds_with, suite_of
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.lessons import Experience, Operation, Reward, Support, from_evidence
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.settings.learning import EXPERIENCE_MAX_WORDS, LIBRARY_CAP
from pytest_tfgrpo.core.settings.runs import PROMPT_PACKS
from pytest_tfgrpo.core.texts.text import few, line, plural
from pytest_tfgrpo.core.wire.stamp import identify
from pytest_tfgrpo.learning.attribution.untested import held_back
from pytest_tfgrpo.learning.library.flags import KINDS, flags_of
from pytest_tfgrpo.learning.library.library import apply, load_library, of, save_library, without
from pytest_tfgrpo.learning.library.library import diff as difference
from pytest_tfgrpo.learning.library.library import rebase as rebased
from pytest_tfgrpo.learning.library.screen import Screen, contaminated
from pytest_tfgrpo.metrics.looks import merged
from pytest_tfgrpo.report.gates import overall
from pytest_tfgrpo.runs.earlier_runs import looks_on_disk
from pytest_tfgrpo.runs.journal.journal_contents import load_run
from pytest_tfgrpo.suite.contamination.answers import expected_answers
from pytest_tfgrpo.suite.contamination.lesson_answers import labels
from pytest_tfgrpo.suite.packs import ANY_DOMAIN, builtin_pack, load_packs, pack_for
from pytest_tfgrpo.suite.scenario_paths import scenario_paths

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tfgrpo.cli.project import Project
    from pytest_tfgrpo.core.lessons import Library, Polarity
    from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind

BY_HAND = "written by hand"
"""Run and group of a lesson that nobody learned."""


def show(arguments: Arguments) -> Iterator[str]:
    """Print the lessons of a library."""
    library, _ = find_library(project_of(arguments), arguments.library)
    yield f"library {library.hash[:12]}, lessons: {len(library.experiences)}"
    yield from (f"  {_lesson(experience)}" for experience in library.experiences)
    yield from to_read(library.experiences)


def diff(arguments: Arguments) -> Iterator[str]:
    """Print how two libraries differ."""
    project = project_of(arguments)
    names = [arguments.a, arguments.b] if arguments.b else [COMMITTED, arguments.a]
    (a, older), (b, newer) = (find_library(project, name) for name in names)
    found = difference(a, b, [*older, *newer])
    yield f"--- {names[0]}  {a.hash[:12]}, lessons: {len(a.experiences)}"
    yield f"+++ {names[1]}  {b.hash[:12]}, lessons: {len(b.experiences)}"
    for old, new in found.changed:
        yield from (f"- {_lesson(experience)}" for experience in old)
        yield f"+ {_lesson(new)}"
    yield from (f"- {_lesson(experience)}" for experience in found.removed)
    yield from (f"+ {_lesson(experience)}" for experience in found.added)


def promote(arguments: Arguments) -> Iterator[str]:
    """Write the library of a run to the file that you commit."""
    project = project_of(arguments)
    folder = find_run(project, arguments.run.partition("@")[0])
    run = load_run(folder)
    file = require_promotable(project, run)
    before, _ = find_library(project, COMMITTED)
    library, history = find_library(project, arguments.run)
    held = held_back(run, library)
    library = without(library, {lesson.id for lesson in held}) if held else library
    changes = difference(before, library, history)
    require_read(before.experiences, library.experiences, arguments.accept_flagged)
    looks = merged(before.looks, library.looks, looks_on_disk(project.out, project.task_id))
    save_library(file, replace(library, looks=looks))
    summary = f"+{len(changes.added)} ~{len(changes.changed)} -{len(changes.removed)}"
    yield f"wrote {file}, lessons: {len(library.experiences)} ({summary}); review it and commit it"
    if held:
        yield f"held back {plural(len(held), 'lesson')} that no prompt of the dev or eval split carried:"
        yield from (f"  {_lesson(experience)}" for experience in held)
    gate = (read_report(folder) or {}).get("gate")
    if gate and overall(gate) == "fail":
        yield f"warning: the gate of run {folder.name} failed; see tfgrpo report {folder.name}"


def add(arguments: Arguments) -> Iterator[str]:
    """Add a lesson that you wrote to the committed library, screened like any other."""
    project = project_of(arguments)
    file = _file_to_edit(project)
    library, _ = find_library(project, COMMITTED)
    kinds = kinds_with(arguments.kind)
    scenarios = suite_of(project.root, list(scenario_paths(project.root)), kinds)
    domains = sorted({scenario.domain for scenario in scenarios})
    if arguments.domain not in domains:
        raise SettingError(
            f"--domain {arguments.domain!r}: no scenario below {project.root} has this domain, so no prompt "
            f"would carry the lesson; there are {few([repr(name) for name in domains], 10)}"
        )
    packs = load_packs(project.root / PROMPT_PACKS.of(project.settings))
    lesson = _by_hand(arguments, pack_for(packs, arguments.domain), project)
    revised = _with(library, lesson, scenarios, kinds, packs, project)
    save_library(file, replace(revised, looks=library.looks, effects=library.effects))
    yield f"  {_lesson(lesson)}"
    yield f"wrote {file}, lessons: {len(revised.experiences)}; review it and commit it"
    yield from to_read([lesson])
    yield f"take it out again: tfgrpo library remove {lesson.id}"


def _by_hand(arguments: Arguments, pack: PromptPack, project: Project) -> Experience:
    """Return the lesson of a command line: no attempt stands behind it, so it ranks as if all had passed."""
    polarity: Polarity = "avoid" if arguments.avoid else "do"
    return Experience(
        id=identify("hand", arguments.domain, arguments.text, polarity),
        run_id=BY_HAND,
        task_id=project.task_id,
        domain=arguments.domain,
        prompt_pack_id=pack.id,
        epoch=0,
        group_id=BY_HAND,
        summary32=arguments.text,
        polarity=polarity,
        reward=Reward(gt_score=1.0, relative_rank=1.0),
        support=Support(groups=0, rollouts=0),
        tool_stats=(),
        stamp_signature=pack.stamp,
        actor="",
        created_at=utc_now(),
    )


def _with(
    library: Library,
    lesson: Experience,
    scenarios: Sequence[Scenario],
    kinds: Mapping[str, CheckKind],
    packs: Mapping[str, PromptPack],
    project: Project,
) -> Library:
    """Return a library with one more lesson; raises SettingError saying why it may not stand in a prompt."""
    answers = partial(expected_answers, kinds)
    screen = Screen(
        (scenario for scenario in scenarios if scenario.split != "eval"),
        answers=answers,
        packs={lesson.domain: pack_for(packs, lesson.domain)},
        max_words=EXPERIENCE_MAX_WORDS.of(project.settings),
    )
    cap = LIBRARY_CAP.of(project.settings)
    operation = Operation(kind="add", experience=lesson, reason="written by a person")
    revision = apply(library, [operation], screen=screen, cap=cap, epoch=0)
    judged = [scenario for scenario in scenarios if scenario.split == "eval"]
    allowed = labels(scenarios, answers)
    for refusal in revision.refused:
        raise SettingError(f"the lesson is refused, and nothing is written: {refusal.reason}")
    for leak in contaminated(of([lesson]), judged, answers, allowed=allowed):
        raise SettingError(
            "the lesson is refused, and nothing is written: it contains an answer of the eval scenario "
            f"{leak.scenario_id!r}"
        )
    if len(revision.applied) > 1:
        raise SettingError(
            f"domain {lesson.domain!r} has {plural(cap, 'lesson')}, the most that library_cap allows, and "
            "nothing is written; take one out with tfgrpo library remove ID"
        )
    return revision.library


def remove(arguments: Arguments) -> Iterator[str]:
    """Take lessons out of the committed library."""
    project = project_of(arguments)
    file = _file_to_edit(project)
    library, _ = find_library(project, COMMITTED)
    gone = [lesson for lesson in library.experiences if lesson.id in arguments.ids]
    if unknown := sorted(set(arguments.ids) - {lesson.id for lesson in gone}):
        listed = few([f"{e.id} ({line(e.summary32, 60)})" for e in library.experiences], 20) or "none"
        raise SettingError(f"{file} has no lesson with the id {unknown[0]!r}; it has {listed}")
    left = without(library, arguments.ids)
    save_library(file, replace(left, looks=library.looks, effects=library.effects))
    yield from (f"- {_lesson(lesson)}" for lesson in gone)
    yield f"wrote {file}, lessons: {len(left.experiences)}; review it and commit it"


def _file_to_edit(project: Project) -> Path:
    file = committed_file(project)
    if file is None:
        raise SettingError(
            "library is 'none' (the default), so there is no file to write; set it in pytest's ini file, for "
            "example tfgrpo_library = library.json"
        )
    return file


def rebase(arguments: Arguments) -> Iterator[str]:
    """Stamp the committed library for the current prompt packs, after your review."""
    project = project_of(arguments)
    file = committed_file(project)
    if file is None:
        raise SettingError("library is 'none' (the default), so there is no file to rebase")
    packs = {ANY_DOMAIN: builtin_pack()} | load_packs(project.root / PROMPT_PACKS.of(project.settings))
    revision = rebased(load_library(file), packs, run_id="rebase", created_at=utc_now())
    if revision.applied:
        save_library(file, revision.library)
    lessons = plural(len(revision.library.experiences), "lesson")
    yield f"{file}: stamped {len(revision.applied)} of {lessons} again"


def to_read(lessons: Iterable[Experience]) -> Iterator[str]:
    """Yield the lessons that a person reads before they are promoted, and why."""
    found = [(lesson, flags) for lesson in lessons if (flags := flags_of(lesson.summary32))]
    if found:
        yield "read these before promote:"
    for lesson, flags in found:
        why = "; ".join(f"{flag}: {KINDS[flag]}" for flag in flags)
        yield f"  {lesson.id} {line(lesson.summary32)} ({why})"


def require_read(
    before: Iterable[Experience], lessons: Sequence[Experience], accepted: Sequence[str]
) -> None:
    """Raise SettingError unless each flagged lesson is accepted or was committed before."""
    known = {lesson.id for lesson in lessons}
    if unknown := [id_ for id_ in accepted if id_ not in known]:
        raise SettingError(f"--accept-flagged {unknown[0]}: the library has no lesson with this id")
    committed = {lesson.summary32 for lesson in before}
    wanted = [e for e in lessons if e.summary32 not in committed and e.id not in accepted]
    found = list(to_read(wanted))
    if found:
        listed = "\n".join(found[1:])
        raise SettingError(
            f"{plural(len(found) - 1, 'lesson', 'is', 'are')} flagged, and nothing is written; read these "
            f"before promote, and add --accept-flagged ID for each that is right:\n{listed}"
        )


def _lesson(experience: Experience) -> str:
    reward, count = experience.reward, plural(experience.support.rollouts, "rollout")
    evidence = f"{reward.value:.2f} over {count}{from_evidence(reward)}"
    if experience.run_id == BY_HAND:
        evidence = BY_HAND
    return f"{experience.polarity:5} {line(experience.domain)}: {line(experience.summary32)} ({evidence})"
