"""The table of offline tools: name, description and function of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_tfgrpo.actors.offline.task_view import TaskView
from pytest_tfgrpo.actors.offline.tools import dates, lists, numbers, records, tables, text, units
from pytest_tfgrpo.actors.offline.values import ToolError, Value, ValueKind, checked, kind_of
from pytest_tfgrpo.core.python.dataclass import dataclass

ToolArguments = Mapping[str, Any]


def _none(value: Value, brief: TaskView) -> ToolArguments:  # noqa: ARG001 - the signature of `Tool.arguments`
    return {}


@dataclass(frozen=True, slots=True)
class OfflineTool:
    """One tool of the agent."""

    run: Callable[..., Value]
    """Called with the working value and the arguments; raises ToolError when it cannot apply."""
    description: str
    """One line; the agent compares it with the wording of the task."""
    takes: tuple[ValueKind, ...]
    """Kinds of value that it works on."""
    arguments: Callable[[Any, TaskView], ToolArguments] = _none
    """Reads the arguments from the task; raises ToolError when the task gives none."""
    reads: str = ""
    """Suffix of the attachment that it reads instead of the working value."""
    writes: bool = False
    """True when its result goes into the file that the task names, and the name of the file is the value."""

    @property
    def name(self) -> str:
        """Name in prompts, frames and lists of allowed tools."""
        return self.run.__name__

    def call(self, value: Value, brief: TaskView) -> tuple[ToolArguments, Value]:
        """Return the arguments used and the result; raises ToolError."""
        kind = kind_of(value)
        if kind not in self.takes:
            raise ToolError(f"takes {' or '.join(self.takes)}, not {kind}")
        if self.reads:
            name = brief.file(self.reads)
            return {"file": name}, checked(self.run(brief.read(name)))
        if self.writes:
            name = brief.new_file()
            brief.write(name, self.run(value))
            return {"file": name}, name
        if kind == "dates" and "date" in self.takes:
            value = value[0]
        arguments = self.arguments(value, brief)
        return arguments, checked(self.run(value, **arguments))


def _cell(table: list[dict[str, Value]], brief: TaskView) -> ToolArguments:
    column, cell = brief.named_cell(table)
    return {"column": column, "equals": cell}


def _column(table: list[dict[str, Value]], brief: TaskView) -> ToolArguments:
    return {"column": brief.named(table[0])}


def _field(record: dict[str, Value], brief: TaskView) -> ToolArguments:
    return {"field": brief.named(records.fields_of(record))}


def _days(_: Value, brief: TaskView) -> ToolArguments:
    return {"days": brief.days()}


_LISTS: tuple[ValueKind, ...] = ("items", "numbers", "dates")


_DATE: tuple[ValueKind, ...] = ("date", "dates")


_ANY: tuple[ValueKind, ...] = ("text", "number", "table", "record", *_LISTS)


TOOLS: tuple[OfflineTool, ...] = (
    OfflineTool(text.split_words, "Split a text into its words, in lower case.", ("text",)),
    OfflineTool(text.split_sentences, "Split a text into its sentences.", ("text",)),
    OfflineTool(text.split_items, "Split a text at commas or semicolons into entries.", ("text",)),
    OfflineTool(text.count_letters, "Count the letters and digits of a text: its length.", ("text",)),
    OfflineTool(text.make_slug, "Join the words of a title with hyphens into a web address.", ("text",)),
    OfflineTool(text.make_initials, "Shorten a name or phrase to its capital initials.", ("text",)),
    OfflineTool(text.mask_digits, "Hide every digit of a text behind a star.", ("text",)),
    OfflineTool(lists.count_items, "Count how many items a list has, or rows a table.", (*_LISTS, "table")),
    OfflineTool(lists.unique_items, "Drop repeats from a list, so that different items remain.", _LISTS),
    OfflineTool(lists.sort_items, "Sort a list in ascending order, from A to Z.", _LISTS),
    OfflineTool(lists.first_item, "Take the first item of a list.", (*_LISTS, "table")),
    OfflineTool(lists.longest_item, "Take the longest item of a list.", ("items",)),
    OfflineTool(lists.most_common_item, "Take the item that occurs most often in a list.", _LISTS),
    OfflineTool(numbers.find_numbers, "Find the numbers in a text.", ("text",)),
    OfflineTool(numbers.add_numbers, "Add numbers up to their total sum.", ("numbers",)),
    OfflineTool(numbers.average_numbers, "Take the average, the mean of numbers.", ("numbers",)),
    OfflineTool(numbers.median_number, "Take the median, the middle number in order.", ("numbers",)),
    OfflineTool(numbers.largest_number, "Take the largest, the maximum of numbers.", ("numbers",)),
    OfflineTool(numbers.number_spread, "Take the difference of highest and lowest number.", ("numbers",)),
    OfflineTool(
        numbers.add_percent,
        "Raise a number by a percentage.",
        ("number",),
        lambda _, brief: {"percent": brief.percent()},
    ),
    OfflineTool(
        numbers.round_number,
        "Round a number to decimals, or to a whole one.",
        ("number", "quantity"),
        lambda _, brief: {"places": brief.places()},
    ),
    OfflineTool(dates.find_dates, "Find the calendar dates in a text.", ("text",)),
    OfflineTool(dates.days_between, "Count the days from one date to another.", ("dates",)),
    OfflineTool(dates.shift_days, "Move a date forward by a number of days.", _DATE, _days),
    OfflineTool(
        dates.shift_workdays, "Move a date forward by working days, weekends left out.", _DATE, _days
    ),
    OfflineTool(dates.month_end, "Move a date to the last day of its month.", _DATE),
    OfflineTool(dates.weekday_name, "Name the day of the week of a date.", _DATE),
    OfflineTool(units.read_quantity, "Read the first measure, a number with its unit, in a text.", ("text",)),
    OfflineTool(units.add_quantities, "Add all measures with units in a text to one total.", ("text",)),
    OfflineTool(
        units.convert_unit,
        "Convert a measure to another unit.",
        ("quantity",),
        lambda value, brief: {"unit": brief.target_unit(value)},
    ),
    OfflineTool(units.clock_time, "Write a duration as hours and minutes.", ("quantity",)),
    OfflineTool(tables.read_table, "Read the attached CSV file as a table.", ("text",), reads=".csv"),
    OfflineTool(tables.filter_rows, "Keep the rows of a table that match a name.", ("table",), _cell),
    OfflineTool(tables.pick_column, "Take one column of a table as a list.", ("table",), _column),
    OfflineTool(tables.top_row, "Take the row with the highest figure in a column.", ("table",), _column),
    OfflineTool(tables.save_file, "Write a table or result to a new file.", _ANY, writes=True),
    OfflineTool(records.read_json, "Read the attached JSON file as a record.", ("text",), reads=".json"),
    OfflineTool(records.get_field, "Look up the value of a field in a record.", ("record",), _field),
    OfflineTool(records.list_keys, "List the names of the fields of a record.", ("record",)),
)


BY_NAME: Mapping[str, OfflineTool] = {tool.name: tool for tool in TOOLS}
