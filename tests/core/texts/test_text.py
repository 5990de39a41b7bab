import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.texts.text import (
    block,
    cost,
    count,
    cut,
    duration,
    few,
    gist,
    interval,
    line,
    money,
    number,
    pathless,
    plural,
    price,
    scenarios_of,
    signed,
    table,
    wrapped,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc", "a b c"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("over\rwrite", "over\\x0dwrite"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("größe\u00a0語", "größe 語"),
        ("\U000e0041tag", "\\U000e0041tag"),
    ],
)
def test_foreign_text_becomes_one_printable_line(text: str, shown: str) -> None:
    assert line(text) == shown


odd = st.characters() | st.sampled_from("\x1b\r\n\x07\u202e\u200b\ud800\U000e0041")


@reaches("cut", "whole", "unprintable")
@given(st.text(odd, max_size=60) | st.text(odd, min_size=31, max_size=60), st.integers(3, 30))
def test_nothing_unprintable_gets_through(text: str, limit: int) -> None:
    short = line(text, limit)
    assert len(short) <= limit
    reached("cut" if len(text) > limit else "whole")
    reached("unprintable", not text.isprintable())
    for shown in (short, block(text), block(text, limit)):
        shown.encode("utf-8")
        assert all(c.isprintable() or c in "\n\t" for c in shown)


def test_a_block_keeps_its_lines_and_says_what_it_left_out() -> None:
    assert block("a\r\nb") == "a\nb"
    assert block("x" * 12, 10) == "x" * 10 + "\n... 2 more characters"
    assert block("x" * 10, 10) == "x" * 10


def test_a_block_shows_no_half_of_a_secret_that_its_cut_goes_through() -> None:
    secret = "wJ4lrX7tnF9MIk3MDENG"
    assert secret[:6] not in block(f"key {secret} and more", 14)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::all is well", "\\x3a:error::all is well"),
        ("first\n  ::stop-commands::x", "first\n  \\x3a:stop-commands::x"),
        ("##[error]done", "#\\x23[error]done"),
        ("see ##vso[task.complete]", "see #\\x23vso[task.complete]"),
        ("std::vector, ## heading, a::b", "std::vector, ## heading, a::b"),
    ],
)
def test_an_answer_gives_no_commands_to_a_ci_service_that_reads_the_log(text: str, shown: str) -> None:
    assert block(text) == shown


def test_a_line_that_is_wrapped_starts_with_no_command_either() -> None:
    shown = wrapped(f"{'x' * 20} ::error::red", 24, "  ", "    ")
    assert [text.strip() for text in shown] == ["x" * 20, "\\x3a:error::red"]


def test_a_line_shows_no_half_of_a_secret_that_its_cut_goes_through() -> None:
    secret = "wJ4lrX7tnF9MIk3MDENG"
    assert secret[:6] not in line(" " * 70 + secret, 10)


@pytest.mark.parametrize("limit", [None, 100])
def test_a_short_block_is_printable_too(limit: int | None) -> None:
    assert block("a\x1b[2Jb token=hunter22!", limit) == "a\\x1b[2Jb token=[redacted:named]"


def test_of_several_exceptions_the_last_one_is_the_gist() -> None:
    start = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
    assert (
        gist(f"{start}KeyError: 'a'\n\nDuring handling:\n\n{start}OSError: disk full\n")
        == "OSError: disk full"
    )


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (few("abcde"), "a, b, c, d, e"),
        (few("abcdef"), "a, b, c, d, e, ..."),
        (cost({"sum": 0.5, "n": 2}, 2), "$0.50"),
        (cost({"sum": 0.5, "n": 1}, 2), "$0.50+"),
        (cost({"sum": None, "n": 0}, 2), "?"),
    ],
)
def test_what_is_left_out_is_marked_and_nothing_else(shown: str, text: str) -> None:
    assert shown == text


def test_a_megabyte_is_cut_to_its_start() -> None:
    assert line(" " * 1_000_000 + "x", 10) == "..."
    assert line("x" * 1_000_000, 10) == "xxxxxxx..."


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0, "0"),
        (950, "950"),
        (12_345, "12.3k"),
        (999_999, "1000k"),
        (1.2e6, "1.2M"),
        (3e9, "3.0G"),
    ],
)
def test_counts_are_short(value: float | None, shown: str) -> None:
    assert count(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "?"),
        (0.0, "$0.00"),
        (0.000012, "<$0.0001"),
        (0.0001, "$0.0001"),
        (0.0012, "$0.0012"),
        (0.5, "$0.50"),
        (12.345, "$12.35"),
    ],
)
def test_unknown_money_is_no_money(value: float | None, shown: str) -> None:
    assert money(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((None, "?"), (0.0, "$0.00"), (0.0002, "$0.0002"), (0.0125, "$0.0125"), (0.1, "$0.10")),
        *((0.99999, "$1.00"), (1234.567, "$1234.57"), (0.0000317, "$0.0000317"), (1e-12, "$1e-12")),
    ],
)
def test_the_price_of_a_call_keeps_the_digits_that_tell(value: float | None, shown: str) -> None:
    assert price(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (0.5, "0.5 ms"), (12.0, "12 ms"), (1234.0, "1.2 s"), (240_000.0, "240 s")],
)
def test_latencies_have_a_unit_that_fits(value: float | None, shown: str) -> None:
    assert duration(value) == shown


def test_tables_are_aligned() -> None:
    assert table(["", "n"], [["a", "1"], ["bcd", "12"]]) == ["      n", "a     1", "bcd  12"]


def test_intervals_and_wrapping() -> None:
    assert (interval(None), interval([0.1, 0.25], "+.2f")) == ("-", "+0.10 to +0.25")
    assert wrapped("aa bb cc", 7, "- ", "  ") == ["- aa bb", "  cc"]


@reaches("whole", "cut")
@given(st.text(max_size=60) | st.text(min_size=61, max_size=200), st.integers(3, 60))
def test_what_is_cut_says_how_much_is_left_out(text: str, limit: int) -> None:
    shown = cut(text, limit)
    if len(text) <= limit:
        reached("whole")
        assert shown == text
    else:
        reached("cut")
        assert f"(... {len(text) - limit} characters left out ...)" in shown
        assert shown[0] == text[0]
        assert shown[-1] == text[-1]


def test_one_thing_is_no_plural() -> None:
    assert [plural(n, "lesson") for n in (0, 1, 2)] == ["0 lessons", "1 lesson", "2 lessons"]
    assert [plural(n, "lesson", "is", "are") for n in (1, 2)] == ["1 lesson is", "2 lessons are"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0.0, "+0.000"),
        (-1e-17, "+0.000"),
        (-0.0004, "+0.000"),
        (-0.0006, "-0.001"),
        (0.25, "+0.250"),
    ],
)
def test_a_difference_has_its_sign_and_zero_has_one_form(value: float | None, shown: str) -> None:
    assert signed(value) == shown


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (count(1000), "1.0k"),
        (count(999), "999"),
        (count(99_999), "100.0k"),
        (count(100_000), "100k"),
        (count(1e6), "1.0M"),
        (duration(9.96), "10.0 ms"),
        (duration(10.0), "10 ms"),
        (duration(999.4), "999 ms"),
        (duration(1000.0), "1.0 s"),
        (duration(99_999.0), "100.0 s"),
        (duration(100_000.0), "100 s"),
        (money(0.00005), "$0.0001"),
        (money(0.01), "$0.01"),
        (money(0.0099), "$0.0099"),
        (few(["a", "b"], 2), "a, b"),
        (few(["a", "b", "c"], 2), "a, b, ..."),
        (few(["x" * 200]), "x" * 117 + "..."),
        (number(None), "-"),
        (number(0.12345), "0.123"),
        (number(0.5, 1), "0.5"),
        (pathless("/home/me/file.txt"), "file.txt"),
        (pathless("/home/me/folder/"), "folder"),
        (pathless("out/file.txt"), "out/file.txt"),
        (scenarios_of(3, 3), "3 scenarios"),
        (scenarios_of(3, 1), "3 scenarios of one family"),
        (scenarios_of(3, 2), "3 scenarios of 2 families"),
        (scenarios_of(1, 1, just_these=True), "1 scenario (says nothing of others)"),
    ],
)
def test_figures_and_names_change_their_form_where_they_say(shown: str, text: str) -> None:
    assert shown == text


def test_an_error_without_a_traceback_is_a_line_and_what_came_before_one_stays() -> None:
    start = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
    assert gist("plain\nerror") == "plain error"
    assert gist(f"it broke:\n{start}KeyError: 'a'") == "it broke: KeyError: 'a'"
    amid = 'ended with status 1; its stderr ends: line 3, in g\n  File "b.py", line 2\nOSError: full'
    assert gist(amid) == "ended with status 1; its stderr ends: OSError: full"
    assert gist(f"{start}no type") == "no type"
