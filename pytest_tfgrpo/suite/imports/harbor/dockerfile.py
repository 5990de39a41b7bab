"""What a Dockerfile puts into the folder where the agent works, as far as it can be said without building."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.sandbox.archives import ArchiveEntry
from pytest_tfgrpo.suite.imports.harbor.shell_words import only_installs, words
from pytest_tfgrpo.suite.imports.harbor.task_folder import TaskProblem

EMPTY_IMAGES = frozenset(
    {"alpine", "buildpack-deps", "busybox", "debian", "fedora", "node", "python", "ubuntu"}
)
"""Images that hold a system and nothing of a project."""
WITHOUT_FILES = frozenset({"ARG", "CMD", "ENV", "EXPOSE", "LABEL", "MAINTAINER", "STOPSIGNAL", "USER"})
"""Instructions that change no file; they have no counterpart here."""
FLAGS = ("--chown=", "--link")
ARCHIVES = re.compile(r".*\.(tar|tgz|tbz2?|txz|tar\.\w+)")


class DockerfileReader:
    """Follows the instructions of one Dockerfile."""

    def __init__(self, context: Mapping[str, ArchiveEntry]) -> None:
        """`context` are the files beside the Dockerfile, by name."""
        self.workdir = ""
        """Where the agent works; empty where nothing says it."""
        self.lost: list[str] = []
        """Instructions that have no counterpart here."""
        self._context = context
        self._placed: dict[str, ArchiveEntry] = {}
        self._images = 0

    def read(self, text: str) -> None:
        """Follow the instructions of a text; raises TaskProblem at the first that cannot be followed."""
        for number, instruction, rest in _instructions(text):
            try:
                self._follow(instruction, rest)
            except ValueError as error:
                raise TaskProblem(f"Dockerfile:{number}: {error}") from None

    def workspace(self, workdir: str) -> list[ArchiveEntry]:
        """Return the files of the folder `workdir`; raises TaskProblem where one was put elsewhere."""
        found = []
        for name, entry in self._placed.items():
            path = PurePosixPath(name)
            if not path.is_relative_to(workdir):
                raise TaskProblem(
                    f"its Dockerfile puts {short(name)} outside of {workdir}, where agents work"
                )
            found.append(replace(entry, name=str(path.relative_to(workdir))))
        return found

    def _follow(self, instruction: str, rest: str) -> None:
        if instruction == "FROM":
            self._from(rest)
        elif instruction == "WORKDIR":
            self.workdir = _joined(self.workdir, _plain(rest))
        elif instruction in ("COPY", "ADD"):
            self._copy(instruction, rest)
        elif instruction == "RUN" and rest.lstrip().startswith("<<"):
            raise ValueError("a RUN with a text of its own cannot be followed")
        elif instruction == "RUN" and not only_installs(rest):
            raise ValueError(f"what `RUN {short(rest, 60)[1:-1]}` does to files cannot be followed")
        elif instruction == "RUN":
            self.lost.append("packages that the `RUN` of a Dockerfile installs")
        elif instruction in WITHOUT_FILES:
            self.lost.append(f"`{instruction}` of a Dockerfile")
        else:
            raise ValueError(f"the instruction {short(instruction)} cannot be followed")

    def _from(self, rest: str) -> None:
        self._images += 1
        image = next((word for word in rest.split() if not word.startswith("--")), "")
        if self._images > 1:
            raise ValueError("it has several stages")
        name = image.partition("@")[0].partition(":")[0]
        if name.removeprefix("docker.io/library/") not in EMPTY_IMAGES:
            raise ValueError(f"which files the image {short(image)} holds cannot be known")
        self.lost.append("the image and interpreter of a Dockerfile")

    def _copy(self, instruction: str, rest: str) -> None:
        parts = load_json(rest) if rest.startswith("[") else words(rest)
        while parts and parts[0].startswith("--"):
            if not parts[0].startswith(FLAGS):
                raise ValueError(f"{instruction} with {short(parts[0])} cannot be followed")
            parts = parts[1:]
        if len(parts) < 2 or not all(isinstance(part, str) for part in parts):
            raise ValueError(f"{instruction} needs files and a place")
        *sources, place = map(_plain, parts)
        for source in sources:
            if instruction == "ADD" and ("://" in source or "@" in source or ARCHIVES.fullmatch(source)):
                raise ValueError(f"ADD of {short(source)}, which fetches or unpacks, cannot be followed")
            self._place(source, place, several=len(sources) > 1)

    def _place(self, source: str, place: str, *, several: bool) -> None:
        name = _inside(source)
        target = _joined(self.workdir, place)
        if (entry := self._context.get(name)) is not None:
            folder = several or place.endswith(("/", "/.")) or place == "." or target == self.workdir
            if folder or any(known.startswith(f"{target}/") for known in self._placed):
                target = f"{target}/{PurePosixPath(name).name}"
            self._placed[target] = entry
            return
        start = f"{name}/" if name else ""
        below = {known: entry for known, entry in self._context.items() if known.startswith(start)}
        if not below:
            raise ValueError(f"there is no file or folder {short(source)}")
        for known, entry in below.items():
            self._placed[f"{target}/{known.removeprefix(start)}"] = entry


def _instructions(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the instructions of a Dockerfile: line, name in capitals, and the rest."""
    if re.match(r"(#[^\n]*\n)*#\s*escape\s*=", text):
        raise TaskProblem("Dockerfile: another escape character cannot be followed")
    waiting, began = "", 0
    for number, row in enumerate([*text.splitlines(), ""], 1):
        line = row.strip()
        if line.startswith("#") or (waiting and not line and number <= len(text.splitlines())):
            continue
        began = began or number
        if line.endswith("\\"):
            waiting += line[:-1] + " "
            continue
        instruction, _, rest = (waiting + line).strip().partition(" ")
        if instruction:
            yield began, instruction.upper(), rest.strip()
        waiting, began = "", 0


def _plain(word: str) -> str:
    """Return a path that means itself; raises ValueError for variables and patterns."""
    if not word or re.search(r"[$*?\[\]<>\"'\\]", word) or not word.isprintable():
        raise ValueError(f"the path {short(word)} cannot be followed")
    return word


def _joined(workdir: str, place: str) -> str:
    """Return an absolute path without dots; raises ValueError where it starts nowhere or leads up."""
    if not place.startswith("/") and not workdir:
        raise ValueError(f"{short(place)} is relative, and no WORKDIR stands above it")
    path = PurePosixPath(workdir or "/") / place
    if ".." in path.parts:
        raise ValueError(f"the path {short(place)} leads up")
    return str(path)


def _inside(source: str) -> str:
    path = PurePosixPath(source.lstrip("/"))
    if ".." in path.parts:
        raise ValueError(f"the path {short(source)} leads up")
    return "" if str(path) == "." else str(path)
