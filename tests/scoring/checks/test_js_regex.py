"""Patterns of JavaScript; what they find was taken from Node 20, `new RegExp(pattern).test(text)`."""

import pytest
import regex

from pytest_tfgrpo.scoring.checks.js_regex import as_python


@pytest.mark.parametrize(
    ("pattern", "found", "missed"),
    [
        (r"^\d+$", ("42",), ("٤٢", "42\n")),
        (r"^\D$", ("٤",), ("4",)),
        (r"^\w+$", ("a_1",), ("é",)),
        (r"^[\w-.]+$", ("a-b.c",), ("a b",)),
        (r"^\W$", ("é", " "), ("e",)),
        (r"^[^\W]$", ("e",), ("é",)),
        (r"\bab\b", ("éab", "ab é"), ("xab",)),
        (r"a\Bb", ("ab",), ("a b",)),
        (r"^\s$", ("\ufeff", "\u00a0", "\n"), ("\x1c", "\x85")),
        (r"^\S$", ("\x1c",), (" ",)),
        (r"^[\S]$", ("\x85", "\U0001f600"), ("\u3000",)),
        (r"^[\s\S]*$", ("a\nb",), ()),
        ("^a.c$", ("abc",), ("a\nc", "a\rc", "a\u2028c")),
        ("^done$", ("done",), ("done\n", "x\ndone")),
        ("x{,3}y", ("x{,3}y",), ("xy",)),
        ("(?:foo){e<=1}", ("foo{e<=1}",), ("fo",)),
        ('{"a": 1}', ('{"a": 1}',), ("",)),
        ("[[:alpha:]]", (":]", "[]"), ("b", "z]")),
        ("a[]", (), ("a", "a]")),
        ("^a[^]b$", ("a\nb",), ("ab",)),
        (r"^[\b]$", ("\b",), ("b",)),
        (r"\x41\u00e9\cA\0\t\/", ("Aé\x01\0\t/",), ("A",)),
        (r"(?<q>a|b){2,}?x", ("abx",), ("ax",)),
        (r"(ab)-\1", ("ab-ab",), ("ab-",)),
        (r"^(a)(b)\2\1$", ("abba",), ("abab",)),
        (r"^(?:a)(b)(?=c)(c)\2\1$", ("abccb",), ("abcbc",)),
        (r"(?<q>ab)-\k<q>", ("ab-ab",), ("ab-",)),
        ("(?<!a)b(?=c)", ("xbc",), ("abc", "xb")),
        ("^[+--a-c-e]+$", ("+,-abce",), ("d",)),
    ],
)
def test_a_pattern_finds_what_it_finds_in_javascript(pattern, found, missed):
    read = regex.compile(as_python(pattern))
    assert [text for text in found if not read.search(text)] == []
    assert [text for text in missed if read.search(text)] == []


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"\Aabc", r"with \A, which JavaScript reads as the character A"),
        (r"abc\Z", r"with \Z, which JavaScript reads as the character Z"),
        (r"\p{L}", r"with \p, which JavaScript reads as the character p"),
        (r"[\h]", r"with \h, which JavaScript reads as the character h"),
        ("a*+b", "with + where nothing can be repeated, such as `*+`"),
        ("(?<=a)*", "with * where nothing can be repeated, such as `*+`"),
        ("{2}a", "with { where nothing can be repeated"),
        ("(?>a)", "with '(?>a', which not every JavaScript knows"),
        ("(?P<q>a)", "with '(?P<', which not every JavaScript knows"),
        ("(?i)a", "with '(?i)', which not every JavaScript knows"),
        ("(?<é>a)", "with '(?<é', which not every JavaScript knows"),
        ("(?<q>a)(?<q>b)", "with two groups 'q'"),
        (r"(a)?\1", "that goes back to a group which may have found nothing"),
        (r"(a)|\1", "that goes back to a group which may have found nothing"),
        (r"(a\1)", r"with \1, which may be no group that is closed before"),
        (r"(a)\2", r"with \2, which may be no group that is closed before"),
        (r"(?:a)(?=a)\1", r"with \1, which may be no group that is closed before"),
        (r"\01", r"with \0, which may be no group that is closed before"),
        (r"\ud83d", "with halves of a character"),
        ("[\U0001f600]", "with a character in [ ] which JavaScript counts as two"),
        ("\U0001f600+", "that repeats a character which JavaScript counts as two"),
        ("[a", "with a [ that is not closed"),
        ("a\\", "that ends with a backslash"),
    ],
)
def test_a_pattern_that_is_not_certain_is_named(pattern, why):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared whole
        as_python(pattern)
    assert str(raised.value) == why
