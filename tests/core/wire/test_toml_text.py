"""Values written as TOML read back as they were."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.wire.toml_text import toml_table, toml_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))  # TOML has no lone surrogates
SCALARS = TEXTS | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(SCALARS, lambda v: st.lists(v) | st.dictionaries(TEXTS, v), max_leaves=8)
LISTS, TABLES = st.lists(VALUES), st.dictionaries(TEXTS, VALUES)
EACH = st.sampled_from([TEXTS, st.booleans(), st.integers(), LISTS, TABLES])
KINDS = {str: "text", list: "list", dict: "object", bool: "truth value", int: "number", float: "number"}


@reaches(*KINDS.values())
@given(EACH.flatmap(lambda values: values) | VALUES)
def test_a_value_reads_back(value):
    assert tomllib.loads(f"a = {toml_text(value)}") == {"a": value}
    reached(KINDS[type(value)])


@given(st.dictionaries(TEXTS, VALUES))
def test_a_table_reads_back_with_all_below_it(values):
    assert tomllib.loads("\n".join(toml_table("a.b", values))) == {"a": {"b": values}}


def test_a_table_is_laid_out_for_a_person():
    values = {"id": "one", "runs": [{"n": 1, "of": {"x": True}}, {"n": 2.5}], "where": {"line 3": []}}
    assert list(toml_table("a", values)) == [
        *("[a]", 'id = "one"', ""),
        *("[[a.runs]]", "n = 1", 'of = {"x" = true}', ""),
        *("[[a.runs]]", "n = 2.5", ""),
        *("[a.where]", '"line 3" = []'),
    ]


@pytest.mark.parametrize("value", [None, [None], {"a": None}])
def test_null_is_refused(value):
    with pytest.raises(ValueError, match="TOML has no null"):
        list(toml_table("a", {"b": value}))
