"""Evidence: sums of rollouts, whatever is added up at once, are what the rollouts one by one say."""

from support.acceptance.evidence import LESSONS, SCENARIOS, gathered
from support.builders import make_group, make_rollout

from pytest_tfgrpo.learning.acceptance.evidence import joined
from pytest_tfgrpo.learning.attribution.exposures import content_key


def test_what_was_gathered_before_a_sweep_stays_as_it_is() -> None:
    before = gathered([make_group([1.0], rollouts=(make_rollout(scenario_id="s0", left_out=("l0",)),))])
    rollout = make_rollout(scenario_id="s3", mode="dev", experiences=("l0",))
    after = joined(before, [make_group([0.0], rollouts=(rollout,))], LESSONS, SCENARIOS)
    assert (before.cells.n_C.sum(), after.cells.n_C.sum()) == (1, 2)
    assert not before.included
    assert after.included == {content_key(LESSONS["l0"]): 1}


def test_evidence_of_many_rollouts_holds_sums_and_none_of_them() -> None:
    group = make_group(
        [1.0, 0.0], rollouts=tuple(make_rollout(n, scenario_id="s0", left_out=("l1",)) for n in (0, 1))
    )
    found = gathered([group] * 3000)
    assert found.cells.n_C.tolist() == [6000.0]
    assert found.cells.sum_C.tolist() == [3000.0]
