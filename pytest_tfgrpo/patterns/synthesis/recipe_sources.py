"""Where the recipe of captured work comes from: what ran while it was done, its prompt, earlier jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import from_wire
from pytest_tfgrpo.harvest.fixes import FixCandidate, RecipePart
from pytest_tfgrpo.harvest.job.plan import FindRecipes
from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles
from pytest_tfgrpo.harvest.recipe.recipe import PYTHON_MANIFESTS, RecipeKnowledge, recipe_of
from pytest_tfgrpo.harvest.recipe.recipe_file import FolderRecipe
from pytest_tfgrpo.patterns.jobs.manifest import JobManifest, LearningStatus, RanCommand
from pytest_tfgrpo.patterns.synthesis.ran_tests import TestCommand, read_command, written_commands
from pytest_tfgrpo.patterns.synthesis.surfaces import RunnableSurface, nearest_surface
from pytest_tfgrpo.scoring.checks.hidden.protected import is_test

HISTORY, MANIFEST = "history.jsonl", "manifest.json"
LARGEST = 20_000_000
"""Bytes of a history that is read."""
EARLIER = 50
"""Earlier jobs whose commands are looked at, the newest."""
SHOWN = 160
"""Characters of a command in the name of a source."""
MANIFESTS = (*PYTHON_MANIFESTS, "package.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundCommand:
    """A command that runs tests, and where it was found."""

    command: TestCommand
    source: str


def found_commands(job: JobManifest, folder: Path, prompt: str) -> tuple[FoundCommand, ...]:
    """Return the commands that may say how the tests of a job run, the best first.

    First those of its history that succeeded and name a changed file, then its others, then those written in
    its prompt, then the last good ones of earlier jobs of the same package. Raises OSError.
    """
    changed = {*job.captured.files}
    ran = list(_succeeded(folder, "history"))
    naming = [one for one in ran if changed.intersection(one.command.names)]
    written = (
        FoundCommand(command=command, source=f"prompt: {line(text, SHOWN)}")
        for text in written_commands(prompt)
        if (command := read_command(text)) is not None
    )
    return (*naming, *(one for one in ran if one not in naming), *written, *_earlier(job, folder))


def _succeeded(folder: Path, called: str) -> Iterator[FoundCommand]:
    """Yield the commands of a history that ran tests and succeeded, the last first."""
    ran = [*enumerate(read_history(folder), 1)]
    for number, one in reversed(ran):
        command = read_command(one.command, one.cwd) if one.exit_code == 0 else None
        if command is not None:
            source = f"{called} {number}: {line(one.command, SHOWN)}"
            yield FoundCommand(command=command, source=source)


def _earlier(job: JobManifest, folder: Path) -> Iterator[FoundCommand]:
    """Yield the last good commands of jobs beside this one that were proven, of the same package.

    `folder` is that of the job, or one of an attempt in it.
    """
    found: list[tuple[str, str, Path]] = []
    own = next((one for one in (folder, *folder.parents) if one.name == job.job_id), folder)
    for path in own.parent.glob(f"*/{MANIFEST}"):
        other = None if path.parent == own else _read_manifest(path)
        if other is not None and other.status is LearningStatus.VALIDATED and _near(job, other):
            found.append((other.captured.created_at, other.job_id, path.parent))
    for _, id_, place in sorted(found, reverse=True)[:EARLIER]:
        yield from _succeeded(place, f"history of job {id_[:12]},")


def _near(job: JobManifest, other: JobManifest) -> bool:
    """Return whether two jobs changed files of one folder."""
    one, two = ({PurePosixPath(name).parent for name in each.captured.files} for each in (job, other))
    return other.captured.repository == job.captured.repository and not one.isdisjoint(two)


def _read_manifest(path: Path) -> JobManifest | None:
    try:
        return from_wire(JobManifest, load_json(read_plain(path, LARGEST)))
    except (OSError, ValueError, RecursionError):
        return None


def read_history(folder: Path) -> Iterator[RanCommand]:
    """Yield the commands of a job's history; a line that is none is passed over. Raises OSError."""
    path = folder / HISTORY
    data = read_plain(path, LARGEST) if path.is_file() else b""
    for row in data.splitlines():
        try:
            yield from_wire(RanCommand, json.loads(row))
        except (ValueError, RecursionError):
            continue


class CapturedRecipes:
    """Finds how the tests of captured work run: by the first command that says it, then as harvest does."""

    def __init__(
        self,
        found: Sequence[FoundCommand],
        knowledge: RecipeKnowledge,
        own: FindRecipes,
        tests: str,
        signed: Sequence[FolderRecipe] = (),
    ) -> None:
        """`own` is the harvest's own way, `tests` says where the files with tests are from.

        `signed` is what a person wrote for this job: nothing else is tried then.
        """
        self._found, self._own, self._tests, self._signed = found, own, tests, signed
        self._knowledge = replace(knowledge, reviewed=(*signed, *knowledge.reviewed))
        self.surface: RunnableSurface | None = None
        """Of a change for which there is no test: what a person could run."""

    def __call__(
        self, read: Callable[[str], bytes | None], names: tuple[str, ...], candidate: FixCandidate, /
    ) -> tuple[RecipePart, ...]:
        """Return the parts to try."""
        if not candidate.tests and not candidate.protected:
            files = ProjectFiles(read=read, names=frozenset(names))
            self.surface = nearest_surface(files, candidate.sources)
        if self._signed:
            return recipe_of(read, names, candidate, self._knowledge)
        parts = next(filter(None, (self._of(one, read, names, candidate) for one in self._found)), ())
        known = {(part.folder, part.command) for part in parts}
        own = self._own(read, names, candidate)
        further = (part for part in own if not parts or (part.folder, part.command) not in known)
        return tuple(
            replace(part, sources={**part.sources, "tests": self._tests})
            if "tests" not in part.sources
            else part
            for part in (*parts, *further)
        )

    def _of(
        self,
        one: FoundCommand,
        read: Callable[[str], bytes | None],
        names: tuple[str, ...],
        candidate: FixCandidate,
    ) -> tuple[RecipePart, ...]:
        """Return the parts that a command means; a reviewed recipe of its folder counts more than it."""
        command = one.command
        tests = candidate.tests or candidate.protected
        if command.runner and tests and not any(_is_python(t) == (command.runner == "pytest") for t in tests):
            return ()
        folder = _project_folder(command.folder, names)
        told = FolderRecipe(
            folder=folder,
            runner=command.runner or None,
            run=command.flags or None,
            env=command.variables or None,
        )
        reviewed = self._knowledge.reviewed
        if all(recipe.folder != folder for recipe in reviewed):
            reviewed = (*reviewed, told)
        parts = recipe_of(read, names, candidate, replace(self._knowledge, reviewed=reviewed))
        if told not in reviewed:
            return parts
        said = [name for name in ("runner", "run", "env") if getattr(told, name) is not None]
        mine = dict.fromkeys(("folder", *said), one.source)
        return tuple(replace(p, sources={**p.sources, **mine}) if p.folder == folder else p for p in parts)


def _is_python(name: str) -> bool:
    return not re.fullmatch(r".*\.[cm]?[jt]sx?", name)


def _project_folder(folder: str, names: Sequence[str]) -> str:
    """Return the nearest folder with a manifest, from that in which a command ran upwards."""
    there = {*names}
    place = PurePosixPath(folder)
    found = (
        str(one) for one in (place, *place.parents) if any(str(one / name) in there for name in MANIFESTS)
    )
    return next(found, ".")


def named_tests(found: Sequence[FoundCommand], tree: frozenset[str]) -> tuple[str, ...]:
    """Return the files with tests that the first command names."""
    names = found[0].command.names if found else ()
    return tuple(dict.fromkeys(name for name in names if name in tree and is_test(name)))
