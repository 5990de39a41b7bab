"""Numerals that are made, with their values: none is read wrongly, and few are refused."""

from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.numerals.corpus import FORMS, FRAMES, LOCALES, corpus, others, written

from pytest_tfgrpo.scoring.numerals.place import UnsureNumeral
from pytest_tfgrpo.scoring.numerals.reader import certain_number, last_number

TEN = LOCALES[:10]


def test_of_2000_numerals_none_is_read_wrongly_and_those_with_one_reading_are_read():
    samples = list(corpus(2000))
    assert len(samples) == 2000
    assert sum(share for _, share in FORMS) == 100
    assert len(Counter(sample.form for sample in samples)) == len(FORMS)
    wrong, refused = [], 0
    for sample in samples:
        found = certain_number(sample.answer)
        refused += found is None and not sample.others
        if found is not None and found not in map(pytest.approx, (sample.value, *sample.others)):
            wrong.append((sample, found))
    ambiguous = sum(bool(sample.others) for sample in samples)
    assert wrong == []
    assert refused <= 0.03 * (2000 - ambiguous)
    assert 0.03 * 2000 < ambiguous < 0.1 * 2000


@settings(max_examples=15)
@given(
    value=st.decimals(min_value=-(10**12), max_value=10**12, places=2).map(lambda value: value + 0),
    frame=st.sampled_from(FRAMES),
)
@pytest.mark.parametrize("locale", TEN, ids=lambda locale: locale.name)
def test_what_a_locale_prints_is_read_back(locale, value, frame):
    text = (locale.minus if value < 0 else "") + written(value, locale)
    assert last_number(frame.format(text)) == float(value)


@settings(max_examples=15)
@given(value=st.integers(10**4, 10**15) | st.integers(0, 999))
@pytest.mark.parametrize("locale", TEN, ids=lambda locale: locale.name)
def test_a_whole_number_with_a_currency_is_read_back(locale, value):
    text = written(Decimal(value), locale)
    money = locale.money.format(n=text, s=locale.minus)
    if locale.group == "." and others(Decimal(value), text, locale):  # 123.456 €
        with pytest.raises(UnsureNumeral):
            last_number(money)
    else:
        assert last_number(money) == -value
