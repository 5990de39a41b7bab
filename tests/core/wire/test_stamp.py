"""Stamps: identity is content, whatever order it is written in."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.wire.stamp import canonical, combined_stamp, identify, seed_of, stamp, stamp_bytes

texts = st.text(max_size=20)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=4) | st.dictionaries(texts, v, max_size=4), max_leaves=12
)


@given(values)
def test_a_stamp_survives_a_trip_through_json(value):
    assert stamp(json.loads(json.dumps(value))) == stamp(value)


@given(st.dictionaries(texts, values, max_size=6), st.randoms())
def test_a_stamp_does_not_depend_on_the_order_of_keys(value, random):
    items = list(value.items())
    random.shuffle(items)
    assert stamp(dict(items)) == stamp(value)


alike = values.flatmap(lambda value: st.tuples(st.just(value), st.just(json.loads(json.dumps(value)))))


@reaches("equal", "others")
@given(st.tuples(values, values) | alike)
def test_values_have_equal_stamps_exactly_when_their_canonical_text_is_equal(two):
    one, other = two
    reached("equal" if canonical(one) == canonical(other) else "others")
    assert (stamp(one) == stamp(other)) == (canonical(one) == canonical(other))


@reaches("the same backwards", "another backwards")
@given(st.lists(values, min_size=2, max_size=4) | alike.map(list))
def test_a_stamp_depends_on_the_order_of_a_list(items):
    same = canonical(items) == canonical(items[::-1])
    reached("the same backwards" if same else "another backwards")
    assert (stamp(items) == stamp(items[::-1])) == (canonical(items) == canonical(items[::-1]))


@given(values)
def test_canonical_text_is_a_fixed_point(value):
    assert canonical(json.loads(canonical(value))) == canonical(value)


def test_known_stamps_never_change():
    assert canonical({"b": [1, 2.5, None], "a": "é"}) == '{"a":"é","b":[1,2.5,null]}'.encode()
    assert stamp({"a": 1}) == "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    assert stamp_bytes(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert identify("run", 1) == stamp(["run", 1])[:16]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_has_no_stamp(number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        stamp({"a": [number]})


def test_what_json_cannot_hold_has_no_stamp():
    with pytest.raises(TypeError):
        stamp({"a": object()})


def test_half_a_surrogate_pair_has_a_stamp_so_that_hostile_text_cannot_end_a_run():
    assert stamp("\ud800") != stamp("\ud801")


parts = st.lists(texts | st.integers(), min_size=1, max_size=4)


@given(parts)
def test_a_seed_fits_a_signed_64_bit_integer(identity):
    assert 0 <= seed_of(*identity) < 2**63
    assert len(identify(*identity)) == 16


def test_seeds_and_ids_are_those_of_earlier_runs():
    assert seed_of("run1", 1, "count-words", 0) == 7511982787499943017


shifted = st.builds(lambda a, b, c: ([a + b, c], [a, b + c]), texts, texts, texts)


@reaches("equal", "of the same letters", "others")
@given(st.tuples(parts, parts) | parts.map(lambda one: (one, list(one))) | shifted)
def test_other_identities_have_other_seeds(two):
    one, other = two
    equal, letters = one == other, "".join(map(str, one)) == "".join(map(str, other))
    reached("equal" if equal else "of the same letters" if letters else "others")
    assert (seed_of(*one) == seed_of(*other)) == (canonical(one) == canonical(other))


@reaches("moved")
@given(texts, texts, texts)
def test_parts_of_an_identity_do_not_run_into_each_other(a, b, c):
    if reached("moved", b):
        assert identify(a, b + c) != identify(a + b, c)


@given(st.lists(texts, max_size=6), st.randoms())
def test_a_combined_stamp_does_not_depend_on_order(stamps, random):
    shuffled = list(stamps)
    random.shuffle(shuffled)
    assert combined_stamp(shuffled) == combined_stamp(stamps)
