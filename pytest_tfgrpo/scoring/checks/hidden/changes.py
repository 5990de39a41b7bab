"""Changes of hidden tests as a scenario has them: what is wrong with them is said when it is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.wire import Json, from_wire
from pytest_tfgrpo.sandbox.archives import ArchiveProblem, read_archive
from pytest_tfgrpo.scoring.checks.protocol import BadParam
from pytest_tfgrpo.scoring.runners.edits.changed_tests import LineChange, with_lines

ADVICE = "; write them again with 'tfgrpo harvest', or leave 'changes' out"


def require_changes(changes: Sequence[Json], listed: Collection[str], hidden: Path) -> None:
    """Raise BadParam where a change names a test that is not listed, or does not change its file as it must.

    A file that is not in the archive `hidden` lies in that of the workspace; a run says what is wrong there.
    """
    names = {change["file"] for change in changes}
    try:
        texts = {entry.name: entry.data for entry in read_archive(hidden) if entry.name in names}
    except (ArchiveProblem, OSError) as error:
        raise BadParam("hidden", str(error)) from None
    for number, change in enumerate(changes):
        where = f"number {number} (of {line(change['file'], 100)!r}, row {change['lines'][0]['row']})"
        if wrong := _wrong(from_wire(LineChange, change), listed, texts) or _again(changes, number):
            raise BadParam("changes", f"{where} {wrong}{ADVICE}")


def _wrong(change: LineChange, listed: Collection[str], texts: Mapping[str, bytes]) -> str:
    """Return what is wrong with a change; nothing where it is right."""
    if unknown := next((id_ for id_ in change.fails if id_ not in listed), None):
        return f"names the test {line(unknown, 200)!r}, which is in neither fail_to_pass nor pass_to_pass"
    if backwards := next((one for one in change.lines if 0 < one.last < one.row), None):
        return f"ends in row {backwards.last}, before row {backwards.row} where it begins"
    rows = sorted(change.lines, key=lambda one: one.row)
    for one, other in pairwise(rows):
        if other.row <= one.end:
            return f"changes row {other.row} twice"
    if change.file not in texts:
        return ""
    data = texts[change.file]
    try:
        changed = with_lines(data, change.lines)
    except ValueError as error:
        return f"does not fit its file: {error}"
    return "" if changed != data else "changes nothing: its rows are those of the file"


def _again(changes: Sequence[Json], number: int) -> str:
    """Return that a change stands there twice, where it does."""
    first = changes.index(changes[number])
    return f"is the same as number {first}" if first < number else ""
