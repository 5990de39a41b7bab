"""A task as tools see it: its text and files, and the arguments that its wording gives to them.

Text in double quotes is data; the wording is what stands outside. All patterns are linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pytest_tfgrpo.actors.offline.measures import UNIT_NAMES, UNITS
from pytest_tfgrpo.actors.offline.reading import (
    dates_in,
    numbers_in,
    quantities_in,
    without_quantities,
)
from pytest_tfgrpo.actors.offline.values import (
    MAX_ITEMS,
    MAX_TEXT,
    Quantity,
    ToolError,
    Value,
    check_depth,
    checked,
    kind_of,
)
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import Task

if TYPE_CHECKING:
    from pytest_tfgrpo.sandbox.workspace import Workspace

_QUOTED = re.compile(r'"([^"]*)"|“([^“”]*)”')
_WORD = re.compile(r"°?[^\W_]+")
_GAP = re.compile(r"[\W_]+")
_FILE = re.compile(r"(?<![\w./-])[A-Za-z0-9][A-Za-z0-9_-]{0,60}\.(?:csv|json|txt)(?![\w/])")
_SPELLED = (
    *("one", "two", "three", "four", "five", "six", "seven"),
    *("eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen"),
)
_COUNT = rf"(?<!\w)(\d{{1,6}}|{'|'.join(_SPELLED)})"
_DAYS = re.compile(
    rf"{_COUNT}(?:[ -](?:calendar|working|business|more|full))?[ -](day|week)s?\b", re.IGNORECASE | re.ASCII
)
_PLACES = re.compile(rf"{_COUNT}[ -](?:decimal|digit|place)s?\b", re.IGNORECASE | re.ASCII)
_PERCENT = re.compile(r"(?<![\w.])(\d{1,6}(?:\.\d{1,6})?) ?(?:%|per ?cent\b)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskView:
    """A task as tools see it."""

    text: str
    """The task in words, with its data."""
    files: tuple[str, ...]
    """Names of the files in the workspace."""
    read: Callable[[str], str]
    """Returns the text of a file; raises ToolError."""
    write: Callable[[str, str], None]
    """Writes a new file; raises ToolError."""

    @property
    def wording(self) -> str:
        """The text without what stands in quotes."""
        return _QUOTED.sub(" ", self.text)

    def subject(self) -> str:
        """Return the longest quoted text, or the whole text when nothing is quoted."""
        quoted = [straight or curly for straight, curly in _QUOTED.findall(self.text)]
        return max(quoted, key=len, default="") or self.text

    def has_data(self) -> bool:
        """Return whether the text has something to work on: quoted, a file, dates, measures or numbers."""
        text = self.text
        data = _QUOTED.search(text) or _FILE.search(text) or dates_in(text) or quantities_in(text)
        return bool(data or numbers_in(text))

    def sight(self) -> str:
        """Return words for the data at hand: of the attached files, else of the text."""
        endings = {name.rpartition(".")[2] for name in self.files}
        if endings & {"csv", "json"}:
            return " ".join(sorted(endings))
        data = self.subject()
        if dates_in(data):
            return "dates"
        if quantities_in(data):
            return "measures units"
        return "numbers" if numbers_in(data) else "words"

    def file(self, suffix: str) -> str:
        """Return the name of the file with this suffix that the text names, or else of the first one."""
        names = [name for name in self.files if name.endswith(suffix)]
        if not names:
            raise ToolError(f"no {suffix} file is attached")
        return next((name for name in names if _base(name) in self.text), names[0])

    def new_file(self) -> str:
        """Return the file name in the text that is not attached; it has no folder."""
        attached = set(map(_base, self.files))
        names = [name for name in _FILE.findall(self.text) if name not in attached]
        if not names:
            raise ToolError("the task names no file to write")
        return str(names[0])

    def days(self) -> int:
        """Return the number of days (weeks times 7) that the wording names."""
        match = _DAYS.search(self.wording)
        if match is None:
            raise ToolError("the task names no number of days")
        return _count(match[1]) * (7 if match[2].lower() == "week" else 1)

    def places(self) -> int:
        """Return the number of decimals that the wording names, 0 without any."""
        match = _PLACES.search(self.wording)
        return _count(match[1]) if match else 0

    def percent(self) -> float:
        """Return the percentage that the wording names."""
        match = _PERCENT.search(self.wording)
        if match is None:
            raise ToolError("the task names no percentage")
        return float(match[1])

    def target_unit(self, quantity: Quantity) -> str:
        """Return the first unit in the wording, not part of a quantity, that `quantity` can be given in."""
        measure = UNITS[quantity.unit].measure
        for word in _WORD.findall(without_quantities(self.wording).lower()):
            unit = UNIT_NAMES.get(word, quantity.unit)
            if unit != quantity.unit and UNITS[unit].measure == measure:
                return unit
        raise ToolError(f"the task names no other unit of {measure}")

    def named(self, names: Iterable[str]) -> str:
        """Return the longest of `names` that the text has as whole words; raises ToolError without any."""
        phrases = _phrases(self.text)
        present = [name for name in names if _plain(name) in phrases]
        if not present:
            raise ToolError("the task names none of them")
        return max(present, key=len)

    def named_cell(self, table: list[dict[str, Value]]) -> tuple[str, str]:
        """Return column and content of the longest cell of text that the text of the task contains."""
        cells = {cell: column for row in table for column, cell in row.items() if isinstance(cell, str)}
        cell = self.named(filter(None, cells))
        return cells[cell], cell


def open_brief(task: Task, workspace: Workspace) -> TaskView:
    """Return the task as tools see it; its files are those of the workspace."""

    def read(name: str) -> str:
        try:
            with (workspace.path / name).open(encoding="utf-8", newline="") as file:
                content = file.read(MAX_TEXT + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise ToolError(f"cannot read {name}: {type(error).__name__}") from None
        return str(checked(content))

    def write(name: str, content: str) -> None:
        try:
            (workspace.path / name).write_text(content, encoding="utf-8", newline="")
        except (OSError, UnicodeEncodeError) as error:
            raise ToolError(f"cannot write {name}: {type(error).__name__}") from None

    text = task.prompt or (task.input if isinstance(task.input, str) else "")
    return TaskView(text=text[:MAX_TEXT], files=task.attachments, read=read, write=write)


def first_value(task: Task, brief: TaskView) -> Value:
    """Return what the first tool works on: the input if tools can handle it, else the data in the text."""
    try:
        check_depth(task.input)
        kind_of(checked(task.input))
    except ToolError:
        return brief.subject()
    return task.input


def wording_of(text: str) -> str:
    """Return `text` without what stands in quotes."""
    return _QUOTED.sub(" ", text)


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _count(text: str) -> int:
    return int(text) if text.isdigit() else 1 + _SPELLED.index(text.lower())


def _plain(name: str) -> str:
    return _GAP.sub(" ", name).strip().casefold()


def _phrases(text: str) -> set[str]:
    """All runs of one to four words, plain; the work is bounded by the longest text read."""
    words = _plain(text[:MAX_TEXT]).split()[:MAX_ITEMS]
    return {" ".join(words[i : i + n]) for n in range(1, 5) for i in range(len(words))}
