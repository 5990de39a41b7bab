"""A control beside the final sweep: pairs, shared answers, torn pairs, and what drifts while a run lasts."""

from pathlib import Path

from support.engine.lineup import learned_under_drift


def test_an_actor_that_fades_hides_a_gain_from_an_early_control_and_not_from_a_concurrent_one(
    tmp_path: Path,
) -> None:
    concurrent, early = (learned_under_drift(tmp_path / c, c) for c in ("concurrent", "early"))
    assert concurrent["ci95"][0] <= 0.1 <= concurrent["ci95"][1]
    assert early["ci95"][1] < 0
    assert early["control"]["asked"] == "early"
