"""Sync: the active patterns as the files that agents and people read.

A skill for each pattern in the folders of skills, lines in a memory file such as ``AGENTS.md``, links in
``docs/patterns/``. Only what was written here and not edited since is changed or removed.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.errors import JournalError, PatternError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.patterns.learn_file import LEARN_FILE, SKILL_FOLDERS
from pytest_tfgrpo.patterns.shelf.pattern import FOLDER, Pattern, PatternStatus
from pytest_tfgrpo.patterns.shelf.shelf import Shelf
from pytest_tfgrpo.patterns.shelf.skill_text import is_as_written, is_ours, lesson_of, skill_text

SKILL = "SKILL.md"
DOCS = "docs/patterns/index.md"
BEGIN, END = "<!-- patterns of tfgrpo: begin -->", "<!-- patterns of tfgrpo: end -->"
LINES_MAX = 4096
"""Bytes of the lines in a memory file, with their markers."""
FILE_MAX = 2_000_000
SyncAction: TypeAlias = Literal["add", "change", "remove", "keep"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncPlaces:
    """What is kept up to date, relative to the root of the repository."""

    skills: tuple[str, ...] = SKILL_FOLDERS
    agents_md: str = ""
    """A memory file such as ``AGENTS.md``; empty: none."""
    docs: bool = False
    """Whether to begin a page of links; one that is there is kept up to date anyway."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncChange:
    """One file that is not as it should be."""

    path: Path
    action: SyncAction
    """keep: it was edited by somebody, and is left as it is unless that is forced."""
    old: str = ""
    new: str = ""
    why: str = ""

    def diff(self, root: Path) -> str:
        """Return the difference as a patch."""
        name = str(self.path.relative_to(root))
        rows = difflib.unified_diff(
            self.old.splitlines(), self.new.splitlines(), f"a/{name}", f"b/{name}", lineterm=""
        )
        return "\n".join(rows)


def changes(shelf: Shelf, places: SyncPlaces, *, force: bool = False) -> list[SyncChange]:
    """Return what has to change; nothing is written. Raises PatternError where a place leads out.

    `force`: files that somebody edited are changed too, where they were written here.
    """
    patterns = shelf.patterns(PatternStatus.ACTIVE)
    wanted = dict.fromkeys(inside(shelf.root, name) for name in places.skills)
    left = dict.fromkeys(
        folder for name in SKILL_FOLDERS if (folder := inside(shelf.root, name)) not in wanted
    )
    found = [change for folder in wanted for change in _skill_changes(folder, patterns, force=force)]
    found += [change for folder in left for change in _skill_changes(folder, [], force=force)]
    if places.agents_md:
        memory = inside(shelf.root, places.agents_md)
        found += _edited(memory, lambda old: with_lines(old, patterns, memory))
    page = inside(shelf.root, DOCS)
    if places.docs or (_read(page) or "").startswith(BEGIN):
        found += _edited(page, lambda old: _links(old, patterns, page))
    return found


def apply(changed: list[SyncChange]) -> None:
    """Write the changes, but for those to `keep`; raises PatternError naming what cannot be written."""
    for change in changed:
        try:
            if change.action == "remove":
                change.path.unlink()
                with suppress(OSError):  # somebody keeps more files there
                    change.path.parent.rmdir()
            elif change.action != "keep":
                change.path.parent.mkdir(parents=True, exist_ok=True)
                write_text(change.path, change.new)
        except (OSError, JournalError) as error:
            why = (isinstance(error, OSError) and error.strerror) or error
            raise PatternError(f"cannot write {change.path}: {why}; mend it, then sync again") from error


def inside(root: Path, name: str) -> Path:
    """Return the path of a place below `root`; raises PatternError where it is not for agents."""
    path = root / name
    found, top = path.resolve(), root.resolve()
    if Path(os.path.normpath(path)) == root or found == top or not found.is_relative_to(top):
        raise PatternError(f"{name!r} leads out of {root}; name a place within the repository")
    if (
        ".git" in found.relative_to(top).parts
        or found.is_relative_to(top / FOLDER)
        or found == top / LEARN_FILE
    ):
        raise PatternError(f"{name!r} is of git or of the patterns themselves; name a place of its own")
    return found


def with_lines(old: str, patterns: list[Pattern], where: Path) -> str:
    """Return a memory file with a line for each pattern between two markers; raises PatternError.

    Of more than `LINES_MAX` bytes the first by name, and how many more there are.
    """
    if old.count(BEGIN) != old.count(END) or old.count(BEGIN) > 1 or old.find(BEGIN) > old.find(END):
        raise PatternError(f"{where}: the markers {BEGIN!r} and {END!r} must stand there once each")
    section = _section(patterns)
    if BEGIN in old:
        before, _, rest = old.partition(BEGIN)
        after = rest.partition(END)[2]
        if not section:
            return (before.rstrip("\n") + "\n" if before.strip() else "") + after.lstrip("\r\n")
        return before + section + after
    if not section:
        return old
    gap = "\n" * (0 if not old else 2 - (old.endswith("\n") + old.endswith(("\n\n", "\n\r\n"))))
    return f"{old}{gap}{section}\n"


def _section(patterns: list[Pattern]) -> str:
    if not patterns:
        return ""
    rows = [f"* {lesson_of(pattern)} ({pattern.name})" for pattern in patterns]
    for kept in range(len(rows), -1, -1):
        more = [f"* {len(rows) - kept} more in {FOLDER}/active"] * (kept < len(rows))
        text = "\n".join([BEGIN, *rows[:kept], *more, END])
        if len(text.encode()) <= LINES_MAX:
            return text
    raise AssertionError("the markers alone are short")


def _links(old: str, patterns: list[Pattern], where: Path) -> str:
    """Return the page of links; raises PatternError where somebody else wrote it."""
    if old and not old.startswith(BEGIN):
        raise PatternError(
            f"{where} was not written by 'tfgrpo patterns sync'; move it away, or sync without --docs"
        )
    if not patterns:
        return ""
    links = [
        f"* [{_plain(one.title)}](../../{FOLDER}/active/{one.name}.md): {_plain(lesson_of(one))}"
        for one in patterns
    ]
    return "\n".join([BEGIN, "", "# Patterns", "", *links, "", END, ""])


def _plain(text: str) -> str:
    return "".join(f"\\{character}" if character in "\\[]()<>*_`" else character for character in text)


def _skill_changes(folder: Path, patterns: list[Pattern], *, force: bool) -> Iterator[SyncChange]:
    wanted = {pattern.name: skill_text(pattern) for pattern in patterns}
    there = {path.parent.name for path in folder.glob(f"*/{SKILL}")} if folder.is_dir() else set()
    for name in sorted(wanted.keys() | there):
        path, new = folder / name / SKILL, wanted.get(name, "")
        for link in (path.parent, path):
            if link.is_symlink() and new:
                raise PatternError(f"{link} is a link; make it a folder or take it away, then sync again")
        if path.is_symlink() or path.parent.is_symlink():
            continue
        old = _read(path)
        if old is None:
            yield SyncChange(path=path, action="add", new=new)
        elif _same(old, new) or (not new and not is_ours(old)):
            continue
        elif is_as_written(old) or (force and is_ours(old)):
            yield SyncChange(path=path, action="change" if new else "remove", old=old, new=new)
        else:
            why = "somebody edited it; take that over into its pattern, then sync with --force"
            foreign = f"somebody else wrote it; rename it, or the pattern {name!r}"
            yield SyncChange(path=path, action="keep", old=old, new=new, why=why if is_ours(old) else foreign)


def _edited(path: Path, edit: Callable[[str], str]) -> Iterator[SyncChange]:
    old = _read(path)
    new = edit(old or "")
    if not _same(new, old or ""):
        action: SyncAction = "add" if old is None else "change" if new else "remove"
        yield SyncChange(path=path, action=action, old=old or "", new=new)


def _same(one: str, other: str) -> bool:
    """Return whether two texts are equal but for line ends, which git may change at a checkout."""
    return one.replace("\r\n", "\n") == other.replace("\r\n", "\n")


def _read(path: Path) -> str | None:
    try:
        return read_plain(path, FILE_MAX).decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise PatternError(f"cannot read {path}: {error.strerror}; mend it, then sync again") from error
    except UnicodeDecodeError as error:
        raise PatternError(f"{path} is not UTF-8; save it as UTF-8, then sync again") from error
