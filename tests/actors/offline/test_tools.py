"""The tools of the offline actor: facts, invariants, and what hostile data gets."""

import math
import statistics
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.actors.offline.measures import UNIT_NAMES, UNITS
from pytest_tfgrpo.actors.offline.reading import dates_in, numbers_in, quantities_in
from pytest_tfgrpo.actors.offline.task_view import TaskView, first_value, open_brief
from pytest_tfgrpo.actors.offline.tools import dates, lists, numbers, records, units
from pytest_tfgrpo.actors.offline.tools import tables as tables_
from pytest_tfgrpo.actors.offline.tools import text as text_
from pytest_tfgrpo.actors.offline.tools.registry import BY_NAME, TOOLS
from pytest_tfgrpo.actors.offline.values import (
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_TEXT,
    Quantity,
    ToolError,
    kind_of,
    render,
)
from pytest_tfgrpo.core.scenarios import Attachment, Task
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.workspace import Workspace

figures = st.lists(st.floats(-1e6, 1e6) | st.integers(-(10**6), 10**6), min_size=1, max_size=30)
days = st.dates(date(1900, 1, 1), date(2100, 12, 31))


def brief(
    text: str = "", files: dict[str, str] | None = None, written: dict[str, str] | None = None
) -> TaskView:
    held = files or {}
    out = {} if written is None else written
    return TaskView(text=text, files=tuple(held), read=held.__getitem__, write=out.__setitem__)


def call(tool: str, value: Any, text: str = "", **files: Any) -> Any:
    return BY_NAME[tool].call(value, brief(text, **files))


# the table


def test_every_tool_has_a_snake_case_name_and_a_one_line_description() -> None:
    assert len(TOOLS) == len(BY_NAME) == 39
    for tool in TOOLS:
        assert "_" in tool.name
        assert tool.name.isidentifier()
        assert tool.name.islower()
        assert 10 < len(tool.description) < 80
        assert "\n" not in tool.description


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_refuses_a_kind_of_value_that_it_does_not_take(tool: Any) -> None:
    examples = {
        "text": "a",
        "items": ["a"],
        "numbers": [1],
        "dates": [date(2026, 1, 1)],
        "number": 1,
        "date": date(2026, 1, 1),
        "quantity": Quantity(1.0, "kg"),
        "table": [{"a": 1}],
        "record": {"a": 1},
    }
    for kind, value in examples.items():
        assert kind_of(value) == kind
        if kind not in tool.takes:
            with pytest.raises(ToolError, match=r"takes .*, not "):
                tool.call(value, brief())


# text


def test_words_are_lower_case_and_keep_their_apostrophes_and_hyphens() -> None:
    assert text_.split_words("Don't STOP: well-known (twice)!") == ["don't", "stop", "well-known", "twice"]


def test_sentences_end_at_a_mark_before_a_gap() -> None:
    assert text_.split_sentences("Pay 3.50 now! Why? Because... it is due") == [
        "Pay 3.50 now",
        "Why",
        "Because",
        "it is due",
    ]


def test_items_stand_between_commas_and_semicolons() -> None:
    assert text_.split_items("a b, c;d\n,e") == ["a b", "c", "d", "e"]
    with pytest.raises(ToolError):
        text_.split_items("one part")


def test_short_forms_of_a_text() -> None:
    assert text_.make_slug("  Hello, World 2! ") == "hello-world-2"
    assert text_.make_initials("ada byron King") == "ABK"
    assert text_.mask_digits("Call 555-01") == "Call ***-**"
    assert text_.count_letters("a b-2!") == 3
    with pytest.raises(ToolError):
        text_.mask_digits("none")
    with pytest.raises(ToolError):
        text_.make_slug("!?")


@reaches("masked", "no digits")
@given(st.text(max_size=200) | st.text("01289٣ a-", max_size=20))
def test_masking_hides_digits_and_nothing_else(text: str) -> None:
    try:
        masked = text_.mask_digits(text)
    except ToolError:
        reached("no digits")
        return
    reached("masked")
    assert len(masked) == len(text)
    assert all(a == b or (a.isdecimal() and b == "*") for a, b in zip(text, masked, strict=True))


# lists


@given(st.lists(st.text(max_size=5) | st.integers(), max_size=30))
def test_unique_items_are_a_subset_in_order_without_repeats(items: list[Any]) -> None:
    unique = lists.unique_items(items)
    seen = [render(item).casefold() for item in unique]
    assert len(set(seen)) == len(seen)
    assert set(seen) == {render(item).casefold() for item in items}
    assert lists.unique_items(unique) == unique


@given(st.lists(st.integers(), max_size=30))
def test_sorting_orders_the_same_items(items: list[int]) -> None:
    assert lists.sort_items(items) == sorted(items)


def test_mixed_items_sort_by_their_text() -> None:
    assert lists.sort_items(["b", 10, "A"]) == [10, "A", "b"]
    assert lists.sort_items(["B", 10, "a"]) == [10, "a", "B"]


def test_choices_out_of_a_list() -> None:
    words = ["to", "be", "or", "not", "To", "be", "to"]
    assert lists.most_common_item(words) == "to"
    assert lists.longest_item(words) == "not"
    assert lists.first_item(words) == "to"
    assert lists.count_items(words) == 7
    with pytest.raises(ToolError, match="no item occurs twice"):
        lists.most_common_item(["a", "b"])
    for tool in (lists.first_item, lists.longest_item, lists.most_common_item):
        with pytest.raises(ToolError):
            tool([])


# numbers


def test_numbers_in_text_leave_out_dates_codes_and_ranges() -> None:
    text = "4, 8,15 and 1,250.50 on 2026-03-14, -3.5, N-101, 3-5, v2, 1.2.3 then 12."
    assert numbers_in(text) == [4, 8, 15, 1250.5, -3.5, 12]


@given(figures)
def test_number_tools_agree_with_their_definitions(values: list[float]) -> None:
    assert math.isclose(numbers.add_numbers(values), sum(values), rel_tol=1e-9, abs_tol=1e-6)
    assert math.isclose(
        numbers.average_numbers(values) * len(values), sum(values), rel_tol=1e-9, abs_tol=1e-6
    )
    assert numbers.median_number(values) == statistics.median(values)
    assert numbers.number_spread(values) >= 0
    assert min(values) + numbers.number_spread(values) == pytest.approx(
        numbers.largest_number(values), abs=1e-6
    )


def test_rounding_is_half_up_and_ignores_the_noise_of_floats() -> None:
    assert numbers.round_number(2.5) == 3
    assert numbers.round_number(2.675, places=2) == 2.68
    assert numbers.round_number(0.1 + 0.2, places=1) == 0.3
    assert numbers.round_number(Quantity(27.66, "kg"), places=1) == Quantity(27.7, "kg")


def test_a_percentage_comes_from_the_wording() -> None:
    assert call("add_percent", 40, 'Raise "40" by 12.5 %') == ({"percent": 12.5}, pytest.approx(45))
    with pytest.raises(ToolError, match="no percentage"):
        call("add_percent", 40, 'Raise it by "5 %"')


# dates


def test_dates_are_read_in_three_forms_and_impossible_ones_skipped() -> None:
    assert dates_in("2026-03-14, 14 March 2026, Mar 3, 2026 and 31 Feb 2026") == [
        date(2026, 3, 14),
        date(2026, 3, 14),
        date(2026, 3, 3),
    ]


@given(days, st.integers(0, 5000))
def test_shifting_and_counting_days_are_inverse(day: date, count: int) -> None:
    later = dates.shift_days(day, count)
    assert dates.days_between([day, later]) == dates.days_between([later, day]) == count


@given(days, st.integers(0, 60))
def test_working_days_are_those_that_a_walk_counts(day: date, count: int) -> None:
    walked, left = day, count
    while left:
        walked += timedelta(days=1)
        left -= walked.weekday() < 5
    assert dates.shift_workdays(day, count) == walked


@given(days)
def test_a_month_ends_the_day_before_the_first(day: date) -> None:
    end = dates.month_end(day)
    assert (end.year, end.month) == (day.year, day.month)
    assert (end + timedelta(days=1)).day == 1


def test_spans_come_from_the_wording_in_figures_words_and_weeks() -> None:
    start = [date(2026, 1, 30)]
    for text, due in (
        ("in 3 days", 2),
        ("after two weeks", 13),
        ("a 10-day term", 9),
        ("Two Weeks later", 13),
        ("fourteen days", 13),
        ("five working days", 4),
    ):
        assert call("shift_days", start, text)[1] == date(2026, 2, due)
    assert dates.weekday_name(date(2026, 2, 2)) == "Monday"


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ('Say "hello".', True),
        ("Read notes.txt and say it.", True),
        ("What is due on 14 March 2026?", True),
        ("Convert three km.", False),
        ("Convert 3 km.", True),
        ("Add 4 and 5.", True),
        ("Say hello.", False),
    ],
)
def test_a_task_has_data_where_it_gives_something_to_work_on(text: str, has: bool) -> None:
    assert TaskView(text=text, files=(), read=lambda _: b"", write=lambda *_: None).has_data() is has


@pytest.mark.parametrize("count", [-1, 10**6])
def test_absurd_spans_are_refused(count: int) -> None:
    with pytest.raises(ToolError):
        dates.shift_workdays(date(2026, 1, 1), count)
    with pytest.raises(ToolError):
        dates.shift_days(date(9999, 12, 31), abs(count))


# units


def test_every_unit_has_a_name_and_every_name_a_unit() -> None:
    assert set(UNIT_NAMES.values()) == set(UNITS)


def test_conversions_known_by_definition() -> None:
    for amount, unit, target, want in (
        (1, "lb", "oz", 16),
        (1, "stone", "kg", 6.35029318),
        (1, "yd", "m", 0.9144),
        (1, "gal", "l", 4.54609),
        (14, "lb", "stone", 1),
        (1, "mi", "yd", 1760),
        (1, "yd", "inch", 36),
        (1, "gal", "pt", 8),
        (1, "days", "min", 1440),
        (212, "°F", "°C", 100),
        (-40, "°C", "°F", -40),
    ):
        assert units.convert_unit(Quantity(amount, unit), target).amount == pytest.approx(want)


ALIKE = [(a, b) for a in sorted(UNITS) for b in sorted(UNITS) if UNITS[a].measure == UNITS[b].measure]


@reaches("another unit")
@given(st.floats(-1e6, 1e6), st.sampled_from(ALIKE))
def test_converting_there_and_back_changes_nothing(amount: float, pair: tuple[str, str]) -> None:
    unit, target = pair
    reached("another unit", unit != target)
    there = units.convert_unit(Quantity(amount, unit), target)
    assert units.convert_unit(there, unit).amount == pytest.approx(amount, rel=1e-9, abs=1e-6)


def test_measures_do_not_mix() -> None:
    with pytest.raises(ToolError, match="cannot convert kg to km"):
        units.convert_unit(Quantity(1, "kg"), "km")
    with pytest.raises(ToolError):
        units.add_quantities("2 kg and 3 km")


def test_quantities_are_found_and_added_in_the_unit_of_the_first() -> None:
    assert quantities_in("38 lb, 2.5kg, 5 apples") == [Quantity(38, "lb"), Quantity(2.5, "kg")]
    assert units.add_quantities("2 kg, 750 g") == Quantity(2.75, "kg")
    assert units.clock_time(Quantity(3.5, "h")) == "3:30"
    assert units.clock_time(Quantity(65, "min")) == "1:05"
    assert units.add_quantities("1 kg, 2 kg and 4 kg") == Quantity(7, "kg")
    assert quantities_in("3 hrs") == [Quantity(3, "h")]


def test_the_target_unit_is_the_other_unit_in_the_wording() -> None:
    arguments, value = call("convert_unit", Quantity(38, "lb"), '"38 lb" in pounds is what in kg?')
    assert arguments == {"unit": "kg"}
    assert render(value) == "17.23651006 kg"


def test_a_unit_that_belongs_to_a_quantity_is_no_target_unit() -> None:
    arguments, _ = call("convert_unit", Quantity(38, "lb"), "A bag of 4 oz aside, what is 38 lb in kg?")
    assert arguments == {"unit": "kg"}


# tables and records

ORDERS = "order,customer,amount\nA1,Ann Lee,10\nA2,Bo,2.5\nA3,ann lee,4\n"


def test_a_table_is_read_filtered_ranked_and_saved() -> None:
    _, table = call("read_table", "", "Look at o.csv", files={"o.csv": ORDERS})
    assert table[0] == {"order": "A1", "customer": "Ann Lee", "amount": 10}
    arguments, rows = call("filter_rows", table, "Rows of Ann Lee?")
    assert arguments == {"column": "customer", "equals": "Ann Lee"}
    assert [row["order"] for row in rows] == ["A1", "A3"]
    assert call("pick_column", table, "the amount column") == ({"column": "amount"}, [10, 2.5, 4])
    assert call("top_row", table, "by amount")[1]["order"] == "A1"
    assert tables_.pick_column([{"n": 0}, {"n": ""}, {"m": 1}, {"n": 2}], "n") == [0, "", 2]
    written: dict[str, str] = {}
    assert call("save_file", rows, "as ann.csv", written=written) == ({"file": "ann.csv"}, "ann.csv")
    assert written == {"ann.csv": "order,customer,amount\nA1,Ann Lee,10\nA3,ann lee,4\n"}


def test_what_a_table_tool_cannot_find_in_the_task_is_an_error() -> None:
    table = tables_.read_table(ORDERS)
    for tool in ("filter_rows", "pick_column", "top_row", "save_file"):
        with pytest.raises(ToolError):
            call(tool, table, "nothing to go by")
    with pytest.raises(ToolError, match="no numbers"):
        tables_.top_row(table, "customer")


def test_a_record_is_read_and_searched_by_field_names_of_any_depth() -> None:
    content = '{"listener": {"port": 8443, "tls_mode": true}, "quotas": [1, 2]}'
    _, record = call("read_json", "", files={"s.json": content})
    assert records.list_keys(record) == ["listener", "quotas"]
    assert call("get_field", record, "Which port?") == ({"field": "port"}, 8443)
    assert call("get_field", record, "Is tls mode on?")[1] == "true"
    with pytest.raises(ToolError):
        call("get_field", record, "Which colour?")


# values


def test_values_are_written_plainly() -> None:
    written = {
        "3": 3.0,
        "0.3": 0.1 + 0.2,
        "0": -0.0,
        "2026-03-14": date(2026, 3, 14),
        "a, 1": ["a", 1],
        "2.5 kg": Quantity(2.5, "kg"),
        '{"a": [1, 2.5]}': {"a": [1, 2.5]},
    }
    assert [render(value) for value in written.values()] == list(written)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["amount"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


ASKED = "By amount, 3 days, 5 %, 1 decimal, x.csv"
PLAIN = [3, [1, 2.5], ["b", "a"], [{"amount": 2, "name": "x"}], "a b, c; d", "2026-03-14, 2026-04-01", "3 km"]


def taken(data: Json, tool: Any) -> bool:
    task = Task(id="t", domain="d", prompt=ASKED, input=data)
    try:
        tool.call(first_value(task, brief(ASKED)), brief(ASKED))
    except ToolError:
        return False
    return True


TAKEN = [(data, tool) for data in PLAIN for tool in TOOLS if taken(data, tool)]


@reaches("a value", "a tool error")
@given(st.tuples(JSON_VALUES, st.sampled_from(TOOLS)) | st.sampled_from(TAKEN))
def test_a_tool_gives_a_value_or_a_tool_error_on_any_input(given_to: tuple[Json, Any]) -> None:
    data, tool = given_to
    task = Task(id="t", domain="d", prompt=ASKED, input=data)
    held = brief(task.prompt)
    try:
        _, value = tool.call(first_value(task, held), held)
        kind_of(value)
    except ToolError:
        reached("a tool error")
        return
    reached("a value")
    assert isinstance(render(value), str)


@pytest.mark.parametrize(
    "data",
    [[1] * (MAX_ITEMS + 1), "x" * (MAX_TEXT + 1), True, 10**400, {"a": [[[]]] * 3}],
    ids=["long", "large", "boolean", "huge", "fine"],
)
def test_input_that_no_tool_handles_leaves_the_text_to_work_on(data: Json) -> None:
    task = Task(id="t", domain="d", prompt="What now?", input=data)
    value = first_value(task, brief(task.prompt))
    assert value == (data if isinstance(data, dict) else "What now?")


def test_deep_data_is_refused() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    task = Task(id="t", domain="d", prompt="What now?", input=deep)
    assert first_value(task, brief(task.prompt)) == "What now?"
    with pytest.raises(ToolError, match="nested"):
        records.read_json(render({"a": deep}))


def test_files_are_read_from_the_workspace_and_garbage_is_a_tool_error(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    held = {"good.csv": b"a,b\n1,2\n", "bad.csv": b"\xff\xfe\x00", "big.csv": b"a,b\n" * MAX_TEXT}
    for name, content in held.items():
        (source / name).write_bytes(content)
    attachments = tuple(Attachment(name=n, path=source / n, sha256="") for n in held)
    for name, ok in (("good.csv", True), ("bad.csv", False), ("big.csv", False)):
        task = Task(id="t", domain="d", prompt=f"Read {name}", attachments=tuple(held))
        opened = open_brief(task, Workspace(tmp_path / name, attachments))
        if ok:
            assert BY_NAME["read_table"].call("", opened)[1] == [{"a": 1, "b": 2}]
        else:
            with pytest.raises(ToolError):
                BY_NAME["read_table"].call("", opened)


@pytest.mark.parametrize("name", ["../up.csv", "/etc/x.csv", "a/b.csv", "good.csv"])
def test_only_new_files_in_the_workspace_itself_are_written(name: str, tmp_path: Path) -> None:
    task = Task(id="t", domain="d", prompt=f"Write to {name}", attachments=("good.csv",))
    opened = open_brief(task, Workspace(tmp_path / "work"))
    with pytest.raises(ToolError):
        BY_NAME["save_file"].call("x", opened)
    assert not list(tmp_path.rglob("*.csv"))
