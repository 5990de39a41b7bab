"""What a run learns from evidence, and what it does not learn from noise, with one seed of the benchmark."""

from pathlib import Path

from support import benchmark


def test_true_rewards_teach_and_shuffled_ones_do_not(tmp_path: Path) -> None:
    evidence = benchmark("evidence")
    groups = evidence.made(0, tmp_path, improved=False)
    assert (len(groups), sum(len(group.attempts) for group in groups)) == (96, 384)
    rows = {name: evidence.learned(name, groups, 0, tmp_path) for name in evidence.NAMES}
    assert rows["true"].seen >= 0.35
    assert rows["coin"].seen >= 0.2
    assert rows["shuffled"].gain <= 0.2
    assert rows["all kept"].gain <= 0.05
    assert not any(row.is_worse for row in rows.values())
