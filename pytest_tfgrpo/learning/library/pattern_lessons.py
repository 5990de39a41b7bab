"""Active patterns of a repository as lessons: what a run starts with beside its library (decision 45).

A pattern is a Markdown file whose front matter holds its lesson; only the folder ``active`` is read. Each
lesson is screened again at every start, as the files may have changed since a person promoted them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.lessons import Experience, Library, Operation, Polarity, Revision, Reward, Support
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.settings.learning import EXPERIENCE_MAX_WORDS, LIBRARY_CAP
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.stamp import identify
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.library.library import apply, of
from pytest_tfgrpo.learning.library.screen import Screen
from pytest_tfgrpo.suite.contamination.answers import expected_answers
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml
from pytest_tfgrpo.suite.packs import pack_for

if TYPE_CHECKING:
    from pytest_tfgrpo.scoring.checks.protocol import CheckKind

ACTIVE = "active"
"""The folder of the patterns in force; candidates and deprecated ones are not read."""
LARGEST = 100_000
"""Bytes of a pattern."""
FENCE = "---\n"
TASK = "patterns"
"""Task of the lessons that are of patterns."""
_TEXTS = ("id", "name", "domain", "lesson", "polarity")
_POLARITIES: Mapping[str, Polarity] = {"do": "do", "avoid": "avoid"}
_MILD = frozenset({"duplicate"})
"""Why a pattern adds nothing, and no harm is done."""


def front_matter(text: str) -> Mapping[str, Json]:
    """Return the front matter of a Markdown file; raises ValueError saying what is wrong.

    Line ends of Windows are read as usual ones.
    """
    text = text.replace("\r\n", "\n")
    if not text.startswith(FENCE) or (end := text.find("\n" + FENCE, len(FENCE) - 1)) < 0:
        raise ValueError("it has no front matter between two lines ---")
    try:
        value = parse_yaml(text[len(FENCE) : end + 1]).value
    except Refused as error:
        raise ValueError(f"line {error.problem.line + 1}: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("its front matter must hold keys and values")
    return value


def active_lessons(folder: Path, packs: Mapping[str, PromptPack]) -> list[Experience]:
    """Return the lessons of the active patterns below `folder`, each stamped with the pack of its domain.

    Raises StoreError naming the file and what is wrong with it.
    """
    return [_lesson(path, packs) for path in sorted((folder / ACTIVE).glob("*.md"))]


def pattern_lesson(front: Mapping[str, Json], packs: Mapping[str, PromptPack]) -> Experience:
    """Return the lesson of a pattern by its front matter; raises ValueError.

    A proven fix scores 1: so does the attempt that its lesson rests on.
    """
    texts: dict[str, str] = {}
    for key in _TEXTS:
        value = front.get(key)
        if not isinstance(value, str) or not value:
            raise ValueError(f"{key} must be a text, not {short(value)}")
        texts[key] = value
    domain, lesson, polarity = texts["domain"], texts["lesson"], _POLARITIES.get(texts["polarity"])
    if polarity is None:
        raise ValueError(f"polarity must be do or avoid, not {texts['polarity']!r}")
    pack = pack_for(packs, domain)
    return Experience(
        id=identify("pattern", texts["id"], domain, lesson, polarity),
        run_id=texts["id"],
        task_id=TASK,
        domain=domain,
        prompt_pack_id=pack.id,
        epoch=0,
        group_id=texts["name"],
        summary32=lesson,
        polarity=polarity,
        reward=Reward(gt_score=1.0, relative_rank=1.0),
        support=Support(groups=1, rollouts=1),
        tool_stats=(),
        stamp_signature=pack.stamp,
        actor="",
    )


def _lesson(path: Path, packs: Mapping[str, PromptPack]) -> Experience:
    try:
        front = front_matter(read_plain(path, LARGEST).decode())
        if path.name.startswith("."):
            raise ValueError("its name hides it from people; take it out")
        if front.get("name") != path.stem:
            raise ValueError(f"name must be {path.stem!r} as the file's, not {short(front.get('name'))}")
        return pattern_lesson(front, packs)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise StoreError(f"pattern {path}: {why}; `tfgrpo patterns lint` checks all of them") from None


def join_active(
    folder: Path,
    library: Library,
    scenarios: Iterable[Scenario],
    *,
    kinds: Mapping[str, CheckKind],
    packs: Mapping[str, PromptPack],
    settings: Mapping[str, object],
) -> tuple[Library, list[str]]:
    """Return `library` with the lessons of active patterns, and what to say of those that add nothing.

    One that the library holds already is kept, and one that it got of a pattern whose text is no longer
    active is left out. Raises StoreError for one that must not stand in a prompt.
    """
    active = active_lessons(folder, packs)
    library, gone = _without_gone(library, {lesson.id for lesson in active})
    known = {experience.id for experience in library.experiences}
    new = [lesson for lesson in active if lesson.id not in known]
    screen = Screen(
        (scenario for scenario in scenarios if scenario.split != "eval"),
        answers=lambda scenario: expected_answers(kinds, scenario),
        packs={lesson.domain: pack_for(packs, lesson.domain) for lesson in new},
        max_words=EXPERIENCE_MAX_WORDS.of(settings),
    )
    adding = [Operation(kind="add", experience=lesson, reason="an active pattern") for lesson in new]
    revision = apply(library, adding, screen=screen, cap=LIBRARY_CAP.of(settings), epoch=0)
    missing = [] if folder.is_dir() else [f"patterns: there is no folder {str(folder)!r}, so none is read"]
    return revision.library, [*missing, *gone, *_unused(revision), *_displaced(revision)]


def _without_gone(library: Library, active: Collection[str]) -> tuple[Library, list[str]]:
    """Return a library without lessons of patterns that are no longer in force, and what to say of them."""
    gone = [one for one in library.experiences if one.task_id == TASK and one.id not in active]
    if not gone:
        return library, []
    said = [
        f"a lesson of the library is left out: the pattern {one.group_id!r} that it is of is not active, "
        "or says something else now"
        for one in gone
    ]
    kept = of((one for one in library.experiences if one not in gone), (*library.lineage, library.hash))
    return replace(kept, looks=library.looks, effects=library.effects), said


def _unused(revision: Revision) -> Iterable[str]:
    for refusal in revision.refused:
        lesson = refusal.operation.experience
        name = lesson.group_id if lesson is not None else ""
        if refusal.code not in _MILD:
            raise StoreError(
                f"the active pattern {name!r} must not stand in a prompt: {refusal.reason}; "
                f"`tfgrpo patterns deprecate {name}` takes it out of force"
            )
        yield f"the active pattern {name!r} adds nothing: {refusal.reason}"


def _displaced(revision: Revision) -> Iterable[str]:
    for operation in revision.applied:
        if operation.kind == "remove":
            yield f"a lesson is left out: {operation.reason}"
