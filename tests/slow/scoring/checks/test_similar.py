"""The check that an answer is like a text."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.scoring.checks.similar import similarity


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(["letters", "words"]))
def test_similarity_is_a_share_that_is_1_for_equal_texts_and_the_same_both_ways(a, b, by):
    assert similarity(a, a, by=by) == 1
    assert 0 <= similarity(a, b, by=by) == similarity(b, a, by=by) <= 1
