"""What a patch changes: hunks of sources, names of functions, an excerpt."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.patterns.subjects import DIFF

from pytest_tfgrpo.patterns.authoring.changed_code import changed_hunks, excerpt_of


def test_hunks_of_sources_have_the_functions_that_they_are_in() -> None:
    (hunk,) = changed_hunks(DIFF)
    assert (hunk.path, hunk.names, hunk.added) == ("shop/cart.py", ("total",), 7)


def test_the_excerpt_is_what_the_files_have_after_the_change() -> None:
    path, text = excerpt_of(changed_hunks(DIFF))
    assert path == "shop/cart.py"
    assert text.split("\n")[0] == "counted = set()"
    assert text.split("\n")[-1] == "return total"
    assert "    if item.id not in counted:" in text


def patch(path: str, *rows: str, heading: str = "") -> str:
    old = sum(row[:1] != "+" for row in rows)
    new = sum(row[:1] != "-" for row in rows)
    return "\n".join([f"--- a/{path}", f"+++ b/{path}", f"@@ -1,{old} +1,{new} @@ {heading}", *rows, ""])


@pytest.mark.parametrize(
    ("path", "row", "names"),
    [
        ("a.py", "+async def load(x):", ("load",)),
        ("a.ts", "+export const load = async (x) => {", ("load",)),
        ("a.ts", "+  class Loader {", ("Loader",)),
        ("a.go", "+func (l *Loader) Load() error {", ("Load",)),
        ("a.rs", "+pub fn load() {", ("load",)),
        ("a.rs", "+trait Loader {", ("Loader",)),
        ("a.rs", "+pub struct Loader {", ("Loader",)),
        ("a.ts", "+interface Loader {", ("Loader",)),
        ("a.rb", "+module Loader", ("Loader",)),
        ("a.pl", "+sub load {", ("load",)),
        ("a.kt", "+fun x; func load()", ("load",)),
        ("a.js", "+var load = function (x) {", ("load",)),
        ("a.js", "+let load = (x) => {", ("load",)),
        ("a.js", "-function load() {", ("load",)),
        ("a.js", "+  return load();", ("around",)),
    ],
)
def test_names_are_found_in_several_languages(path: str, row: str, names: tuple[str, ...]) -> None:
    (hunk,) = changed_hunks(patch(path, row, " x", heading="function around() {"))
    assert hunk.names == names


@pytest.mark.parametrize("path", ["tests/test_a.py", "README.md", "a.test.ts", "pyproject.toml"])
def test_tests_and_documents_are_no_sources(path: str) -> None:
    assert changed_hunks(patch(path, "+x = 1")) == []


def test_lines_that_look_like_the_heads_of_a_patch_are_lines() -> None:
    (hunk,) = changed_hunks(patch("a.py", "+++ b/other.py", "+@@ -1 +1 @@ def f():", "--- a/a.py"))
    assert (hunk.path, hunk.rows) == ("a.py", ("++ b/other.py", "@@ -1 +1 @@ def f():"))


def test_a_path_that_git_quotes_is_read_as_it_is() -> None:
    text = patch("x", "+x = 1").replace("+++ b/x", '+++ "b/\\303\\274 \\"a\\".py"')
    assert [hunk.path for hunk in changed_hunks(text)] == ['ü "a".py']


def test_an_excerpt_has_forty_lines_and_none_too_long() -> None:
    rows = [f"+x{n} = {n}" for n in range(60)]
    assert excerpt_of(changed_hunks(patch("a.py", *rows)))[1].count("\n") == 39
    assert excerpt_of(changed_hunks(patch("a.py", "+" + "x" * 500))) == ("", "")
    assert excerpt_of(changed_hunks(patch("a.py", "-x = 1"))) == ("", "")
    assert excerpt_of([]) == ("", "")
    wide = "+" + "x" * 400
    assert excerpt_of(changed_hunks(patch("a.py", wide))) == ("a.py", wide[1:])
    assert excerpt_of(changed_hunks(patch("a.py", f"{wide}x"))) == ("", "")


def test_the_excerpt_is_of_the_hunk_that_adds_most_lines_with_text() -> None:
    blank = patch("a.py", "+", "+one", "+  ", "+", "+")
    (hunk,) = changed_hunks(blank)
    assert (hunk.added, hunk.rows) == (1, ("one",))
    two = patch("b.py", "+    two", " between", "+    three  ")
    first = patch("c.py", "+four", "+five")
    assert excerpt_of(changed_hunks(f"{blank}{two}{first}")) == ("b.py", "    two\nbetween\n    three")
    assert excerpt_of(changed_hunks(patch("a.py", "+    x", "+        y"))) == ("a.py", "x\n    y")


def test_a_hunk_has_the_names_that_it_brings_else_those_above_it() -> None:
    rows = ("-def old():", "+def new():", " def around():")
    assert changed_hunks(patch("a.py", *rows))[0].names == ("old", "new")
    assert changed_hunks(patch("a.py", " def one():", "+x", " def two():"))[0].names == ("one",)
    assert changed_hunks(patch("a.py", "+x", heading="class Cart:"))[0].names == ("Cart",)
    assert changed_hunks("--- a/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n") == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from([*DIFF.split("\n"), "@@ -1,9999999 +0 @@", "+++ /dev/null", '+++ "b/a b.py"', ""])
    )
)
def test_no_text_breaks_it(rows: list[str]) -> None:
    for hunk in changed_hunks("\n".join(rows)):
        assert hunk.path
        assert hunk.added <= len(rows)
