"""The text of a harvested scenario reads back as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.harvest.suite.scenario_text import (
    family_in,
    scenario_text,
    split_in,
    with_family,
    with_split,
)
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.text(
    "ab: #|-\n\t'\"{}[]&*!%@`", max_size=12
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(-1e6, 1e6).map(lambda x: round(x, 3)) | texts
keys = st.from_regex("[a-z_]{1,8}", fullmatch=True)
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys, v, max_size=3), max_leaves=8
)


@given(st.dictionaries(keys, values, max_size=4))
def test_any_value_reads_back_as_it_was(value):
    assert parse_yaml(scenario_text(value, "heading")).value == (value or None)


def test_a_prompt_of_several_lines_is_a_block_that_a_person_can_edit():
    text = scenario_text(
        {"id": "x", "split": "eval", "prompt": "One.\n\n  Two: #3\n", "tags": ["a", "no"]}, "From c"
    )
    assert text == (
        '# From c\nid: x\nsplit: eval\nprompt: |\n  One.\n\n    Two: #3\ntags:\n  - a\n  - "no"\n'
    )


@pytest.mark.parametrize(
    "text", ["a\n\x1bb", "a\n \nb", "\na", " a\nb", "a\n ", "a\n\ufeffb", "a", "a\tb\r\nc"]
)
def test_a_text_that_no_block_can_hold_is_escaped_on_one_line(text):
    written = scenario_text({"prompt": text}, "From c")
    assert len(written.splitlines()) == 2
    assert written.isprintable() or written.replace("\n", "").isprintable()
    assert parse_yaml(written).value == {"prompt": text}


@pytest.mark.parametrize(
    "word", ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "No", "ON", "False", "1", "", "-"]
)
def test_a_word_that_some_reader_of_yaml_takes_for_something_else_is_quoted(word):
    assert scenario_text({"a": word, word: "b"}, "From c") == f'# From c\na: "{word}"\n"{word}": b\n'


@pytest.mark.parametrize("tail", ["", "prompt: |\n  split: train\n"])
def test_the_split_changes_on_its_own_line_alone(tail):
    text = f"id: x\nsplit: eval  \n{tail}"
    assert with_split(text, "dev") == f"id: x\nsplit: dev\n{tail}"
    assert split_in(text) == "eval"


def test_a_scenario_without_a_line_for_its_split_keeps_it():
    assert with_split("id: x\nprompt: |\n  split: train\n", "dev") is None


@pytest.mark.parametrize(
    "row", ["family: old", 'family: "old"', "'family'  :  old  ", '"family":old', "family: 'old'"]
)
def test_the_family_changes_on_its_own_line_alone(row):
    text = f"id: x\n{row}\nsplit: eval\nprompt: |\n  family: y\n"
    assert family_in(text) == "old"
    assert with_family(text, "0-new") == 'id: x\nfamily: "0-new"\nsplit: eval\nprompt: |\n  family: y\n'
    assert with_family(text, None) == "id: x\nsplit: eval\nprompt: |\n  family: y\n"


@pytest.mark.parametrize("end", ["", "\n", "\ntags: []\n"])
def test_a_first_family_stands_below_the_split(end):
    text = with_family(f"id: x\nsplit: eval{end}", "fix-1")
    assert text == f"id: x\nsplit: eval\nfamily: fix-1{end}"
    assert (family_in(text), with_family(text, None).strip()) == ("fix-1", f"id: x\nsplit: eval{end}".strip())
    assert family_in("id: x\nprompt: |\n  family: y\n") is None
