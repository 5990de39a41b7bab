"""Objects of a git repository, read by plumbing alone; nothing is checked out, run, fetched or written."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.harvest.history.git_answers import GitAnswers
from pytest_tfgrpo.harvest.history.git_contents import ContentQueue
from pytest_tfgrpo.harvest.history.git_shadow import locate, make_shadow
from pytest_tfgrpo.harvest.locked_folder import GIT, locked_folder

RESOLVE_S = 60
UNKNOWN = 1
"""Git's status where there is nothing of a name, said without a word."""
CHECK = ("cat-file", "--buffer", "--batch-check=%(objectsize) %(objectname)")
BUFFER = 1 << 18
RECORD_MAX = 50_000_000
"""Bytes of one commit, or name of a file."""
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeEntry:
    """One file, link or submodule of a tree."""

    path: str
    """Bytes that are no UTF-8 are surrogates, as in names of files everywhere."""
    mode: str
    id: str
    size: int | None
    """Bytes; 0 for a submodule, None if the object is missing or damaged."""


class GitObjects:
    """The objects of one repository; a context manager, for one thread."""

    def __init__(self, repository: Path) -> None:
        """Raises SettingError where `repository` is in no git repository, or git is missing."""
        self.place = locate(repository)
        with contextlib.ExitStack() as stack:
            self._shadow = stack.enter_context(locked_folder(GIT))
            self._argv, self._environment = make_shadow(self.place, self._shadow)
            self._folders = stack.pop_all()
        self._asked: set[GitAnswers] = set()

    def __enter__(self) -> Self:
        """Return the objects."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the git processes."""
        self.close()

    def close(self) -> None:
        """End the git processes and remove their folder."""
        for answers in list(self._asked):
            answers.end()
        self._folders.close()

    @property
    def where(self) -> str:
        """The repository's folder, for messages."""
        return str(self.place.root)

    def resolve(self, name: str) -> str:
        """Return the id of the commit that `name` means; raises SettingError."""
        if name and not name.startswith("-") and "\0" not in name:
            try:
                done = subprocess.run(
                    (*self._argv, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"),
                    env=self._environment,
                    cwd=self._shadow,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=RESOLVE_S,
                )
            except subprocess.TimeoutExpired:
                raise SettingError(
                    f"git did not say within {RESOLVE_S} s what {name!r} is in {self.where!r}; try again"
                ) from None
            found = done.stdout.decode("ascii", "replace").strip()
            if done.returncode == 0 and _ID.fullmatch(found):
                return found
            if done.returncode < 0 or (done.returncode > UNKNOWN and done.stderr.strip()):
                said = done.stderr.decode("utf-8", "replace").strip()[:500]
                raise SettingError(
                    f"git could not say what {name!r} is in {self.where!r}: it ended with status "
                    f"{done.returncode}: {said!r}; try again, or repair the repository"
                )
        hint = "; the clone is shallow, `git fetch --unshallow` completes it" if self.place.is_shallow else ""
        raise SettingError(f"there is no commit {name!r} in the git repository {self.where!r}{hint}")

    def walk(self, *arguments: str) -> Iterator[bytes]:
        """Yield commits, id and content, as ``rev-list --header`` lists them; raises SnapshotError.

        That is where one is missing, or has more than RECORD_MAX bytes.
        """
        return self._records("rev-list", "--header", *arguments)

    def entries(self, tree: str, *paths: str) -> Iterator[TreeEntry]:
        """Yield all files of a tree or commit, or those below `paths`; raises SnapshotError."""
        options = ("-r", "-l", "-z", "--full-tree")
        for record in self._records("ls-tree", *options, tree, "--", *map(_raw, paths)):
            head, _, name = record.partition(b"\t")
            mode, _, one, size = head.decode("ascii").split()
            path = name.decode("utf-8", "surrogateescape")
            yield TreeEntry(path=path, mode=mode, id=one, size=_size(size))

    def sizes(self, ids: Sequence[str]) -> list[int | None]:
        """Return the bytes of each object; None for one that is missing."""
        return [None if line is None else int(line.partition(b" ")[0]) for line in self._check(ids)]

    def trees_of(self, commits: Sequence[str]) -> list[str | None]:
        """Return the id of each commit's tree; None where the commit or its tree is missing."""
        lines = self._check([f"{commit}^{{tree}}" for commit in commits])
        return [None if line is None else line.split()[1].decode("ascii") for line in lines]

    def contents(self, ids: Sequence[str], most: int) -> Iterator[bytes | None]:
        """Yield each object's content; None for one that is missing, damaged or of more than `most` bytes."""
        yield from self._taken(ids, ContentQueue(self.ask, most))

    def starts(self, ids: Sequence[str], most: int) -> Iterator[bytes | None]:
        """Yield the first bytes of each object, at most `most`; None for one that is missing or damaged."""
        yield from self._taken(ids, ContentQueue(self.ask, most, cut=True))

    @staticmethod
    def _taken(ids: Sequence[str], queue: ContentQueue) -> Iterator[bytes | None]:
        try:
            queue.want(ids)
            for _ in ids:
                yield queue.take()
        finally:
            queue.close()

    def ask(self, argv: Sequence[str], lines: Iterable[str]) -> GitAnswers:
        """Have a process of git answer lines; it works while its reader does."""
        with tempfile.TemporaryFile(dir=self._shadow) as given:
            given.write("".join([f"{line}\n" for line in lines]).encode())
            given.seek(0)
            return GitAnswers(self._start(argv, given), self._asked)

    def _check(self, names: Sequence[str]) -> list[bytes | None]:
        """Return size and id of each object that `names` lists; None: it cannot be read."""
        found: list[bytes | None] = []
        while len(found) < len(names):
            answers = self.ask(CHECK, names[len(found) :])
            lines = list(answers.output)
            answers.end()
            found += [None if line.endswith(b" missing\n") else line for line in lines]
            if len(found) < len(names):  # it ended over a damaged object
                found.append(None)
        return found

    def _records(self, *argv: str | bytes) -> Iterator[bytes]:
        """Yield what git writes, between NULs; raises SnapshotError when it fails."""
        with tempfile.TemporaryFile() as errors:
            answers = GitAnswers(self._start(argv, subprocess.DEVNULL, errors), self._asked)
            rest, complete = b"", False
            try:
                while part := answers.output.read1(BUFFER):  # type: ignore[attr-defined]
                    *records, rest = (rest + part).split(b"\0")
                    yield from records
                    if len(rest) > RECORD_MAX:
                        break
                complete = len(rest) <= RECORD_MAX
            finally:
                failed = answers.end(complete=complete)
            if failed:
                errors.seek(0)
                said = errors.read(500).decode("utf-8", "replace").strip().replace("\n", "; ")
                raise SnapshotError(
                    f"git {argv[0]!s} failed in {self.where!r}: {said!r}; fetch what is missing"
                    " (shallow and partial clones lack objects), or name a shorter range"
                )

    def _start(
        self, argv: Sequence[str | bytes], given: IO[bytes] | int, errors: IO[bytes] | None = None
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            (*self._argv, *argv),
            env=self._environment,
            cwd=self._shadow,
            bufsize=BUFFER,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if errors is None else errors,
        )


def _size(text: str) -> int | None:
    return int(text) if text.isdigit() else 0 if text == "-" else None  # BAD


def _raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
