"""Objects of a git repository, read by plumbing alone; nothing is checked out, run, fetched or written."""

from __future__ import annotations

import contextlib
import fcntl
import re
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from pytest_tfgrpo.core.errors import SettingError, SnapshotError
from pytest_tfgrpo.patterns.git_shadow import locate, make_shadow

PIPE = 1 << 20
"""Bytes that a git process may be ahead of its reader, where the system lets it."""
CHUNK = 128
"""Objects asked for at once: two chunks of names fit into any pipe, so that no write waits for a read."""
RESOLVE_S = 60
CHECK = ("cat-file", "--batch-check=%(objectsize) %(objectname)")
CONTENT = ("cat-file", "--batch=%(objectsize) %(objectname)")
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
        self._shadow = tempfile.TemporaryDirectory(prefix="tfgrpo-git-")
        self._argv, self._environment = make_shadow(self.place, Path(self._shadow.name))
        self._processes: dict[tuple[str, ...], subprocess.Popen[bytes]] = {}

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
        for argv in list(self._processes):
            self.end(argv)
        self._shadow.cleanup()

    @property
    def where(self) -> str:
        """The repository's folder, for messages."""
        git_dir = self.place.git_dir
        return str(git_dir.parent if git_dir.name == ".git" else git_dir)

    def resolve(self, name: str) -> str:
        """Return the id of the commit that `name` means; raises SettingError."""
        if name and not name.startswith("-") and "\0" not in name:
            with contextlib.suppress(subprocess.TimeoutExpired):
                done = subprocess.run(
                    (*self._argv, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"),
                    env=self._environment,
                    cwd=self._shadow.name,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=RESOLVE_S,
                )
                found = done.stdout.decode("ascii", "replace").strip()
                if done.returncode == 0 and _ID.fullmatch(found):
                    return found
        hint = "; the clone is shallow, `git fetch --unshallow` completes it" if self.place.is_shallow else ""
        raise SettingError(f"there is no commit {name!r} in the git repository {self.where!r}{hint}")

    def walk(self, *arguments: str) -> Iterator[str]:
        """Yield ids of commits as ``rev-list`` lists them; raises SnapshotError where one is missing."""
        for line in self._lines("rev-list", *arguments):
            yield line.decode("ascii").strip()

    def entries(self, tree: str, *paths: str) -> Iterator[TreeEntry]:
        """Yield all files of a tree or commit, or those below `paths`; raises SnapshotError."""
        rest = b""
        for line in self._lines("ls-tree", "-r", "-l", "-z", "--full-tree", tree, "--", *map(_raw, paths)):
            *records, rest = (rest + line).split(b"\0")
            for record in records:
                head, _, name = record.partition(b"\t")
                mode, _, one, size = head.decode("ascii").split()
                path = name.decode("utf-8", "surrogateescape")
                yield TreeEntry(path=path, mode=mode, id=one, size=_size(size))

    def sizes(self, ids: Sequence[str]) -> list[int | None]:
        """Return the bytes of each object; None for one that is missing."""
        return [answer and answer[0] for answer in self._ask(CHECK, ids)]

    def contents(self, ids: Sequence[str], most: int) -> Iterator[bytes | None]:
        """Yield each object's content; None for one that is missing, damaged or of more than `most` bytes."""
        sizes = self.sizes(ids)
        fits = [size is not None and size <= most for size in sizes]
        wanted = [one for one, fit in zip(ids, fits, strict=True) if fit]
        answers = self._ask(CONTENT, wanted)
        with contextlib.closing(answers):
            for fit in fits:
                answer = next(answers) if fit else None
                yield answer and answer[1]

    def trees_of(self, commits: Sequence[str]) -> list[str | None]:
        """Return the id of each commit's tree; None where the commit or its tree is missing."""
        answers = self._ask(CHECK, [f"{commit}^{{tree}}" for commit in commits])
        return [answer and answer[1].decode("ascii") for answer in answers]

    def send(self, argv: tuple[str, ...], text: bytes) -> None:
        """Write to the git process `argv`, started when there is none; `text` must fit into a pipe."""
        stdin = self._process(argv).stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended: the reader sees that
            stdin.write(text)
            stdin.flush()

    def output(self, argv: tuple[str, ...]) -> IO[bytes]:
        """Return the output of the git process `argv`."""
        return _output(self._process(argv))

    def end(self, argv: tuple[str, ...]) -> None:
        """End the git process `argv`, if there is one."""
        process = self._processes.pop(argv, None)
        if process is not None:
            process.kill()
            _finish(process)

    def _lines(self, *argv: str | bytes) -> Iterator[bytes]:
        with tempfile.TemporaryFile() as errors:
            process = self._start(argv, errors)
            try:
                yield from _output(process)
            except GeneratorExit:
                process.kill()
                raise
            finally:
                _finish(process)
            if process.returncode:
                errors.seek(0)
                said = errors.read(500).decode("utf-8", "replace").strip().replace("\n", "; ")
                raise SnapshotError(
                    f"git {argv[0]!s} cannot go on in {self.where!r}: {said!r}; fetch what is missing"
                    " (shallow and partial clones lack objects), or name a shorter range"
                )

    def _ask(
        self, argv: tuple[str, ...], names: Sequence[str]
    ) -> Generator[tuple[int, bytes] | None, None, None]:
        """Yield size and content (or id) of each object that `names` lists; None: it cannot be read."""
        for start in range(0, len(names), CHUNK):
            chunk = names[start : start + CHUNK]
            while chunk:
                self.send(argv, "".join(f"{name}\n" for name in chunk).encode())
                done = 0
                try:
                    for done, _ in enumerate(chunk, 1):  # noqa: B007
                        try:
                            yield _answer(_output(self._process(argv)), whole=argv == CONTENT)
                        except EOFError:  # it ended over a damaged object
                            self.end(argv)
                            yield None
                            break
                finally:
                    if done < len(chunk):
                        self.end(argv)  # answers that nobody has read
                chunk = chunk[done:]

    def _process(self, argv: tuple[str, ...]) -> subprocess.Popen[bytes]:
        if argv not in self._processes:
            self._processes[argv] = self._start(argv)
        return self._processes[argv]

    def _start(self, argv: Sequence[str | bytes], errors: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            (*self._argv, *argv),
            env=self._environment,
            cwd=self._shadow.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if errors is None else errors,
        )
        with contextlib.suppress(OSError, AttributeError):  # a user may have no more large pipes
            fcntl.fcntl(_output(process), fcntl.F_SETPIPE_SZ, PIPE)
        return process


def _size(text: str) -> int | None:
    return int(text) if text.isdigit() else 0 if text == "-" else None  # BAD


def _raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def _finish(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):
        if process.stdin is not None:
            process.stdin.close()
    _output(process).close()
    process.wait()


def _answer(output: IO[bytes], *, whole: bool) -> tuple[int, bytes] | None:
    """Return size and content, or id, of the next object; None: missing. Raises EOFError."""
    line = output.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    size, _, name = line[:-1].rpartition(b" ")
    if not size.isdigit():
        return None
    if not whole:
        return int(size), name
    content = output.read(int(size) + 1)
    if len(content) <= int(size):
        raise EOFError
    return int(size), content[:-1]
