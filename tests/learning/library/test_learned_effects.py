from dataclasses import replace

import pytest

from pytest_tfgrpo.core.lessons import LearnedEffects
from pytest_tfgrpo.learning.library.learned_effects import prior_for
from pytest_tfgrpo.learning.library.library import empty


def learned(series: str, mean: float, measure: str = "m") -> LearnedEffects:
    """Return what the run with the draws of `series` learned."""
    spread = (mean, 1.0, 5.0)
    return LearnedEffects(run_id=series, series=series, measure=measure, on_topic=spread, elsewhere=spread)


@pytest.mark.parametrize(
    ("series", "mean"), [("first", None), ("second", 0.1), ("third", 0.2), ("another", 0.3)]
)
def test_a_run_starts_from_what_was_learned_before_the_run_that_it_repeats(
    series: str, mean: float | None
) -> None:
    known = (learned("first", 0.1), learned("second", 0.2), learned("third", 0.3))
    elsewhere = (learned(series, 0.8, "other"), learned("last", 0.9, "other"))
    for effects in (known, (*elsewhere, *known), (*known, *elsewhere)):
        prior = prior_for(replace(empty(), effects=effects), series=series, measure="m")
        assert (prior and (prior.on_topic.mean, prior.elsewhere.mean)) == (mean and (mean, mean))
